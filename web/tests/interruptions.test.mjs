/** What happens to a large upload when the network, the server or the page goes away in the middle. No byte is lost or sent twice. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { choose, gone, launch, says, title, visit } from './support/browser.mjs';
import { large } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const MB = 1 << 20;
const LARGE = large(12 * MB);
const MD5 = createHash('md5').update(LARGE).digest('hex');
/** A browser itself writes these for requests that fail. */
const BROKEN = [/Failed to load resource: net::ERR_/, /status of (401|502|503)/, /net::ERR_(INTERNET_DISCONNECTED|CONNECTION|EMPTY|INCOMPLETE|NETWORK|ABORTED)/];
let server, browser, folder, file;
before(async () => {
  [server, browser, folder] = await Promise.all([Server.start(), launch(), mkdtemp(join(tmpdir(), 'landfall-documents-'))]);
  file = join(folder, 'large.bin');
  await writeFile(file, LARGE);
});
after(async () => {
  await Promise.all([browser?.close(), server?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

const item = page => page.getByRole('region', { name: 'Uploads' }).getByRole('listitem').filter({ hasText: 'large.bin' });
const banner = page => page.getByRole('alert').filter({ hasText: 'The server does not respond' });

/** Begins an upload that stands still in its middle. */
const begin = async (t, person) => {
  const visitor = await visit(t, browser, server, { person, throughNetwork: true, allowed: BROKEN });
  const { page, go, network } = visitor;
  const offsets = [];
  page.on('request', request => request.method() === 'PATCH' && offsets.push(Number(request.headers()['upload-offset'])));
  await go('/upload');
  network.hold(6 * MB);
  await choose(page, page.getByRole('button', { name: 'Choose files' }), file);
  const bar = page.getByRole('progressbar', { name: 'Upload of large.bin' });
  await until('some of it is sent', async () => Number(await bar.getAttribute('aria-valuenow')) > 0);
  return { ...visitor, offsets };
};

/** It arrived whole, as one file, and if `offsets` are given, the last request sent only what was missing. */
const arrived = async (page, person, offsets) => {
  await says(item(page), 'uploaded', 60_000);
  const api = await server.api(person);
  const { files } = await api('GET', '/uploads/files');
  assert.equal(files.length, 1, 'it is one file');
  assert.equal(files[0].md5, MD5);
  if (offsets) assert.ok(offsets.at(-1) > 0, `it went on where it was: ${offsets}`);
};

test('a network that is cut and comes back only delays an upload', async t => {
  const person = { user: 'cut' };
  const { page, network, offsets } = await begin(t, person);
  network.cut();
  await says(item(page), 'waits for the network');
  await banner(page).waitFor();
  network.mend();
  await arrived(page, person, offsets);
  await gone(banner(page));
});

test('a browser without a network waits for it', async t => {
  const person = { user: 'offline' };
  const { page, context, network, offsets } = await begin(t, person);
  await context.setOffline(true);
  network.cut();
  await says(item(page), 'waits for the network');
  network.mend();
  await context.setOffline(false);
  await arrived(page, person, offsets);
});

test('a server that is killed and starts again takes the rest', async t => {
  const person = { user: 'killed' };
  const { page, network } = await begin(t, person);
  await server.end('SIGKILL');
  network.release();
  await says(item(page), 'waits for the network');
  await server.begin();
  // How much of a request a killed server has kept is its own matter.
  await arrived(page, person, null);
  await gone(banner(page));
});

test('after a reload the unfinished upload is found, and goes on when the file is chosen again', async t => {
  const person = { user: 'reloader' };
  const { page, network, offsets } = await begin(t, person);
  // The browser asks before it leaves a page that is sending something.
  const asked = [];
  page.on('dialog', dialog => {
    asked.push(dialog.type());
    void dialog.accept();
  });
  await page.reload();
  network.release();
  await title(page).waitFor();
  assert.deepEqual(asked, ['beforeunload']);
  const unfinished = page.locator('section', { has: page.getByRole('heading', { name: 'Unfinished uploads' }) });
  await says(unfinished, /large\.bin \(12 MB\)/);
  const before = offsets.length;
  await choose(page, unfinished.getByRole('button', { name: 'Choose it again' }), file);
  await arrived(page, person, offsets);
  assert.ok(offsets[before] > 0, `it went on where it was: ${offsets}`);
  await page.reload();
  await title(page).waitFor();
  await gone(unfinished);
});

test('an unfinished upload can be discarded', async t => {
  const person = { user: 'discarder' };
  const { page, network } = await begin(t, person);
  page.on('dialog', dialog => void dialog.accept());
  await page.reload();
  network.release();
  await page.getByRole('button', { name: 'Discard large.bin' }).click();
  await gone(page.getByRole('heading', { name: 'Unfinished uploads' }));
  const api = await server.api(person);
  await until('the server has none', async () => (await api('GET', '/uploads/files')).files.every(one => one.status === 'deleted'));
});

test('the screen says that the server is away, keeps what it shows, and recovers by itself', async t => {
  const person = { user: 'watcher' };
  await server.reaches(await server.upload('kept.txt', 'It stays on the screen.', { person }), ['ready'], person);
  const { page, go, network } = await visit(t, browser, server, { person, throughNetwork: true, allowed: BROKEN });
  await go('/files');
  await page.getByRole('link', { name: 'kept.txt' }).waitFor();
  await until('events arrive', () => network.streams === 1);
  network.cut();
  await banner(page).waitFor();
  assert.ok(await page.getByRole('link', { name: 'kept.txt' }).isVisible());
  await server.upload('meanwhile.txt', 'It came while the network was away.', { person });
  network.mend();
  await gone(banner(page));
  await page.getByRole('link', { name: 'meanwhile.txt' }).waitFor();
});
