/** Every screen in both themes: no rule of accessibility is broken. On a phone nothing needs scrolling to the side. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { violations } from './support/axe.mjs';
import { go, launch, says, title, visit } from './support/browser.mjs';
import { broken, pdf } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const OPERATOR = { user: 'olga', tenant: 'operations', role: 'operator' };
let server, browser, ready, failed, batchId, webhookId;
before(async () => {
  [server, browser] = await Promise.all([Server.start({ WEBHOOK_ALLOW_PRIVATE: 'true' }), launch()]);
  const person = OPERATOR;
  const api = await server.api(person);
  ({ batchId } = await api('POST', '/uploads/batches', { fileCount: 2 }));
  ready = await server.upload('report.pdf', pdf([['The harbour', 'The lighthouse keeper counts the boats.'], ['The end']]), { person });
  failed = await server.upload(`${'a-very-long-name-without-any-break-'.repeat(4)}.pdf`, broken(), { person });
  await server.upload('in-a-batch.txt', 'Words of a batch.', { person, batchId });
  await server.reaches(ready, ['ready'], person);
  await server.reaches(failed, ['failed'], person);
  await api('POST', '/uploads/operations', { action: 'retry', fileIds: [ready] });
  await api('POST', '/admin/jobs/retention/run');
  ({ id: webhookId } = await api('POST', '/webhooks', { url: 'http://127.0.0.1:9/hook', scope: 'own' }));
  await api('POST', `/webhooks/${webhookId}/test`);
  await api('POST', '/keys', { name: 'a key', scopes: ['read'] });
  await api('POST', '/admin/queues/extract/pause');
  await server.upload('waiting.txt', 'It waits, so that there is something to explain.', { person });
});
after(() => Promise.all([browser?.close(), server?.stop()]));

/** One of the addresses names a file that does not exist, for which a browser itself writes an error. */
const NO_SUCH_FILE = [/status of 404/];

/** Every address of the console. */
const screens = () => [
  '/upload', '/files?scope=all', '/files?status=cancelled', `/files/${ready}`, `/files/${failed}`, `/files/${ready}?tab=text&from=0&to=20&page=1`, `/files/${ready}?tab=chunks`, `/files/${ready}?tab=json`,
  '/batches', `/batches/${batchId}`, '/search', '/search?q=lighthouse', '/search?q=zeppelin', '/failures', '/waiting', '/bulk', '/overview', '/overview?days=7', '/jobs', '/orphans', '/webhooks',
  `/webhooks/${webhookId}`, '/notifications', '/quotas', '/keys', '/audit?scope=all', '/settings', '/embedding', '/no-such-screen', '/files/00000000-0000-7000-8000-000000000000',
];

/** Nothing on the screen says that it is loading. */
const settled = page => until('the screen has loaded', async () => (await page.getByText(/^(Loading|Looking|Searching|Opening)[^.]*…$/).count()) === 0);
const open = async (page, base, path) => {
  await go(page, base, path);
  await settled(page);
};

for (const colorScheme of ['light', 'dark'])
  test(`every screen is accessible in the ${colorScheme} theme`, async t => {
    const { page, base } = await visit(t, browser, server, { person: OPERATOR, colorScheme, allowed: NO_SUCH_FILE });
    const found = [];
    for (const path of screens()) {
      await open(page, base, path);
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      found.push(...(await violations(page, path)));
    }
    assert.deepEqual(found, []);
  });

test('dialogs, menus and the sign-in are accessible in both themes', async t => {
  const found = [];
  for (const colorScheme of ['light', 'dark']) {
    const isAccessible = async (page, what) => found.push(...(await violations(page, `${what}, ${colorScheme}`)));
    const { page, base, context } = await visit(t, browser, server, { person: OPERATOR, colorScheme, allowed: [/status of 401/] });
    const press = name => page.getByRole('button', { name }).first().click();
    await open(page, base, '/keys');
    await press('Create a key');
    await isAccessible(page, 'a new key');
    await open(page, base, '/webhooks');
    await press('Add a webhook');
    await isAccessible(page, 'a new webhook');
    await open(page, base, '/quotas');
    await press(/^Change the limits of/);
    await isAccessible(page, 'limits');
    await open(page, base, '/files');
    await press(/^Filters/);
    await page.getByLabel('Error code').waitFor();
    await isAccessible(page, 'more filters');
    await page.keyboard.press('Escape');
    await press(/^Account of/);
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
    await isAccessible(page, 'the menu of the account');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    await isAccessible(page, 'the commands');
    await page.keyboard.press('Escape');
    await page.getByLabel(/^Select .*waiting/).check();
    await isAccessible(page, 'a selection');
    await page.getByRole('region', { name: 'Selected files' }).getByRole('button', { name: 'Delete' }).click();
    await isAccessible(page, 'a question');
    await page.keyboard.press('Escape');
    await context.clearCookies();
    await page.getByLabel('Filter by name').fill('x');
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    await isAccessible(page, 'the end of a session');
    await page.getByRole('button', { name: 'Leave this page' }).click();
    await page.getByLabel('Token').waitFor();
    await isAccessible(page, 'the sign-in');
  }
  assert.deepEqual(found, []);
});

test('on a phone no screen is wider than the window, and the navigation opens', async t => {
  const { page, base } = await visit(t, browser, server, { person: OPERATOR, viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, allowed: NO_SUCH_FILE });
  const tooWide = [];
  for (const path of screens()) {
    await open(page, base, path);
    const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    const wide = content > 360 ? await page.evaluate(() => [...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > 361).slice(-2).map(one => one.outerHTML.slice(0, 200))) : [];
    if (content > 360 || window > 360) tooWide.push(`${path} is ${content} wide: ${wide}`);
  }
  assert.deepEqual(tooWide, []);
  await open(page, base, '/files');
  await page.getByRole('button', { name: 'Open navigation' }).click();
  const navigation = page.getByRole('dialog', { name: 'Navigation' });
  assert.deepEqual(await violations(page, 'the navigation on a phone'), []);
  await navigation.getByRole('link', { name: 'Search' }).click();
  await says(title(page), 'Search');
  await navigation.waitFor({ state: 'hidden' });
});

test('the theme follows the system until a person chooses one', async t => {
  const { page, base } = await visit(t, browser, server, { person: OPERATOR, colorScheme: 'light' });
  await open(page, base, '/files');
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.emulateMedia({ colorScheme: 'dark' });
  await until('it is dark', async () => (await theme()) === 'dark');
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Light' }).click();
  assert.equal(await theme(), 'light');
  await page.reload();
  await title(page).waitFor();
  assert.equal(await theme(), 'light', 'the choice stays');
});

test('nothing moves for a person who asked for less motion', async t => {
  const { page, base } = await visit(t, browser, server, { person: OPERATOR, reducedMotion: 'reduce' });
  await open(page, base, '/upload');
  const longest = await page.evaluate(() => {
    const seconds = value => Math.max(...value.split(',').map(one => (one.trim().endsWith('ms') ? parseFloat(one) / 1000 : parseFloat(one))));
    return Math.max(...[...document.querySelectorAll('*')].flatMap(one => [seconds(getComputedStyle(one).transitionDuration), seconds(getComputedStyle(one).animationDuration)]));
  });
  assert.ok(longest <= 0.001, `${longest} s`);
});
