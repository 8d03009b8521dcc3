// Uppy with its S3 plugin in a real browser (Chromium, driven by playwright-core), on a page of another origin than the server's and
// the object store's.
//
//     node uppy_s3.mjs SERVER SIZE PORT              (LANDFALL_TOKEN, LANDFALL_TEST_NODE, CHROMIUM)
//
// Serves the page on PORT. It registers a file, sends it in parts straight to the object store, confirms it, and prints its id.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

const modules = process.env.LANDFALL_TEST_NODE;
const require = createRequire(`${modules}/`);
const { chromium } = require('playwright-core');
const [server, size, port] = process.argv.slice(2);
const print = line => process.stdout.write(`${JSON.stringify(line)}\n`);
const fail = why => { print({ failed: String(why) }); process.exit(1); };

const page_text = `<!doctype html><meta charset="utf-8"><title>Another site</title><script type="module">
  import { Uppy, AwsS3 } from './uppy.min.mjs';
  window.upload = async (server, token, size) => {
    const api = async (path, body) => {
      const headers = { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' };
      const answer = await fetch(server + '/api/v2/uploads/files/' + path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(await answer.text());
      return answer.json();
    };
    const words = new DataView(new ArrayBuffer(size));
    for (let at = 0; at < size; at += 4) words.setUint32(at, at / 4);
    const { fileId } = await api('init', { fileName: 'numbers.bin', fileSize: size });
    const uppy = new Uppy({ autoProceed: false });
    uppy.use(AwsS3, {
      shouldUseMultipart: true,
      getChunkSize: () => 5 * 1024 * 1024,
      generateObjectKey: file => file.meta.fileId,
      signRequest: request => api(request.key + '/s3-requests', request),
    });
    uppy.addFile({ name: 'numbers.bin', type: 'application/octet-stream', data: new Blob([words.buffer]), meta: { fileId } });
    const result = await uppy.upload();
    if (result.failed.length > 0) return { failed: result.failed.map(file => String(file.error)).join() };
    await api(fileId + '/confirm', {});
    return { done: fileId };
  };
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
page.on('response', async response => {
  if (response.status() < 400) return;
  const { method, url, headers } = { method: response.request().method(), url: response.url(), headers: await response.request().allHeaders() };
  print({ method, url, headers, status: response.status(), body: await response.text().catch(String) });
});
page.on('requestfailed', request => print({ method: request.method(), status: 0 }));
try {
  await page.goto(`http://localhost:${port}/`);
  await page.waitForFunction(() => window.isLoaded);
  print(await page.evaluate(args => window.upload(...args), [server, process.env.LANDFALL_TOKEN, Number(size)]));
} catch (error) {
  fail(error);
} finally {
  await browser.close();
  site.close();
}
