// A person in a real browser (Chromium, driven by playwright-core): signs in with the provider, uploads a file, signs in again
// after the session has ended, and signs out.
//
//     node page.mjs URL FILE SCREENSHOTS            (LANDFALL_TEST_NODE, CHROMIUM)
//
// Prints a line for each step that succeeded.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const { chromium } = require('playwright-core');
const [base, file, shots] = process.argv.slice(2);
const done = step => process.stdout.write(`${JSON.stringify({ step })}\n`);
const fail = why => { process.stdout.write(`${JSON.stringify({ failed: why })}\n`); process.exit(1); };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
context.setDefaultTimeout(60000);
const page = await context.newPage();
// What the policy of the page forbids, and what its script gets wrong.
const complaints = [];
page.on('console', message => { if (message.type() === 'error' && message.location().url.startsWith(base) && !/status of 401/.test(message.text())) complaints.push(message.text()); });
page.on('pageerror', error => complaints.push(String(error)));

const button = name => page.getByRole('button', { name, exact: true });

try {
  await page.goto(base);
  await button('Sign in').click();
  await page.fill('input[name=login]', 'ada@acme');
  await page.fill('input[name=password]', 'x');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.getByRole('button', { name: /^Account of ada/ }).waitFor();
  await page.getByText('No files yet').waitFor();
  // No script can read the session.
  const [readable, kept] = await page.evaluate(() => [document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage })]);
  if (readable !== '' || (await context.cookies(base)).some(cookie => kept.includes(cookie.value))) fail('a script can read something');
  done('signed in');

  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), button('Choose files').click()]);
  await chooser.setFiles(file);
  await page.getByRole('row').filter({ hasText: file.split('/').at(-1) }).filter({ hasText: 'ready' }).waitFor();
  await page.screenshot({ path: `${shots}/page-signed-in.png` });
  done('uploaded');

  await page.getByRole('link', { name: 'API keys' }).click();
  await button('Create a key').click();
  await page.getByLabel('Name').fill('nightly backup');
  await button('Create').click();
  const made = page.getByRole('dialog', { name: 'The key nightly backup' });
  const key = await made.getByLabel('Key', { exact: true }).inputValue();
  const withKey = () => fetch(`${base}/api/v2/uploads/files`, { headers: { Authorization: `Bearer ${key}` } });
  if ((await withKey()).status !== 200) fail('the key is not accepted');
  await page.screenshot({ path: `${shots}/page-keys.png` });
  await made.getByRole('button', { name: 'Done' }).click();
  await made.waitFor({ state: 'hidden' });
  if ((await page.content()).includes(key)) fail('the key is still on the page');
  await button('Revoke nightly backup').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('row').filter({ hasText: 'nightly backup' }).filter({ hasText: 'Revoked' }).waitFor();
  if ((await withKey()).status !== 401) fail('the revoked key is accepted');
  done('created and revoked a key');

  // A page on another port of this machine: for the browser the same site, so it sends the cookie.
  const evil = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<form method=post enctype=text/plain action="${base}/api/v2/uploads/files/init"><input name='{"fileName":"x.txt","fileSize":1,"a":"' value='"}'></form><script>document.forms[0].submit()</script>`);
  }).listen(0, '127.0.0.1');
  await new Promise(listening => evil.on('listening', listening));
  const attacked = await context.newPage();
  const answers = [];
  attacked.on('response', response => { if (response.url().startsWith(base)) answers.push(response); });
  await attacked.goto(`http://127.0.0.1:${evil.address().port}/`);
  await attacked.waitForURL(`${base}/**`);
  const sent = await answers[0].request().allHeaders();
  if (!/landfall-session/.test(sent.cookie ?? '')) fail('the browser did not send the cookie');
  if (answers[0].status() !== 403 || !(await attacked.textContent('body')).includes('CROSS_SITE_REQUEST')) fail(`answered with ${answers[0].status()}`);
  await attacked.close();
  evil.close();
  done('another site refused');

  // The session ends while the person types. The provider still knows the person.
  await page.getByRole('link', { name: 'Search', exact: true }).click();
  const query = page.getByRole('searchbox', { name: 'Search in your documents' });
  await query.fill('who counts the boats');
  const ended = (await context.cookies(base)).filter(cookie => cookie.name.startsWith('landfall-session'));
  await context.clearCookies({ name: ended[0].name });
  await button('Search').click();
  const again = page.getByRole('dialog', { name: 'Your session has ended' });
  await again.waitFor();
  await page.screenshot({ path: `${shots}/page-session-ended.png` });
  const [tab] = await Promise.all([context.waitForEvent('page'), button('Sign in in a new tab').click()]);
  // The provider asks for consent again, and not for the password.
  await Promise.all([tab.waitForEvent('close'), tab.click('button[type=submit]')]);
  await again.waitFor({ state: 'hidden' });
  if (await query.inputValue() !== 'who counts the boats') fail('what was typed is lost');
  // The search that waited goes on by itself.
  await page.getByRole('main').getByRole('link', { name: file.split('/').at(-1) }).first().waitFor();
  done('signed in again');

  await page.getByRole('button', { name: /^Account of ada/ }).click();
  await Promise.all([page.waitForURL(/session\/end/), page.getByRole('menuitem', { name: 'Sign out' }).click()]);
  await page.goto(base);
  await button('Sign in').waitFor();
  if ((await context.cookies(base)).some(cookie => cookie.name.startsWith('landfall-session'))) fail('the cookie is still there');
  await page.screenshot({ path: `${shots}/page-signed-out.png` });
  if (complaints.length) fail(complaints.join('; '));
  done('signed out');
} catch (error) {
  await page.screenshot({ path: `${shots}/page-failed.png` }).catch(() => {});
  fail(`${error} ${complaints.join('; ')}`);
} finally {
  await browser.close();
}
