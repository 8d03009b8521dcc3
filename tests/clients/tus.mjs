// Uploads bytes with tus-js-client, over a connection that the test cuts.
//
//     node tus.mjs ENDPOINT SIZE [--parallel N] [--stop-at BYTES] [--resume URL]    (LANDFALL_TOKEN, LANDFALL_TEST_NODE)
//
// Prints the address of the upload as soon as it is known, each retry, and the end. With --stop-at it ends by itself once so many
// bytes were sent, as a client that is killed does; another run goes on with --resume.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const tus = require('tus-js-client');
const [endpoint, size, ...options] = process.argv.slice(2);
const option = name => { const at = options.indexOf(name); return at < 0 ? undefined : options[at + 1]; };
const print = line => process.stdout.write(`${JSON.stringify(line)}\n`);

// Bytes that are different at every place: the numbers of their words.
const bytes = Buffer.alloc(Number(size));
for (let word = 0; word < bytes.length / 4; word++) bytes.writeUInt32BE(word, word * 4);

let known;
const upload = new tus.Upload(bytes, {
  endpoint,
  uploadUrl: option('--resume'),
  parallelUploads: Number(option('--parallel') ?? 1),
  retryDelays: [0, 50, 100, 200, 400, 800, 1600],
  headers: { Authorization: `Bearer ${process.env.LANDFALL_TOKEN}` },
  metadata: { filename: 'numbers.bin', filetype: 'application/octet-stream' },
  storeFingerprintForResuming: false,
  onAfterResponse: (request, response) => {
    if (response.getStatus() >= 400) print({ refused: response.getStatus(), method: request.getMethod() });
  },
  onProgress: sent => {
    if (upload.url && upload.url !== known) print({ url: known = upload.url });
    const stop = option('--stop-at');
    if (stop && sent >= Number(stop)) { print({ stopped: sent }); process.exit(0); }
  },
  onShouldRetry: (error, attempt) => { print({ retry: attempt, why: String(error).slice(0, 200) }); return true; },
  onSuccess: ({ lastResponse } = {}) => print({ done: upload.url, file: lastResponse?.getHeader('X-File-Id') }),
  onError: error => { print({ failed: String(error) }); process.exit(1); },
});
upload.start();
