// Uses the types that openapi-typescript makes of the description. It is only compiled.
import type { components, operations, paths, webhooks } from './api.js';

type Schemas = components['schemas'];

/** The type of an event says what its data has. */
export function describe(event: Schemas['Event']): string {
  switch (event.type) {
    case 'file:status-changed': {
      const to: Schemas['FileStatus'] = event.data.to;
      return `${event.data.fileId} ${event.data.from ?? 'new'} ${to} ${event.data.error?.code ?? ''}`;
    }
    case 'batch:completed':
      return `${event.data.batchId} ${event.data.summary.ready}`;
    case 'circuit:changed':
      return `${event.data.service} ${event.data.until ?? ''}`;
    default:
      return event.type;
  }
}

/** A stream also has messages about itself. */
export function isEvent(message: Schemas['StreamMessage']): message is Schemas['Event'] {
  return !message.type.startsWith('stream:');
}

export const file: Schemas['NewFile'] = { fileName: 'tides.txt', fileSize: 5 };
export const code: Schemas['FailureCode'] = 'A_CODE_OF_A_LATER_VERSION';
export const refusal: Schemas['RefusalCode'] = 'FILE_NOT_FOUND';
// @ts-expect-error: the codes of refusals are an enum.
export const noRefusal: Schemas['RefusalCode'] = 'NO_SUCH_CODE';

export type Listed = operations['listFiles']['responses'][200]['content']['application/json'];
export type Body = webhooks['file:status-changed']['post'];
export const listed = (page: Listed): string[] => page.files.map((one) => one.fileName);
export const path: keyof paths = '/api/v2/uploads/files';
