/** One file: its way, its text beside the original, its chunks, and what can be done with it. And the search that leads to it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gone, launch, messages, says, title, visit } from './support/browser.mjs';
import { broken, pdf, png, zip } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const person = { user: 'reader' };
const HARBOUR = 'The lighthouse keeper counts the boats that enter the harbour at night.';
const MENU = 'The canteen serves lentil soup with fresh bread on every second Tuesday.';
const PDF = pdf([
  ['Annual report of the company', 'This page is about money, and about nothing else.', 'The budget grew by four percent in the last year.'],
  ['The harbour', HARBOUR, 'Each boat is written into a book.'],
  ['The kitchen', MENU],
]);
/** It tries everything that a hostile page would. */
const HTML = `<!doctype html><title>Notes</title><h1>Meeting notes</h1><p>The committee agreed on a purple bicycle shed.</p>
<script>document.body.dataset.ran = 'yes'; parent.postMessage('ran', '*'); parent.document.title = 'taken over'</script>
<img src="https://attacker.example/pixel.png" onerror="document.body.dataset.ran='yes'"><form action="https://attacker.example/"><input name="token"></form>`;
/** What the browser says when it stops the page above. */
const STOPPED = [/Blocked script execution/, /sandboxed/, /attacker\.example/, /Content Security Policy/];

let server, browser, ids;
before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  ids = await server.uploadAll({ 'report.pdf': PDF, 'notes.html': HTML, 'picture.png': png(), 'damaged.pdf': broken(), 'box.zip': zip({ 'letters/first.txt': 'A letter about herring.', 'second.txt': 'A letter about cod.' }) }, { person });
  for (const name of ['report.pdf', 'notes.html', 'box.zip']) await server.reaches(ids[name], ['ready'], person);
  await server.reaches(ids['damaged.pdf'], ['failed'], person);
  await server.reaches(ids['picture.png'], ['ready', 'failed'], person);
});
after(() => Promise.all([browser?.close(), server?.stop()]));

const tab = (page, name) => page.getByRole('tab', { name });

test('the timeline has every step, and the details are those of the API', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go(`/files/${ids['report.pdf']}`);
  await says(title(page), 'report.pdf');
  const steps = page.locator('section', { has: page.getByRole('heading', { name: 'Timeline' }) }).getByRole('listitem');
  await until('it has its steps', async () => (await steps.count()) >= 5);
  const text = (await steps.allTextContents()).join('\n');
  for (const state of ['registered', 'queued', 'extracting', 'chunking', 'embedding', 'ready']) assert.match(text, new RegExp(state), text);
  assert.match(text, /took \d/, 'how long each step took');
  await tab(page, 'JSON').click();
  await page.waitForURL(/tab=json/);
  const json = JSON.parse(await page.locator('pre').textContent());
  assert.equal(json.fileId, ids['report.pdf']);
  assert.equal(json.status, 'ready');
  await tab(page, 'Chunks').click();
  await says(page.locator('main'), /lighthouse keeper/);
  await page.getByRole('link', { name: 'Show in the text' }).first().click();
  await page.locator('mark#hit').waitFor();
});

test('an archive leads to its files, and their batch leads back to it', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go(`/files/${ids['box.zip']}`);
  await page.getByRole('link', { name: 'Show its files' }).click();
  await page.waitForURL(/batchId=/);
  for (const name of ['first.txt', 'second.txt']) await page.getByRole('link', { name, exact: true }).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'Show their progress' }).click();
  await says(title(page), 'Archive of 2 files');
  await page.getByRole('link', { name: 'The file that it was unpacked from' }).click();
  await says(title(page), 'box.zip');
});

test('a hit opens the right page of the PDF, and is marked in the text and on the page', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/search');
  const field = page.getByRole('searchbox', { name: 'Search in your documents' });
  assert.ok(await field.evaluate(element => element === document.activeElement), 'the field has the focus');
  await page.keyboard.type('lighthouse keeper boats');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=lighthouse/);
  const hit = page.getByRole('listitem').filter({ hasText: 'report.pdf' }).filter({ hasText: 'page 2' });
  await hit.waitFor();
  assert.ok((await hit.locator('mark').allTextContents()).some(word => /lighthouse/i.test(word)), 'the words are marked');
  // By keyboard: down from the field to the hits, and Enter.
  await field.focus();
  await page.keyboard.press('ArrowDown');
  await until('a hit has the focus', () => page.evaluate(() => document.activeElement?.hasAttribute('data-hit-link') ?? false));
  await hit.getByRole('link', { name: 'report.pdf' }).focus();
  await page.keyboard.press('Enter');
  await says(title(page), 'report.pdf');
  await says(page.locator('mark#hit'), /lighthouse keeper/);
  const second = page.getByRole('img', { name: 'Page 2' });
  await until('page 2 is drawn', () => second.evaluate(canvas => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, index) => index % 4 < 3 && data[index - (index % 4) + 3] > 0 && value < 128);
  }));
  const isSeen = element => {
    const [frame, own] = [element.closest('[role=region]').getBoundingClientRect(), element.getBoundingClientRect()];
    return own.top < frame.bottom && own.bottom > frame.top;
  };
  assert.ok(await second.evaluate(isSeen), 'it is scrolled to');
  const [width, height] = await second.evaluate(canvas => [canvas.clientWidth, canvas.clientHeight]);
  assert.ok(Math.abs(height / width - 842 / 595) < 0.02, `the page has its shape: ${width} × ${height}`);
  assert.equal(await page.evaluate(() => scrollY), 0, 'the head of the screen is still there');
  const marks = page.locator('[data-hit]');
  await until('the place is marked', async () => (await marks.count()) > 0);
  assert.ok(await marks.first().evaluate(isSeen));
  const onPage = await marks.first().evaluate(element => element.parentElement.querySelector('canvas').getAttribute('aria-label'));
  assert.equal(onPage, 'Page 2');
});

test('a search that finds nothing says so', async t => {
  const { page, go } = await visit(t, browser, server, { person: { user: 'nobody' } });
  await go('/search?q=zeppelin');
  await says(page.locator('main'), /Nothing fits.*zeppelin/s);
  await go('/search');
  await says(page.locator('main'), 'What are you looking for?');
});

test('a search can be narrowed to one file', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/search?q=purple%20bicycle');
  await page.getByRole('listitem').filter({ hasText: 'notes.html' }).first().getByRole('link', { name: 'only in this file' }).click();
  await page.waitForURL(/fileId=/);
  await says(page.locator('main'), 'Only in');
  // The passages of the wider search stay until the others are there.
  await until('only its passages are shown', async () => {
    const names = await page.locator('[data-hit-link]').allTextContents();
    return names.length > 0 && names.every(name => name === 'notes.html');
  });
  await page.getByRole('button', { name: 'Search in more than this file' }).click();
  await page.waitForURL(url => !url.searchParams.has('fileId'));
});

test('an image is shown', async t => {
  const { page, go } = await visit(t, browser, server, { person, allowed: [/status of 4\d\d/] });
  await go(`/files/${ids['picture.png']}?tab=text`);
  const image = page.getByRole('img', { name: 'The image picture.png' });
  await image.waitFor();
  await until('it is decoded', () => image.evaluate(element => element.naturalWidth === 64 && element.naturalHeight === 48));
});

test('no script of an HTML page runs, and it reaches nothing', async t => {
  const { page, go, context } = await visit(t, browser, server, { person, allowed: STOPPED });
  const left = [];
  context.on('requestfinished', request => request.url().includes('attacker.example') && left.push(request.url()));
  await page.addInitScript(() => addEventListener('message', event => (globalThis.told = event.data)));
  await go(`/files/${ids['notes.html']}?tab=text`);
  const frame = page.locator('iframe');
  await frame.waitFor();
  assert.equal(await frame.getAttribute('sandbox'), '', 'it may do nothing');
  const inside = frame.contentFrame();
  await inside.getByRole('heading', { name: 'Meeting notes' }).waitFor();
  assert.equal(await inside.locator('body').getAttribute('data-ran'), null);
  assert.equal(await page.evaluate(() => globalThis.told), undefined);
  assert.notEqual(await page.title(), 'taken over');
  assert.deepEqual(left, []);
  await says(page.getByRole('region', { name: 'Text of the file' }), 'purple bicycle shed');
});

test('a failed file says why and can be retried from a stage', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go(`/files/${ids['damaged.pdf']}`);
  await says(page.getByRole('alert').first(), /at extract/);
  await page.getByRole('button', { name: 'Retry from a stage' }).click();
  await page.getByRole('menuitem', { name: 'From extract' }).click();
  await says(messages(page), 'damaged.pdf is tried again.');
  await says(page.locator('main'), /Retried(just now|\d+ s ago) by reader/);
  await server.reaches(ids['damaged.pdf'], ['failed'], person);
});

test('a cancelled file can be brought back with Undo', async t => {
  const operator = await server.api({ user: 'olga', role: 'operator' });
  await operator('POST', '/admin/queues/extract/pause');
  t.after(() => operator('POST', '/admin/queues/extract/resume'));
  const id = await server.upload('waiting.txt', 'It waits.', { person });
  const { page, go } = await visit(t, browser, server, { person });
  await go(`/files/${id}`);
  await says(page.locator('main'), /paused/);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await says(messages(page), 'waiting.txt is cancelled.');
  await server.reaches(id, ['cancelled'], person);
  await messages(page).getByRole('button', { name: 'Undo' }).click();
  await says(messages(page), 'waiting.txt is tried again.');
  await server.reaches(id, ['queued'], person);
});

test('a file is deleted only after a yes', async t => {
  const id = await server.upload('unwanted.txt', 'Away with it.', { person });
  await server.reaches(id, ['ready'], person);
  const { page, go } = await visit(t, browser, server, { person });
  await go(`/files/${id}`);
  await page.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete unwanted.txt?' });
  await says(dialog, 'This cannot be undone');
  await page.keyboard.press('Escape');
  await gone(dialog);
  await server.reaches(id, ['ready'], person);
  await page.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await says(title(page), 'Files');
  const api = await server.api(person);
  await assert.rejects(api('GET', `/uploads/files/${id}`), /FILE_DELETED/);
});
