/** Choosing files and folders, by a dialog or by dropping them. */
import { addUploads } from './store';

export interface Chosen {
  file: File;
  /** The folders that it was in, with the name: `reports/2026/may.pdf`. */
  path: string;
}

const MAX_CHOSEN = 10_000;

/** Opens the dialog of the browser. */
export const chooseFiles = (kind: 'files' | 'folder') => {
  const input = document.createElement('input');
  input.type = 'file';
  input.multiple = true;
  if (kind === 'folder') input.webkitdirectory = true;
  // Some browsers forget an input that is not in the page before the person has chosen.
  input.hidden = true;
  document.body.append(input);
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])].map(file => ({ file, path: file.webkitRelativePath || file.name }));
    input.remove();
    void addUploads(files);
  });
  input.addEventListener('cancel', () => input.remove());
  input.click();
};

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));
const entriesOf = (reader: FileSystemDirectoryReader) => new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));

const collect = async (entry: FileSystemEntry, into: Chosen[]): Promise<void> => {
  if (into.length >= MAX_CHOSEN) return;
  if (entry.isFile) {
    into.push({ file: await fileOf(entry as FileSystemFileEntry), path: entry.fullPath.replace(/^\//, '') });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A browser lists at most a hundred entries at a time.
  for (;;) {
    const some = await entriesOf(reader);
    if (some.length === 0) return;
    for (const one of some) await collect(one, into);
  }
};

/** What was dropped, with the files in folders. */
export const filesFromDrop = async (transfer: DataTransfer): Promise<Chosen[]> => {
  // The entries must be taken before anything is awaited.
  const items = [...transfer.items].filter(item => item.kind === 'file').map(item => ({ entry: item.webkitGetAsEntry?.() ?? null, file: item.getAsFile() }));
  const chosen: Chosen[] = [];
  for (const { entry, file } of items) {
    if (entry) await collect(entry, chosen);
    else if (file) chosen.push({ file, path: file.name });
  }
  return chosen;
};

export const hasFiles = (transfer: DataTransfer | null) => transfer !== null && [...transfer.types].includes('Files');
