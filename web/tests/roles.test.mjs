/** Members, administrators of a tenant and operators: what each sees. And many tabs of one person. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, says, title, visit } from './support/browser.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const MEMBER = { user: 'ada', tenant: 'acme' };
const COLLEAGUE = { user: 'bob', tenant: 'acme' };
const STRANGER = { user: 'eve', tenant: 'other' };
const ADMIN = { user: 'carla', tenant: 'acme', role: 'tenant_admin' };
const OPERATOR = { user: 'olga', tenant: 'operations', role: 'operator' };
const TABS = 20;
let server, browser, ids;
before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  ids = {};
  for (const person of [MEMBER, COLLEAGUE, STRANGER]) ids[person.user] = await server.upload(`of-${person.user}.txt`, `The text of ${person.user}.`, { person });
  for (const person of [MEMBER, COLLEAGUE, STRANGER]) await server.reaches(ids[person.user], ['ready'], person);
});
after(() => Promise.all([browser?.close(), server?.stop()]));

const screens = page => page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allTextContents();
const names = async page => (await page.locator('[data-row-link]').allTextContents()).sort();
const shows = (page, expected) => until(`the list shows ${expected}`, async () => JSON.stringify(await names(page)) === JSON.stringify(expected));
const FOR_OPERATORS = ['Maintenance jobs', 'Re-embedding', 'Settings in force'];

test('a member sees no screens of operators, and no files of others', async t => {
  const { page, go, base } = await visit(t, browser, server, { person: MEMBER, allowed: [/status of 40[34]/] });
  await go('/files?scope=all');
  await shows(page, ['of-ada.txt']);
  assert.equal(await page.getByLabel('Whose files').count(), 0, 'there is nothing to switch');
  const offered = await screens(page);
  for (const name of [...FOR_OPERATORS, 'Audit log']) assert.ok(!offered.includes(name), name);
  // Not by the address either, and without an entry in the audit log.
  for (const path of ['/jobs', '/settings', '/embedding', '/audit']) {
    await go(path);
    await says(page.locator('main'), /This screen is for /);
  }
  await page.goto(`${base}/console/files/${ids.bob}`);
  await says(page.locator('main'), /FILE_NOT_FOUND/);
  await go('/overview');
  await says(page.locator('main'), /Ready in 24 hours\s*1/);
  assert.equal(await page.getByRole('table', { name: 'Workers' }).count(), 0);
  await go('/search?q=text');
  for (const name of await page.locator('[data-hit-link]').allTextContents()) assert.equal(name, 'of-ada.txt');
});

test('an administrator of a tenant sees the files of the tenant, and no others', async t => {
  const { page, go } = await visit(t, browser, server, { person: ADMIN });
  await go('/files');
  await says(page.locator('main'), 'No files yet');
  await page.getByLabel('Whose files').selectOption({ label: 'My tenant' });
  await page.waitForURL(/scope=tenant/);
  await shows(page, ['of-ada.txt', 'of-bob.txt']);
  assert.deepEqual(await page.getByLabel('Whose files').locator('option').allTextContents(), ['Mine', 'My tenant']);
  const offered = await screens(page);
  assert.ok(offered.includes('Audit log'));
  for (const name of FOR_OPERATORS) assert.ok(!offered.includes(name), name);
  // The scope stays from screen to screen.
  await page.getByRole('link', { name: 'Overview' }).click();
  await says(title(page), 'Overview');
  await says(page.locator('main'), 'The files of your tenant.');
});

test('an operator switches between their own files, their tenant and all', async t => {
  const { page, go } = await visit(t, browser, server, { person: OPERATOR });
  await go('/files');
  await says(page.locator('main'), 'No files yet');
  await page.getByLabel('Whose files').selectOption({ label: 'All tenants' });
  await shows(page, ['of-ada.txt', 'of-bob.txt', 'of-eve.txt']);
  await says(page.locator('[data-row]').filter({ hasText: 'of-eve.txt' }), 'eve · other');
  await page.getByRole('button', { name: /^Filters/ }).click();
  await page.getByLabel('Tenant').fill('acme');
  await page.getByLabel('Tenant').press('Enter');
  await shows(page, ['of-ada.txt', 'of-bob.txt']);
  await page.getByLabel('Owner').fill('bob');
  await page.getByLabel('Owner').press('Enter');
  await shows(page, ['of-bob.txt']);
  const offered = await screens(page);
  for (const name of [...FOR_OPERATORS, 'Audit log']) assert.ok(offered.includes(name), name);
});

test('twenty tabs share one stream of events, and another takes over when it is closed', async t => {
  const { page, go, context, base, network } = await visit(t, browser, server, { person: MEMBER, throughNetwork: true });
  await go('/files');
  await until('one stream is open', () => network.streams === 1);
  const tabs = [page];
  while (tabs.length < TABS) {
    const tab = await context.newPage();
    await tab.goto(`${base}/console/files`);
    await title(tab).waitFor();
    tabs.push(tab);
  }
  assert.equal(network.streams, 1, 'twenty tabs have one stream');
  assert.equal(network.requests.filter(line => line.startsWith('GET /api/v2/uploads/events')).length, 1);
  await server.upload('for-all-tabs.txt', 'Every tab shows it.', { person: MEMBER });
  for (const tab of tabs) await tab.getByRole('link', { name: 'for-all-tabs.txt' }).waitFor();

  await page.close();
  await until('another tab reads the events', () => network.streams === 1 && network.requests.filter(line => line.startsWith('GET /api/v2/uploads/events')).length === 2);
  await server.upload('after-the-change.txt', 'And so they do afterwards.', { person: MEMBER });
  for (const tab of tabs.slice(1)) await tab.getByRole('link', { name: 'after-the-change.txt' }).waitFor();
});
