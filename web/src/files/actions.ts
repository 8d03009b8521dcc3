/** What can be done with a file, and doing it. */
import { landfall, queries } from '../api/client';
import { hasEnded, type FileView } from '../api/types';
import { failed, toast } from '../ui/toasts';

export const canRetry = (file: FileView) => file.status === 'failed' || file.status === 'cancelled';
export const canCancel = (file: FileView) => !hasEnded(file.status);
export const canDownload = (file: FileView) => file.confirmedAt !== null && file.status !== 'deleted';

const changed = (fileId: string, isGone = false) =>
  Promise.all([
    queries.invalidateQueries({ queryKey: ['files'] }),
    // The server would only say that it is gone.
    queries.invalidateQueries({ queryKey: ['file', fileId], refetchType: isGone ? 'none' : 'active' }),
    queries.invalidateQueries({ queryKey: ['counts'] }),
  ]);

export const retryFile = async (file: FileView, fromStage?: 'scan' | 'extract' | 'chunk' | 'embed') => {
  try {
    await landfall.post('/api/v2/uploads/files/{fileId}/retry', { params: { fileId: file.fileId }, body: fromStage ? { fromStage } : {} });
    toast(`${file.fileName} is tried again.`);
    await changed(file.fileId);
  } catch (error) {
    failed(error);
  }
};

/** A cancelled file can be retried, so this can be undone. */
export const cancelFile = async (file: FileView) => {
  try {
    await landfall.post('/api/v2/uploads/files/{fileId}/cancel', { params: { fileId: file.fileId } });
    toast(`${file.fileName} is cancelled.`, file.confirmedAt ? { action: { label: 'Undo', run: () => void retryFile(file) } } : {});
    await changed(file.fileId);
  } catch (error) {
    failed(error);
  }
};

export const deleteFile = async (file: FileView) => {
  await landfall.delete('/api/v2/uploads/files/{fileId}', { params: { fileId: file.fileId } });
  toast(`${file.fileName} is deleted.`);
  await changed(file.fileId, true);
};

/** The browser saves it: the response is an attachment. */
export const downloadFile = (file: FileView) => {
  const link = document.createElement('a');
  link.href = `/api/v2/uploads/files/${encodeURIComponent(file.fileId)}/download`;
  link.download = file.fileName;
  link.click();
};
