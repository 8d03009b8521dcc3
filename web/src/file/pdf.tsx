/** The pages of a PDF. A page is drawn when it comes near the screen, and the place of a hit is marked on it. */
import { getDocument, GlobalWorkerOptions, type PDFDocumentProxy, type PDFPageProxy } from 'pdfjs-dist';
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url';
import { useEffect, useRef, useState } from 'react';
import type { Place } from '../api/types';
import { scriptUrl } from '../app/trusted';
import { Loading, Notice } from '../ui/controls';
import { scrollWithin } from './scroll';

let worker: Worker | undefined;
const startWorker = () => {
  worker ??= new Worker(scriptUrl(workerUrl), { type: 'module' });
  GlobalWorkerOptions.workerPort = worker;
};

/** What is marked: the places that the server knows, or otherwise the lines that have its words. */
interface Mark {
  mark: string;
  places: Place[];
}

export const Pdf = ({ bytes, page, mark, places, name }: { bytes: Blob; page: number | undefined; name: string } & Mark) => {
  const [document, setDocument] = useState<PDFDocumentProxy | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    let isGone = false;
    let loading: ReturnType<typeof getDocument> | undefined;
    startWorker();
    void bytes
      .arrayBuffer()
      .then(data => {
        if (isGone) return;
        // No code of a document is compiled, and nothing is fetched for it.
        loading = getDocument({ data, isEvalSupported: false, useWasm: false, enableXfa: false, disableAutoFetch: true });
        return loading.promise.then(loaded => !isGone && setDocument(loaded));
      })
      .catch((failure: unknown) => !isGone && setError(failure instanceof Error ? failure.message : String(failure)));
    return () => {
      isGone = true;
      setDocument(null);
      void loading?.destroy();
    };
  }, [bytes]);
  if (error)
    return (
      <div className="p-4">
        <Notice tone="warn">The browser cannot show this PDF: {error}</Notice>
      </div>
    );
  if (!document) return <Loading what="Opening the PDF" />;
  return <Pages document={document} shown={page} mark={mark} places={places} name={name} />;
};

const Pages = ({ document, shown, mark, places, name }: { document: PDFDocumentProxy; shown: number | undefined; name: string } & Mark) => {
  const frame = useRef<HTMLDivElement>(null);
  const [ratio, setRatio] = useState<number | null>(null);
  useEffect(() => {
    void document.getPage(1).then(first => {
      const { width, height } = first.getViewport({ scale: 1 });
      setRatio(height / width);
    });
  }, [document]);
  useEffect(() => {
    if (ratio === null || shown === undefined) return;
    scrollWithin(frame.current, frame.current?.children[shown - 1], 0);
  }, [ratio, shown]);
  if (ratio === null) return <Loading what="Opening the PDF" />;
  return (
    <div ref={frame} tabIndex={0} role="region" aria-label={`Pages of ${name}`} className="grid max-h-[75dvh] auto-rows-max gap-3 overflow-y-auto bg-sunken p-3">
      {Array.from({ length: document.numPages }, (_, index) => (
        <Page key={index} document={document} number={index + 1} ratio={ratio} mark={shown === undefined || Math.abs(index + 1 - shown) > 1 ? '' : mark} places={places} />
      ))}
    </div>
  );
};

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const Page = ({ document, number, ratio, mark, places }: { document: PDFDocumentProxy; number: number; ratio: number } & Mark) => {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isNear, setNear] = useState(false);
  const [shape, setShape] = useState(ratio);
  const [boxes, setBoxes] = useState<Box[]>([]);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new IntersectionObserver(entries => setNear(entries.some(entry => entry.isIntersecting)), { rootMargin: '600px' });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!isNear) return;
    let isGone = false;
    let page: PDFPageProxy | undefined;
    let drawing: ReturnType<PDFPageProxy['render']> | undefined;
    void (async () => {
      page = await document.getPage(number);
      const target = canvas.current;
      if (isGone || !target || !frame.current) return;
      const plain = page.getViewport({ scale: 1 });
      setShape(plain.height / plain.width);
      const viewport = page.getViewport({ scale: (frame.current.clientWidth / plain.width) * Math.min(2, devicePixelRatio) });
      [target.width, target.height] = [viewport.width, viewport.height];
      drawing = page.render({ canvas: target, viewport });
      await drawing.promise;
      const known = knownBoxes(places, number);
      if (!isGone) setBoxes(places.length > 0 ? known : mark ? await boxesOf(page, mark) : []);
    })().catch(() => {
      // A page that scrolls away is not drawn to its end.
    });
    return () => {
      isGone = true;
      drawing?.cancel();
      page?.cleanup();
    };
  }, [document, number, isNear, mark, places]);
  return (
    <div ref={frame} className="relative w-full overflow-hidden bg-white shadow-sm" style={{ aspectRatio: `1 / ${shape}` }}>
      <canvas ref={canvas} role="img" aria-label={`Page ${number}`} className="absolute inset-0 h-full w-full" />
      {boxes.map((box, index) => (
        <span
          key={index}
          data-hit
          aria-hidden="true"
          className="absolute bg-[#ffd84d]/45 mix-blend-multiply"
          style={{ left: `${box.left}%`, top: `${box.top}%`, width: `${box.width}%`, height: `${box.height}%` }}
        />
      ))}
      <span className="absolute right-1.5 bottom-1 rounded bg-black/60 px-1.5 text-xs text-white">{number}</span>
    </div>
  );
};

const knownBoxes = (places: Place[], number: number): Box[] =>
  places
    .filter(place => place.page === number)
    .map(({ box }) => ({ left: box.left * 100, top: box.top * 100, width: (box.right - box.left) * 100, height: (box.bottom - box.top) * 100 }));

const plain = (text: string) => text.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');

/** Shorter runs of words occur everywhere on a page. */
const SHORTEST_RUN = 16;

/** The lines of the page that are a part of the marked text: runs that follow each other there as they do on the page. */
const boxesOf = async (page: PDFPageProxy, mark: string): Promise<Box[]> => {
  const wanted = plain(mark);
  const { items } = await page.getTextContent();
  const viewport = page.getViewport({ scale: 1 });
  const boxes: Box[] = [];
  let run = { text: '', boxes: [] as Box[] };
  const endRun = () => {
    if (run.text.length >= Math.min(SHORTEST_RUN, wanted.length)) boxes.push(...run.boxes);
    run = { text: '', boxes: [] };
  };
  for (const item of items) {
    if (!('str' in item)) continue;
    const text = plain(item.str);
    if (text === '') continue;
    if (!wanted.includes(run.text + text)) endRun();
    if (!wanted.includes(text)) continue;
    const [x, y] = [item.transform[4] as number, item.transform[5] as number];
    const [x1, y1, x2, y2] = viewport.convertToViewportRectangle([x, y - item.height * 0.2, x + item.width, y + item.height]) as [number, number, number, number];
    run.text += text;
    run.boxes.push({
      left: (Math.min(x1, x2) / viewport.width) * 100,
      top: (Math.min(y1, y2) / viewport.height) * 100,
      width: (Math.abs(x2 - x1) / viewport.width) * 100,
      height: (Math.abs(y2 - y1) / viewport.height) * 100,
    });
  }
  endRun();
  return boxes;
};
