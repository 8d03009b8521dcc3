/** Uploading: choosing and dropping, progress, pausing, resuming, cancelling, and batches. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { choose, gone, launch, says, title, visit } from './support/browser.mjs';
import { large } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const MB = 1 << 20;
const LARGE = large(12 * MB);
let server, browser, folder;
before(async () => {
  [server, browser, folder] = await Promise.all([Server.start(), launch(), mkdtemp(join(tmpdir(), 'landfall-documents-'))]);
  await mkdir(join(folder, 'reports/2026'), { recursive: true });
  for (const name of ['reports/index.txt', 'reports/2026/may.txt', 'reports/2026/june.txt', 'one.txt', 'two.txt', 'three.txt']) await writeFile(join(folder, name), `About ${name}.`);
  await writeFile(join(folder, 'large.bin'), LARGE);
});
after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

const path = name => join(folder, name);
/** One upload in the list of this visit. */
const item = (page, name) => page.getByRole('region', { name: 'Uploads' }).getByRole('listitem').filter({ hasText: name });
const bar = (page, name) => page.getByRole('progressbar', { name: `Upload of ${name}` });
const share = async (page, name) => Number(await bar(page, name).getAttribute('aria-valuenow'));

test('files that are chosen together become a batch, with live progress and a summary', async t => {
  const { page, go } = await visit(t, browser, server, { person: { user: 'chooser' } });
  await go('/upload');
  await choose(page, page.getByRole('button', { name: 'Choose files' }), ['one.txt', 'two.txt', 'three.txt'].map(path));
  for (const name of ['one.txt', 'two.txt', 'three.txt']) await says(item(page, name), 'uploaded');
  await page.getByRole('heading', { name: /Batch of 3 files/ }).waitFor();
  await says(page.locator('section', { has: page.getByRole('heading', { name: /Batch of 3 files/ }) }), /completed.*3 of 3 files ready/s);
  await page.getByRole('link', { name: 'Details' }).click();
  await says(title(page), 'Batch of 3 files');
  assert.equal(await page.getByRole('progressbar', { name: 'Batch: 3 of 3 files have ended' }).getAttribute('aria-valuenow'), '100');
  await page.getByRole('link', { name: /ready 3/ }).click();
  await says(title(page), 'Files');
  assert.match(page.url(), /status=ready/);
  assert.match(page.url(), /batchId=/);
  await go('/batches');
  await says(page.locator('main'), /3 files\s*completed\s*3 of 3 files ready/);
});

test('a folder keeps the paths of its files', async t => {
  const person = { user: 'folder' };
  const { page, go } = await visit(t, browser, server, { person });
  await go('/upload');
  await choose(page, page.getByRole('button', { name: 'Choose a folder' }), path('reports'));
  for (const name of ['reports/index.txt', 'reports/2026/may.txt', 'reports/2026/june.txt']) await says(item(page, name), 'uploaded');
  const api = await server.api(person);
  const { files } = await api('GET', '/uploads/files');
  assert.deepEqual(files.map(file => file.attributes.path).sort(), ['reports/2026/june.txt', 'reports/2026/may.txt', 'reports/index.txt']);
});

test('files and folders can be dropped anywhere', async t => {
  const { page, go, context } = await visit(t, browser, server, { person: { user: 'dropper' } });
  await go('/files');
  await says(page.locator('main'), 'No files yet');
  // As the system does it when a person drags from another window.
  const debug = await context.newCDPSession(page);
  const drag = type => debug.send('Input.dispatchDragEvent', { type, x: 600, y: 400, data: { items: [], files: [path('reports'), path('one.txt')], dragOperationsMask: 1 } });
  await drag('dragEnter');
  await page.getByText('Drop files or folders to upload them').waitFor();
  await drag('dragOver');
  await drag('drop');
  await gone(page.getByText('Drop files or folders to upload them'));
  for (const name of ['index.txt', 'may.txt', 'june.txt', 'one.txt']) await page.getByRole('link', { name, exact: true }).waitFor();
  // At the foot of every screen is what is being uploaded.
  await says(page.getByRole('status').filter({ hasText: 'uploaded' }), '4 files uploaded');
  await page.getByRole('link', { name: 'Details' }).click();
  await says(item(page, 'reports/2026/may.txt'), 'uploaded');

  // What a script of the page itself drops has no entries.
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['A note that was dropped.'], 'note.txt', { type: 'text/plain' }));
    document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer }));
  });
  await says(item(page, 'note.txt'), 'uploaded');
});

test('a folder of more files than a browser lists at once is read to its end', async t => {
  const person = { user: 'crowd' };
  const many = path('crowd');
  await mkdir(many);
  for (let index = 0; index < 105; index += 1) await writeFile(join(many, `note-${String(index).padStart(3, '0')}.txt`), `Note ${index}.`);
  const { page, go, context } = await visit(t, browser, server, { person });
  await go('/upload');
  const debug = await context.newCDPSession(page);
  const drag = type => debug.send('Input.dispatchDragEvent', { type, x: 600, y: 400, data: { items: [], files: [many], dragOperationsMask: 1 } });
  for (const type of ['dragEnter', 'dragOver', 'drop']) await drag(type);
  await page.getByRole('heading', { name: /Batch of 105 files/ }).waitFor();
  assert.ok((await page.getByRole('region', { name: 'Uploads' }).getByRole('listitem').count()) < 60, 'only those on the screen are drawn');
  const api = await server.api(person);
  await until('all are there', async () => (await api('GET', '/uploads/files/counts')).total === 105, 60_000);
  await page.getByRole('button', { name: 'Dismiss what has ended' }).waitFor();
});

test('an upload shows its progress, pauses, and goes on where it was', async t => {
  const person = { user: 'pauser' };
  const { page, go, network } = await visit(t, browser, server, { person, throughNetwork: true });
  await go('/upload');
  const offsets = [];
  page.on('request', request => request.method() === 'PATCH' && offsets.push(Number(request.headers()['upload-offset'])));
  network.hold(5 * MB);
  await choose(page, page.getByRole('button', { name: 'Choose files' }), path('large.bin'));
  await says(item(page, 'large.bin'), 'uploading');
  await until('some of it is sent', async () => (await share(page, 'large.bin')) > 0);
  await says(item(page, 'large.bin'), /\d MB of 12 MB/);

  await page.getByRole('button', { name: 'Pause large.bin' }).click();
  await says(item(page, 'large.bin'), 'paused');
  network.release();
  const sent = offsets.length;
  await page.getByRole('button', { name: 'Resume large.bin' }).waitFor();
  assert.equal(offsets.length, sent, 'nothing is sent while it is paused');

  await page.getByRole('button', { name: 'Resume large.bin' }).click();
  await says(item(page, 'large.bin'), 'uploaded');
  assert.ok(offsets.at(-1) > 0, `it did not begin again: ${offsets}`);
  const api = await server.api(person);
  const { files } = await api('GET', '/uploads/files');
  assert.equal(files.length, 1);
  assert.equal(files[0].md5, createHash('md5').update(LARGE).digest('hex'), 'each byte is there once');
});

test('a cancelled upload leaves nothing behind', async t => {
  const person = { user: 'canceller' };
  const { page, go, network } = await visit(t, browser, server, { person, throughNetwork: true });
  await go('/upload');
  network.hold(3 * MB);
  await choose(page, page.getByRole('button', { name: 'Choose files' }), path('large.bin'));
  await until('some of it is sent', async () => (await share(page, 'large.bin')) > 0);
  await page.getByRole('button', { name: 'Cancel large.bin' }).click();
  await says(item(page, 'large.bin'), 'cancelled');
  network.release();
  const api = await server.api(person);
  await until('the server has none', async () => (await api('GET', '/uploads/files')).files.every(one => one.status === 'deleted'));

  // All at once, with a question.
  network.hold(3 * MB);
  await choose(page, page.getByRole('button', { name: 'Choose files' }), [path('large.bin'), path('one.txt')]);
  await page.getByRole('button', { name: 'Cancel all' }).click();
  await page.getByRole('button', { name: 'Cancel the uploads' }).click();
  await gone(page.getByRole('dialog'));
  network.release();
  await says(item(page, 'large.bin').last(), 'cancelled');
});

test('a file that the server refuses says why, and can be sent again', async t => {
  const { page, go } = await visit(t, browser, server, { person: { user: 'refused' }, allowed: [/status of 4\d\d/] });
  await writeFile(path('too-large.bin'), large(51 * MB));
  await go('/upload');
  await choose(page, page.getByRole('button', { name: 'Choose files' }), path('too-large.bin'));
  await says(item(page, 'too-large.bin').getByRole('alert'), /50 ?MB|large/i);
  await page.getByRole('button', { name: 'Send too-large.bin again' }).waitFor();
});
