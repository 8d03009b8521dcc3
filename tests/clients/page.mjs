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

try {
  await page.goto(base);
  await page.click('#provider-sign-in');
  await page.fill('input[name=login]', 'ada@acme');
  await page.fill('input[name=password]', 'x');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.waitForSelector('#user:has-text("ada")');
  await page.waitForSelector('#empty:not([hidden])');
  // No script can read the session.
  if (await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })) !== '{}') fail('a script can read something');
  done('signed in');

  await page.setInputFiles('#file-input', file);
  await page.waitForSelector('.badge.ready');
  await page.screenshot({ path: `${shots}/page-signed-in.png` });
  done('uploaded');

  await page.click('#open-keys');
  await page.fill('#key-name', 'nightly backup');
  await page.click('#key-form button');
  await page.waitForSelector('#new-key:not([hidden])');
  const key = await page.inputValue('#new-key-text');
  const withKey = () => fetch(`${base}/api/v2/uploads/files`, { headers: { Authorization: `Bearer ${key}` } });
  if ((await withKey()).status !== 200) fail('the key is not accepted');
  await page.waitForSelector('#key-list :text("nightly backup")');
  await page.screenshot({ path: `${shots}/page-keys.png` });
  await page.click('#key-list button');
  await page.click('#key-list button.confirming');
  await page.waitForSelector('#key-list :text("revoked")');
  if ((await withKey()).status !== 401) fail('the revoked key is accepted');
  await page.click('#close-keys');
  if (await page.inputValue('#new-key-text') !== '') fail('the key is still on the page');
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
  await page.fill('#query', 'who counts the boats');
  const ended = (await context.cookies(base)).filter(cookie => cookie.name.startsWith('landfall-session'));
  await context.clearCookies({ name: ended[0].name });
  await page.click('.search-form button');
  await page.waitForSelector('#again[open]');
  await page.screenshot({ path: `${shots}/page-session-ended.png` });
  const [tab] = await Promise.all([context.waitForEvent('page'), page.click('#again-sign-in')]);
  // The provider asks for consent again, and not for the password.
  await Promise.all([tab.waitForEvent('close'), tab.click('button[type=submit]')]);
  await page.waitForSelector('#again:not([open])', { state: 'attached' });
  if (await page.inputValue('#query') !== 'who counts the boats') fail('what was typed is lost');
  // The search that waited goes on by itself.
  await page.waitForSelector('#hits li');
  done('signed in again');

  await Promise.all([page.waitForURL(/session\/end/), page.click('#sign-out')]);
  await page.goto(base);
  await page.waitForSelector('#provider-sign-in');
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
