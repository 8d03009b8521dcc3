/** The original of a file. It comes from other people, so it never becomes a part of this page: no script in it can run. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useState } from 'react';
import { landfall } from '../api/client';
import type { FileView, Place } from '../api/types';
import { Failure } from '../app/failure';
import { Loading } from '../ui/controls';
import { imageType, kindOf } from './kinds';

const Pdf = lazy(() => import('./pdf').then(module => ({ default: module.Pdf })));

export const Original = ({ file, page, mark, places }: { file: FileView; page: number | undefined; mark: string; places: Place[] }) => {
  const original = useQuery({
    queryKey: ['file', file.fileId, 'original'],
    queryFn: ({ signal }) => landfall.get('/api/v2/uploads/files/{fileId}/download', { params: { fileId: file.fileId }, query: { proxy: true }, as: 'blob', signal }),
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
  if (original.isPending) return <Loading what="Loading the original" />;
  if (original.isError) return <Failure error={original.error} retry={() => void original.refetch()} />;
  const kind = kindOf(file);
  if (kind === 'pdf')
    return (
      <Suspense fallback={<Loading />}>
        <Pdf bytes={original.data} page={page} mark={mark} places={places} name={file.fileName} />
      </Suspense>
    );
  return kind === 'image' ? <Picture bytes={original.data} type={imageType(file)} name={file.fileName} /> : <Page bytes={original.data} name={file.fileName} />;
};

const useObjectUrl = (bytes: Blob, type: string) => {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return url;
};

const Picture = ({ bytes, type, name }: { bytes: Blob; type: string; name: string }) => {
  const url = useObjectUrl(bytes, type);
  return <div className="max-h-[75dvh] overflow-auto p-4">{url && <img src={url} alt={`The image ${name}`} className="max-w-full" />}</div>;
};

/** The sandbox allows nothing, and the policy of this page holds inside of it too: no scripts, no forms, no requests. */
const Page = ({ bytes, name }: { bytes: Blob; name: string }) => {
  const url = useObjectUrl(bytes, 'text/html');
  return url ? <iframe sandbox="" src={url} title={`The page ${name}`} className="h-[75dvh] w-full rounded-b-lg bg-white" /> : <Loading />;
};
