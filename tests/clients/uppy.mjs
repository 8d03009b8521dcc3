// Uppy with its tus plugin in a real browser (Chromium, driven by playwright-core), on a page of another origin than the server's.
//
//     node uppy.mjs ENDPOINT SIZE PORT               (LANDFALL_TOKEN, LANDFALL_TEST_NODE, CHROMIUM)
//
// Serves the page on PORT, prints its progress while it uploads, and the address of the upload at the end. Half-way the page is
// loaded again, as a person does it, and goes on.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

const modules = process.env.LANDFALL_TEST_NODE;
const require = createRequire(`${modules}/`);
const { chromium } = require('playwright-core');
const [endpoint, size, port] = process.argv.slice(2);
const print = line => process.stdout.write(`${JSON.stringify(line)}\n`);
const fail = why => { print({ failed: String(why) }); process.exit(1); };

const page_text = `<!doctype html><meta charset="utf-8"><title>Another site</title><script type="module">
  import { Uppy, Tus } from './uppy.min.mjs';
  window.upload = (endpoint, token, size) => new Promise(resolve => {
    const words = new DataView(new ArrayBuffer(size));
    for (let at = 0; at < size; at += 4) words.setUint32(at, at / 4);
    const uppy = new Uppy({ autoProceed: false });
    uppy.use(Tus, { endpoint, headers: { Authorization: 'Bearer ' + token }, retryDelays: [0, 50, 100, 200, 400, 800, 1600], limit: 1 });
    uppy.on('upload-progress', (file, progress) => { window.sent = progress.bytesUploaded; });
    // The same file each time: its date is part of how Uppy recognises it.
    uppy.addFile({ name: 'numbers.bin', type: 'application/octet-stream', data: new File([words.buffer], 'numbers.bin', { type: 'application/octet-stream', lastModified: 1 }) });
    window.sent = 0;
    uppy.upload().then(result => resolve({
      failed: result.failed.map(file => String(file.error)), done: result.successful.map(file => file.uploadURL) }));
  });
  window.isLoaded = true;
</script>`;
const site = createServer((request, response) => {
  if (request.url.endsWith('.mjs')) {
    response.setHeader('Content-Type', 'text/javascript');
    response.end(readFileSync(`${modules}/node_modules/uppy/dist/uppy.min.mjs`));
  } else {
    response.setHeader('Content-Type', 'text/html');
    response.end(page_text);
  }
}).listen(Number(port), '127.0.0.1');

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const page = await (await browser.newContext()).newPage();
page.setDefaultTimeout(60000);
page.on('pageerror', error => fail(error));
page.on('console', message => { if (/CORS|Access-Control/.test(message.text())) fail(message.text()); });
page.on('response', response => {
  if (response.url().startsWith(endpoint)) print({ method: response.request().method(), status: response.status() });
});
page.on('requestfailed', request => { if (request.url().startsWith(endpoint)) print({ method: request.method(), status: 0 }); });

// Uppy asks how far an upload is once it has lost its connection.
const resumed = new Promise(resolve => page.on('response', response => { if (response.request().method() === 'HEAD') resolve(); }));

const load = async () => {
  await page.goto(`http://localhost:${port}/`);
  await page.waitForFunction(() => window.isLoaded);
};
const arguments_ = [endpoint, process.env.LANDFALL_TOKEN, Number(size)];
try {
  await load();
  await page.evaluate(args => { window.ended = window.upload(...args); }, arguments_);
  await resumed;
  await page.waitForFunction(size => window.sent > size / 2, Number(size));
  print({ reloaded: await page.evaluate(() => window.sent) });
  await load();
  const ended = await page.evaluate(args => window.upload(...args), arguments_);
  print(ended.failed.length > 0 ? { failed: ended.failed.join() } : { done: ended.done[0] });
} catch (error) {
  fail(error);
} finally {
  await browser.close();
  site.close();
}
