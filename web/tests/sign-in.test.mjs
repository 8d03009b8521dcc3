/** Who may use the console, and how people sign in, out, and in again. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { launch, gone, says, title, visit } from './support/browser.mjs';
import { Server } from './support/server.mjs';

let server, browser;
before(async () => ([server, browser] = await Promise.all([Server.start(), launch()])));
after(() => Promise.all([browser?.close(), server?.stop()]));

const REFUSED = [/status of 401/, /status of 40[0-9]/];
const account = page => page.getByRole('button', { name: /^Account of/ });
const signInWith = async (page, token) => {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in with a token' }).click();
};

test('a person signs in with a token, and no script can read it', async t => {
  const { page, context, base } = await visit(t, browser, server, { isSignedIn: false, allowed: REFUSED });
  await page.goto(`${base}/console/files?status=failed`);
  await page.getByRole('heading', { name: 'Sign in to Landfall' }).waitFor();
  await signInWith(page, 'eyJhbGciOiJIUzI1NiJ9.e30.wrong');
  await says(page.getByRole('alert'), /token/i);
  await signInWith(page, await server.token({ user: 'ada' }));
  await says(title(page), 'Files');
  assert.match(page.url(), /\/console\/files\?status=failed$/, 'the screen that was asked for');
  await page.getByRole('button', { name: 'Account of ada' }).waitFor();
  const [cookie] = await context.cookies();
  const [readable, kept] = await page.evaluate(() => [document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage })]);
  assert.equal(readable, '');
  assert.ok(!kept.includes(cookie.value) && !kept.includes('eyJ'), kept);
  assert.ok(cookie.httpOnly && cookie.sameSite !== 'None', JSON.stringify(cookie));
});

test('a link of `landfall open` asks first, and signs in once', async t => {
  const { page, context } = await visit(t, browser, server, { isSignedIn: false, allowed: REFUSED });
  const link = await server.link('--user', 'ada', '--tenant', 'acme');
  await page.goto(link);
  await says(page.locator('main'), /signs you in as ada of the tenant acme/);
  assert.equal(await page.evaluate(() => location.hash), '', 'the code does not stay in the address');
  assert.deepEqual(await context.cookies(), [], 'nobody is signed in without being asked');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Account of ada' }).waitFor();
  await page.goto('about:blank');
  await page.goto(link);
  await says(page.getByRole('alert'), /used/);
  await page.getByRole('button', { name: 'Account of ada' }).waitFor();
});

test('signing out ends the session in every tab', async t => {
  const { page, context, go, base } = await visit(t, browser, server, { allowed: REFUSED });
  await go('/files');
  const other = await context.newPage();
  await other.goto(`${base}/console/search`);
  await title(other).waitFor();
  await account(page).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  for (const tab of [page, other]) await says(tab.locator('main'), /You are signed out/);
  assert.deepEqual((await context.cookies()).filter(cookie => /session/.test(cookie.name)), []);
  await page.goto(`${base}/console/files`);
  await page.getByLabel('Token').waitFor();
});

test('a session that ends while a person types keeps what was typed, and goes on', async t => {
  await server.reaches(await server.upload('harbour.txt', 'The lighthouse keeper counts the boats in the harbour.'));
  const { page, context, go } = await visit(t, browser, server, { allowed: REFUSED });
  await go('/search');
  const field = page.getByRole('searchbox', { name: 'Search in your documents' });
  await field.fill('who counts the boats');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  assert.ok(await dialog.isVisible(), 'behind it nothing works, so it cannot be closed');
  await signInWith(page, await server.token());
  await gone(dialog);
  assert.equal(await field.inputValue(), 'who counts the boats');
  await page.getByRole('link', { name: 'harbour.txt' }).waitFor();

  // A form with more than one field.
  await go('/keys');
  await page.getByRole('button', { name: 'Create a key' }).click();
  await page.getByLabel('Name').fill('nightly backup');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await dialog.waitFor();
  await signInWith(page, await server.token());
  await page.getByRole('dialog', { name: 'The key nightly backup' }).waitFor();
});

test('another person who signs in gets nothing of the first', async t => {
  await server.upload('of-ada.txt', 'secret');
  const { page, context, go } = await visit(t, browser, server, { allowed: REFUSED });
  await go('/files');
  await page.getByRole('link', { name: 'of-ada.txt' }).waitFor();
  await context.clearCookies();
  await page.getByLabel('Filter by name').fill('of');
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await signInWith(page, await server.token({ user: 'mallory', tenant: 'other' }));
  await page.getByRole('button', { name: 'Account of mallory' }).waitFor();
  await gone(page.getByRole('link', { name: 'of-ada.txt' }));
});

/** As it is on the wire. */
const raw = (path, headers = {}) =>
  new Promise((resolve, reject) => {
    request(`${server.base}${path}`, { headers }, response => {
      const parts = [];
      response.on('data', part => parts.push(part)).on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
    }).on('error', reject).end();
  });

test('assets are compressed and kept for ever, and the page has a strict policy', async () => {
  const page = await raw('/console/files');
  assert.equal(page.status, 200);
  const policy = page.headers['content-security-policy'];
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /require-trusted-types-for 'script'/);
  assert.doesNotMatch(policy, /unsafe/);
  const html = page.body.toString();
  assert.doesNotMatch(html, /https?:\/\//, 'nothing comes from elsewhere');
  const names = [...html.matchAll(/\/assets\/[^"]+\.(?:js|css)/g)].map(([name]) => name);
  assert.ok(names.length >= 2, html);
  for (const name of names) {
    const plain = await raw(name);
    const small = await raw(name, { 'Accept-Encoding': 'gzip' });
    assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable', name);
    assert.equal(plain.headers['content-encoding'], undefined);
    // What is tiny would only grow.
    if (plain.body.length < 1_024) continue;
    assert.equal(small.headers['content-encoding'], 'gzip', name);
    assert.deepEqual(gunzipSync(small.body), plain.body, name);
  }
  assert.equal((await raw('/assets/missing-12345678.js')).status, 404);
});
