/** What operators look at and change: numbers, jobs, orphans, webhooks, notifications, quotas, keys, the audit log, settings. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { gone, launch, messages, says, title, visit } from './support/browser.mjs';
import { broken } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const OPERATOR = { user: 'olga', tenant: 'operations', role: 'operator' };
const person = { user: 'ada' };
/** A service with an embedding model that is of no use, but another one. */
const model = createServer((request, response) => {
  let body = '';
  request.on('data', part => (body += part)).on('end', () => {
    const data = [JSON.parse(body).input].flat().map((text, index) => ({ object: 'embedding', index, embedding: Array.from({ length: 8 }, (_, place) => Math.sin(text.length + place)) }));
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ object: 'list', data, model: 'other-model', usage: { prompt_tokens: 1, total_tokens: 1 } }));
  });
});
let server, reembedded, browser;
before(async () => {
  await new Promise(done => model.listen(0, '127.0.0.1', done));
  [server, reembedded, browser] = await Promise.all([Server.start({ WEBHOOK_ALLOW_PRIVATE: 'true' }), Server.start(), launch()]);
  await server.reaches(await server.upload('fine.txt', 'A fine text.', { person }), ['ready'], person);
  await server.reaches(await server.upload('bad.pdf', broken(), { person }), ['failed'], person);
});
after(async () => {
  await browser?.close();
  await Promise.all([server?.stop(), reembedded?.stop()]);
  model.closeAllConnections();
  model.close();
});

test('the overview has the numbers, the charts with their values, the stages and the workers', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/overview?scope=all');
  await says(page.locator('main'), /Ready in 24 hours\s*1/);
  await says(page.locator('main'), /Failed files that are kept\s*1/);
  await says(page.locator('main'), /1 file became ready and 1 failed in the last 24 hours/);
  const chart = page.getByRole('slider', { name: 'Files that ended, hour' });
  await chart.focus();
  await page.keyboard.press('End');
  assert.match(await chart.getAttribute('aria-valuetext'), /1/);
  await says(page.getByRole('table', { name: 'Workers' }), /scan, extract, chunk, embed|extract, chunk, embed/);
  for (const stage of ['extract', 'chunk', 'embed']) await says(page.getByRole('table', { name: 'Stages' }), stage);
  await says(page.getByRole('table', { name: 'The last failures' }), /bad\.pdf.*PARSE_ERROR/s);
  await page.getByRole('button', { name: '7 days' }).click();
  await page.waitForURL(/days=7/);
  await says(page.locator('main'), /in the last 7 days/);

  await page.getByRole('button', { name: 'Pause the stage chunk' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
  await says(page.getByRole('table', { name: 'Stages' }), /chunk\s*State\s*Paused by olga|chunk.*Paused.*by olga/s);
  await page.getByRole('button', { name: 'Resume the stage chunk' }).click();
  await page.getByRole('button', { name: 'Pause the stage chunk' }).waitFor();
});

test('a job runs now, and its runs are kept', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/jobs');
  await page.getByRole('button', { name: 'Run now: retention' }).click();
  await says(messages(page), 'retention was started.');
  const panel = page.getByRole('region', { name: /^retention/ });
  await says(panel, /Done/);
  await says(panel, /by .*olga/);
  await panel.getByText('Earlier runs').click();
  await says(page.getByRole('table', { name: 'Runs of retention' }), /Done.*olga/s);
  await says(page.locator('main'), /What could not be cleaned/);
});

test('the storage is scanned for orphans', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/orphans?scope=all');
  await page.getByRole('button', { name: 'Scan the storage now' }).click();
  await says(messages(page), 'The storage was scanned.');
  await says(page.locator('main'), /Last scan\s*just now/);
});

test('a webhook gets signed deliveries, shows what was answered, and sends again', async t => {
  const received = [];
  let answer = 500;
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', part => (body += part)).on('end', () => {
      received.push({ headers: request.headers, body: JSON.parse(body) });
      response.writeHead(answer).end(answer === 500 ? 'the receiver is ill' : 'thanks');
    });
  });
  await new Promise(done => receiver.listen(0, '127.0.0.1', done));
  t.after(() => new Promise(done => (receiver.closeAllConnections(), receiver.close(done))));
  const { page, go } = await visit(t, browser, server, { person });
  await go('/webhooks');
  await says(page.locator('main'), 'There are no webhooks');
  await page.getByRole('button', { name: 'Add a webhook' }).click();
  const url = `http://127.0.0.1:${receiver.address().port}/hook`;
  await page.getByLabel('Address').fill(url);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'The webhook was added' });
  assert.ok((await dialog.getByLabel('Secret').inputValue()).length > 20);
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('link', { name: url }).click();
  await says(title(page), url);

  await page.getByRole('button', { name: 'Send a test' }).click();
  await until('it arrives', () => received.length > 0);
  assert.ok(received[0].headers['webhook-signature'], JSON.stringify(received[0].headers));
  const deliveries = page.getByRole('table', { name: 'Deliveries' });
  await says(deliveries, /On its way.*500/s);
  await deliveries.getByText('Details').first().click();
  await says(deliveries, /the receiver is ill/);

  answer = 200;
  await page.getByRole('button', { name: 'Send a test' }).click();
  await says(deliveries, /Delivered.*200/s);
  const before = received.length;
  await page.getByRole('button', { name: /^Redeliver/ }).first().click();
  await until('it is sent again', () => received.length > before);
  await page.getByRole('button', { name: 'Rotate the secret' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
  await page.getByRole('dialog', { name: 'The new secret' }).getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: `Delete ${url}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await says(title(page), 'Webhooks');
  await says(page.locator('main'), 'There are no webhooks');
});

test('the bell counts what is new, and empties when it is read', async t => {
  const own = { user: 'notified' };
  const { page, go } = await visit(t, browser, server, { person: own });
  await go('/files');
  await page.getByRole('link', { name: 'Notifications', exact: true }).first().waitFor();
  await server.upload('bad.pdf', broken(), { person: own });
  // Without a reload: the event stream tells of it.
  await page.getByRole('link', { name: 'Notifications, 1 unread' }).click();
  await says(title(page), 'Notifications');
  await says(page.locator('main'), /New\s*Failed.*bad\.pdf/s);
  await page.getByRole('button', { name: 'Mark all as read' }).click();
  await says(page.locator('main'), 'All are read.');
  await gone(page.getByRole('link', { name: 'Notifications, 1 unread' }));
});

test('an operator changes the limits of a tenant, and gives the default back', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/quotas');
  const tenants = page.getByRole('table', { name: 'Tenants' });
  await page.getByRole('button', { name: 'Change the limits of acme' }).click();
  const dialog = page.getByRole('dialog', { name: 'Limits of acme' });
  await dialog.getByLabel('Default limit of storage').uncheck();
  await dialog.getByLabel('Storage', { exact: true }).fill('2');
  await dialog.getByLabel('Unit').selectOption('GB');
  await dialog.getByLabel('Default limit of files').uncheck();
  await dialog.getByLabel('Files', { exact: true }).fill('1234');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await says(messages(page), 'The limits of acme were changed.');
  await says(tenants, /acme.*of 2 GB own limit.*of 1,234 own limit/s);
  const api = await server.api(person);
  const quota = await api('GET', '/uploads/quota');
  assert.equal(quota.bytes.limit, 2 * 1024 ** 3);
  assert.equal(quota.files.limit, 1234);
  await page.getByRole('button', { name: 'Default limits for acme' }).click();
  await says(messages(page), 'acme has the default limits.');
  await until('it is so', async () => (await api('GET', '/uploads/quota')).bytes.limit === 10 * 1024 ** 3);
  await page.getByLabel('Find a tenant').fill('no-such-tenant');
  await page.getByRole('button', { name: 'Find' }).click();
  await says(page.locator('main'), 'No tenant has “no-such-tenant” in its name.');
});

test('a key is shown once, works, and is refused once it is revoked', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/keys');
  await page.getByRole('button', { name: 'Create a key' }).click();
  await page.getByLabel('Name').fill('nightly backup');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'The key nightly backup' });
  const key = await dialog.getByLabel('Key', { exact: true }).inputValue();
  const status = async () => (await fetch(`${server.base}/api/v2/uploads/files`, { headers: { Authorization: `Bearer ${key}` } })).status;
  assert.equal(await status(), 200);
  await dialog.getByRole('button', { name: 'Done' }).click();
  await gone(dialog);
  assert.ok(!(await page.content()).includes(key), 'it is on the page no more');
  await page.getByRole('button', { name: 'Revoke nightly backup' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await says(page.getByRole('table', { name: 'API keys' }), /nightly backup.*Revoked/s);
  assert.equal(await status(), 401);
});

test('the audit log says who did what, and is filtered by the address', async t => {
  const operator = await server.api(OPERATOR);
  await operator('POST', '/admin/queues/embed/pause');
  await operator('POST', '/admin/queues/embed/resume');
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/audit?scope=all');
  const log = page.getByRole('table', { name: 'Audit log' });
  await says(log, /olga.*resumeQueue.*Done/s);
  await page.getByLabel('Operation').fill('pauseQueue');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL(/action=pauseQueue/);
  await until('only these', async () => !(await log.textContent()).includes('resumeQueue'));
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export as JSON lines' }).click()]);
  assert.equal(download.suggestedFilename(), 'landfall-audit-log.jsonl');
});

test('the settings in force are listed without secrets', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/settings');
  await page.getByLabel('Find a setting').fill('WEBHOOK_ALLOW_PRIVATE');
  await says(page.locator('main'), /1 setting/);
  await says(page.locator('main'), /WEBHOOK_ALLOW_PRIVATE.*true.*environment/s);
  await page.getByLabel('Find a setting').fill('');
  await page.getByLabel('Only those that are not the default').check();
  await says(page.locator('main'), /DATA_DIR/);
  await page.getByLabel('Find a setting').fill('nothing like this');
  await says(page.locator('main'), 'No setting matches');
});

test('re-embedding says what is left, runs, and ends', async t => {
  await reembedded.reaches(await reembedded.upload('one.txt', 'The first text.', { person }), ['ready'], person);
  // An operator changes the model, and starts the server again.
  await reembedded.end('SIGTERM');
  reembedded.settings = { ...reembedded.settings, EMBEDDINGS_URL: `http://127.0.0.1:${model.address().port}/v1`, EMBEDDINGS_MODEL: 'other-model' };
  await reembedded.begin();
  const { page, go } = await visit(t, browser, reembedded, { person: OPERATOR });
  await go('/embedding');
  await says(page.locator('main'), /Needed.*1 file has vectors of another model.*other-model/s);
  await page.getByRole('button', { name: 'Start' }).click();
  const dialog = page.getByRole('dialog', { name: 'Embed 1 file again?' });
  await says(dialog, /other-model/);
  await dialog.getByRole('button', { name: 'Start' }).click();
  await says(page.locator('main'), /Up to date.*Every file has vectors of the present model/s);
  await says(page.locator('main'), /by olga/);
  assert.ok(await page.getByRole('button', { name: 'Start' }).isDisabled());
});
