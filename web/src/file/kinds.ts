/** Which originals can be shown, and how. */
import type { FileView } from '../api/types';

export type Kind = 'pdf' | 'image' | 'html';

const IMAGES: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', bmp: 'image/bmp' };
/** What is shown goes through the memory of the page. */
const MAX_BYTES = 100 * 1024 * 1024;

const extension = (name: string) => name.slice(name.lastIndexOf('.') + 1).toLowerCase();

export const kindOf = (file: FileView): Kind | null => {
  const type = (file.contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  const ending = extension(file.fileName);
  if (type === 'application/pdf' || ending === 'pdf') return 'pdf';
  if (Object.values(IMAGES).includes(type) || ending in IMAGES) return 'image';
  if (type === 'text/html' || ending === 'html' || ending === 'htm') return 'html';
  return null;
};

export const imageType = (file: FileView) => IMAGES[extension(file.fileName)] ?? file.contentType ?? 'image/png';

export const canShow = (file: FileView) => kindOf(file) !== null && file.confirmedAt !== null && file.size <= MAX_BYTES;
