/** Failures by cause, operations on many files, and why files do not move. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gone, launch, messages, says, title, visit } from './support/browser.mjs';
import { broken } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const OPERATOR = { user: 'olga', tenant: 'operations', role: 'operator' };
// Nothing listens at the address of the service, so it fails at once.
const NO_SERVICE = { EMBEDDINGS_URL: 'http://127.0.0.1:9/v1', EMBEDDINGS_MODEL: 'none', CIRCUIT_THRESHOLD: '1', RETRY_LATE_BASE_DELAY_MS: '100' };
let server, withoutService, withoutWorker, browser;
before(async () => ([server, withoutService, withoutWorker, browser] = await Promise.all([Server.start(), Server.start(NO_SERVICE), Server.start({ ROLE: 'api' }), launch()])));
after(async () => {
  await browser?.close();
  await Promise.all([server, withoutService, withoutWorker].map(one => one?.stop()));
});

const cause = (page, code) => page.locator('section', { has: page.getByText(code, { exact: true }) });
const failAll = async (person, count, content = broken) => {
  for (let index = 0; index < count; index += 1) await server.upload(`bad-${index}.pdf`, content(String(index)), { person });
  const api = await server.api(person);
  await until('they have failed', async () => (await api('GET', '/uploads/files/counts')).byStatus.failed === count, 60_000);
  return api;
};

test('failures are grouped by cause, tried with three first, and discarded together', async t => {
  const person = { user: 'unlucky' };
  const api = await failAll(person, 5);
  const { page, go } = await visit(t, browser, server, { person });
  await go('/failures');
  await says(page.locator('main'), /5 failed files with 1 cause/);
  const group = cause(page, 'PARSE_ERROR');
  await says(group, /5 files/);
  await says(group, /What helps: /);
  await says(group, /at extract/);
  await says(group, /5 in 24 h/);
  await group.getByRole('button', { name: /Try 3, then the rest/ }).click();
  // The three fail the same way, so the others are left alone.
  await says(group, /Retry\s*Stopped/);
  const { operations } = await api('GET', '/uploads/operations');
  assert.equal(operations[0].status, 'stopped');
  assert.equal(operations[0].canary?.length ?? operations[0].doneCount, 3, JSON.stringify(operations[0]));

  await group.getByRole('button', { name: 'Discard all' }).click();
  const dialog = page.getByRole('dialog', { name: 'Discard 5 files?' });
  await says(dialog, 'This cannot be undone');
  await dialog.getByRole('button', { name: 'Discard 5 files' }).click();
  await says(page.locator('main'), 'No file has failed', 30_000);
  assert.equal((await api('GET', '/uploads/files/counts')).total, 0);

  await go('/bulk');
  await says(page.getByRole('table', { name: 'History' }), /Delete.*Done.*5 files deleted/s);
});

test('a paused stage is explained to its people, and resumed by an operator', async t => {
  const person = { user: 'patient' };
  const operator = await server.api(OPERATOR);
  await operator('POST', '/admin/queues/extract/pause');
  t.after(() => operator('POST', '/admin/queues/extract/resume'));
  const id = await server.upload('held.txt', 'It waits for the stage.', { person });
  const member = await visit(t, browser, server, { person });
  await member.go('/files');
  await says(member.page.locator('main'), /1 file waits: /);
  await member.page.getByRole('link', { name: 'Why?' }).click();
  await says(title(member.page), 'Why does it not move?');
  await says(member.page.locator('main'), /The stage extract is paused/);
  await says(member.page.locator('main'), 'An operator of this server can change this.');
  assert.equal(await member.page.getByRole('button', { name: 'Resume the stage' }).count(), 0);

  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/waiting?scope=all');
  await says(page.getByRole('table', { name: 'The queue by stage' }), /extract/);
  await says(page.getByRole('table', { name: 'Tenants by age' }), /acme/);
  await page.getByRole('button', { name: 'Resume the stage' }).click();
  await says(messages(page), 'The stage extract goes on.');
  await server.reaches(id, ['ready'], person);
  await says(page.locator('main'), 'Everything moves');
  await says(member.page.locator('main'), 'Everything moves');
});

test('an open circuit shows its error and a countdown, and can be probed', async t => {
  const person = { user: 'waiting' };
  for (let index = 0; index < 3; index += 1) await withoutService.upload(`note-${index}.txt`, `Note ${index} waits.`, { person });
  const operator = await withoutService.api(OPERATOR);
  await until('the circuit is open', async () => (await operator('GET', '/uploads/blockers?scope=all')).blockers.some(one => one.kind === 'circuit'));
  const { page, go } = await visit(t, browser, withoutService, { person: OPERATOR });
  await go('/waiting?scope=all');
  const panel = page.locator('section', { has: page.getByRole('heading', { name: 'The embedding service does not work' }) });
  await says(panel, /Last error.*cannot be reached/s);
  await says(panel, /Next probe\s*in \d:\d\d/);
  const before = await panel.textContent();
  await until('it counts down', async () => (await panel.textContent()) !== before);
  await panel.getByRole('button', { name: 'Try the service now' }).click();
  await says(messages(page), 'The next file tries the service.');
  await go('/overview');
  await says(page.getByRole('table', { name: 'Services' }), /The embedding service.*(Does not work|Is being tried)/s);
  // A member reads a sentence without internals, and cannot probe.
  const member = await visit(t, browser, withoutService, { person });
  await member.go('/waiting');
  await says(member.page.locator('main'), /The embedding service does not work/);
  assert.doesNotMatch(await member.page.locator('main').textContent(), /127\.0\.0\.1/);
  assert.equal(await member.page.getByRole('button', { name: 'Try the service now' }).count(), 0);
});

test('without a worker it says so, and how to start one', async t => {
  await withoutWorker.upload('lonely.txt', 'No one reads it.', { person: OPERATOR });
  const { page, go } = await visit(t, browser, withoutWorker, { person: OPERATOR });
  await go('/waiting');
  await says(page.locator('main'), /No worker runs the stage extract/);
  await says(page.locator('main'), /ROLE=worker WORKER_STAGES=extract landfall serve/);
  await says(page.getByRole('table', { name: 'The queue by stage' }), /none/);
  await go('/overview');
  await says(page.locator('main'), 'No worker runs. Files wait until one starts.');
});

test('an operation on many files is listed with its progress, its result and its problems', async t => {
  const person = { user: 'bulky' };
  const ids = await server.uploadAll({ 'a.txt': 'A.', 'b.txt': 'B.' }, { person });
  for (const id of Object.values(ids)) await server.reaches(id, ['ready'], person);
  const { page, go } = await visit(t, browser, server, { person });
  await go('/bulk');
  await says(page.locator('main'), 'There were no bulk operations');
  const api = await server.api(person);
  await api('POST', '/uploads/operations', { action: 'retry', fileIds: Object.values(ids) });
  const history = page.getByRole('table', { name: 'History' });
  await page.reload();
  await says(history, /Retry.*Done.*0 files retried, 2 left alone/s);
  await history.getByText('Files left alone: 2').click();
  await until('each is named', async () => (await page.getByRole('list', { name: 'Files left alone' }).getByRole('listitem').count()) === 2);
  await page.getByRole('list', { name: 'Files left alone' }).getByRole('link').first().click();
  await says(title(page), /[ab]\.txt/);
  await gone(history);
});
