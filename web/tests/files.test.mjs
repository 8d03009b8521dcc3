/** The list of files: filters, order, counts, live changes, selection, actions on many, and the keyboard. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { gone, launch, messages, row, says, title, visit } from './support/browser.mjs';
import { broken } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

let server, browser;
const TEXTS = { 'apple.txt': 'An apple.', 'banana.txt': 'Bananas are long. '.repeat(40), 'cherry.txt': 'Cherries. '.repeat(10) };
const person = { user: 'lister' };
before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  const ready = await server.uploadAll(TEXTS, { person });
  const failing = await server.uploadAll({ 'damaged.pdf': broken('one') }, { person });
  for (const id of Object.values(ready)) await server.reaches(id, ['ready'], person);
  for (const id of Object.values(failing)) await server.reaches(id, ['failed'], person);
});
after(() => Promise.all([browser?.close(), server?.stop()]));

const names = page => page.locator('[data-row-link]').allTextContents();
const shows = (page, expected) => until(`the list shows ${expected}`, async () => JSON.stringify(await names(page)) === JSON.stringify(expected));
const selected = page => page.getByRole('region', { name: 'Selected files' });

test('filters and order are in the address, with counts', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/files');
  await shows(page, ['damaged.pdf', 'cherry.txt', 'banana.txt', 'apple.txt']);
  await says(page.locator('main'), 'Mine: 4 files');
  const states = page.getByRole('group', { name: 'Filter by state' });
  await says(states.getByRole('button', { name: /^ready/ }), 'ready 3');
  await says(states.getByRole('button', { name: /^failed/ }), 'failed 1');

  await states.getByRole('button', { name: /^failed/ }).click();
  await shows(page, ['damaged.pdf']);
  assert.match(page.url(), /status=failed/);
  await says(page.locator('main'), 'Mine: 1 match');
  await states.getByRole('button', { name: /^ready/ }).click();
  await shows(page, ['damaged.pdf', 'cherry.txt', 'banana.txt', 'apple.txt']);
  await page.getByRole('button', { name: 'Clear all filters' }).click();
  assert.doesNotMatch(page.url(), /status/);

  await page.getByLabel('Filter by name').fill('an');
  await shows(page, ['banana.txt']);
  await page.waitForURL(/[?&]q=an/);
  await page.getByLabel('Filter by name').fill('');
  await page.waitForURL(url => !url.searchParams.has('q'));

  await page.getByLabel('Sort by').selectOption({ label: 'Name, A to Z' });
  await shows(page, ['apple.txt', 'banana.txt', 'cherry.txt', 'damaged.pdf']);
  assert.match(page.url(), /sort=fileName/);
  await page.getByLabel('Sort by').selectOption({ label: 'Largest first' });
  await shows(page, ['banana.txt', 'cherry.txt', 'damaged.pdf', 'apple.txt']);

  // The same address shows the same to whoever opens it.
  await go('/files?status=ready&sort=fileName&order=desc');
  await shows(page, ['cherry.txt', 'banana.txt', 'apple.txt']);
  assert.equal(await states.getByRole('button', { name: /^ready/ }).getAttribute('aria-pressed'), 'true');

  await page.getByRole('button', { name: /^Filters/ }).click();
  await page.getByLabel('Error code').fill('VALIDATION_ERROR');
  await page.getByLabel('Error code').press('Enter');
  await page.waitForURL(/code=VALIDATION_ERROR/);
  await says(page.locator('main'), 'No file matches the filters');
  await page.getByLabel('To').fill('2020-01-01');
  await page.waitForURL(/createdBefore=2020-01-01/);
});

test('a new file appears, and its state changes, without a reload', async t => {
  const own = { user: 'live' };
  const { page, go } = await visit(t, browser, server, { person: own });
  await go('/files');
  await says(page.locator('main'), 'No files yet');
  const loads = [];
  page.on('load', () => loads.push(1));
  const operator = await server.api({ user: 'olga', role: 'operator' });
  await operator('POST', '/admin/queues/extract/pause');
  try {
    await server.upload('arriving.txt', 'It arrives while someone looks.', { person: own });
    await says(row(page, 'arriving.txt'), /queued/);
    await says(row(page, 'arriving.txt'), /paused/);
  } finally {
    await operator('POST', '/admin/queues/extract/resume');
  }
  await says(row(page, 'arriving.txt'), /ready/);
  await says(page.locator('main'), 'Mine: 1 file');
  assert.equal(loads.length, 0);
});

test('the keyboard moves, selects, opens, filters and commands', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/files?sort=fileName&order=asc');
  await shows(page, ['apple.txt', 'banana.txt', 'cherry.txt', 'damaged.pdf']);
  await page.getByRole('link', { name: 'apple.txt' }).focus();
  const focused = name => until(`${name} has the focus`, () => page.evaluate(wanted => document.activeElement?.textContent === wanted, name));
  await page.keyboard.press('ArrowDown');
  await focused('banana.txt');
  await page.keyboard.press('x');
  await says(selected(page), '1 file selected');
  await page.keyboard.press('ArrowDown');
  await focused('cherry.txt');
  await page.keyboard.press('x');
  await says(selected(page), '2 files selected');
  await page.keyboard.press('x');
  await says(selected(page), '1 file selected');
  await page.keyboard.press('ArrowUp');
  await focused('banana.txt');
  await page.keyboard.press('Enter');
  await says(title(page), 'banana.txt');
  await page.goBack();
  await shows(page, ['apple.txt', 'banana.txt', 'cherry.txt', 'damaged.pdf']);

  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Filter by name');
  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog', { name: 'Commands' });
  await palette.waitFor();
  await page.keyboard.type('failed files');
  await palette.getByRole('option', { name: /Show failed files/, selected: true }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/status=failed/);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('apple');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForURL(/files\?q=apple/);
  await page.keyboard.press('Control+k');
  await palette.waitFor();
  await page.keyboard.press('Escape');
  await gone(palette);
});

test('what matches is retried, cancelled, downloaded and deleted together, with progress', async t => {
  const own = { user: 'bulk' };
  for (let index = 0; index < 8; index += 1) {
    await server.upload(`keep-${index}.txt`, `Text number ${index}.`, { person: own });
    await server.upload(`bad-${index}.pdf`, broken(String(index)), { person: own });
  }
  const api = await server.api(own);
  await until('all have ended', async () => {
    const { byStatus } = await api('GET', '/uploads/files/counts');
    return byStatus.ready === 8 && byStatus.failed === 8;
  });
  const { page, go } = await visit(t, browser, server, { person: own });
  await go('/files?status=failed');
  await page.getByLabel('Select bad-0.pdf').click();
  await page.getByLabel('Select bad-3.pdf').click({ modifiers: ['Shift'] });
  await says(selected(page), '4 files selected');
  await page.getByRole('button', { name: 'Select all 8 that match' }).click();
  await says(selected(page), '8 files selected');
  await selected(page).getByRole('button', { name: 'Retry' }).click();
  const dialog = page.getByRole('dialog', { name: 'Retry 8 files?' });
  await says(dialog, /All failed files/);
  await dialog.getByRole('button', { name: 'Retry 8 files' }).click();
  await says(selected(page), /8 files retried/);
  await page.getByRole('button', { name: 'Dismiss', exact: true }).first().click();
  await until('they failed again', async () => (await api('GET', '/uploads/files/counts')).byStatus.failed === 8);

  await go('/files?status=ready');
  await page.getByLabel('Select the files on this screen').check();
  await says(selected(page), '8 files selected');
  const [download] = await Promise.all([page.waitForEvent('download'), selected(page).getByRole('button', { name: 'Download' }).click()]);
  await says(selected(page), /Downloaded the archive: [\d.]+ KB/);
  const listed = execFileSync('python3', ['-c', 'import sys, zipfile; print("\\n".join(sorted(zipfile.ZipFile(sys.argv[1]).namelist())))', await download.path()]).toString().trim().split('\n');
  assert.deepEqual(listed, Array.from({ length: 8 }, (_, index) => `keep-${index}.txt`));

  await go('/files?q=bad');
  await page.getByLabel('Select the files on this screen').check();
  await selected(page).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete 8 files' }).click();
  await says(selected(page), /8 files deleted/);
  await says(page.locator('main'), 'No file matches the filters');

  // Files that have ended are left alone, and it says so.
  await go('/files');
  await page.getByLabel('Select keep-1.txt').check();
  await selected(page).getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 1 file' }).click();
  await says(selected(page), /0 files cancelled, 1 left alone/);
  await page.getByRole('link', { name: 'Details' }).click();
  await says(title(page), 'Bulk operations');
  await says(page.getByRole('table', { name: 'History' }), /Cancel.*Delete.*Retry/s);
});

test('the actions of one file are in its menu', async t => {
  const own = { user: 'menu' };
  await server.reaches(await server.upload('single.txt', 'One file.', { person: own }), ['ready'], own);
  const { page, go } = await visit(t, browser, server, { person: own });
  await go('/files');
  await page.getByRole('button', { name: 'Actions for single.txt' }).click();
  assert.equal(await page.getByRole('menuitem', { name: 'Retry' }).getAttribute('aria-disabled'), 'true');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download' }).click()]);
  assert.equal(download.suggestedFilename(), 'single.txt');
  await page.getByRole('button', { name: 'Actions for single.txt' }).click();
  await page.getByRole('menuitem', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  assert.ok(await row(page, 'single.txt').isVisible(), 'nothing happens without a yes');
  await page.getByRole('button', { name: 'Actions for single.txt' }).click();
  await page.getByRole('menuitem', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await says(messages(page), 'single.txt is deleted.');
  await says(page.locator('main'), 'No files yet');
});
