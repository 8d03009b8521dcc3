// A person in a real browser who opens links of `landfall open`: their own, and one that another person sent.
//
//     node link.mjs URL OWN_CODE FOREIGN_CODE SCREENSHOTS            (LANDFALL_TEST_NODE, CHROMIUM)
//
// Prints a line for each step that succeeded.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const { chromium } = require('playwright-core');
const [base, own, foreign, shots] = process.argv.slice(2);
const done = step => process.stdout.write(`${JSON.stringify({ step })}\n`);
const fail = why => { process.stdout.write(`${JSON.stringify({ failed: why })}\n`); process.exit(1); };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1100, height: 700 } });
context.setDefaultTimeout(60000);
const page = await context.newPage();
const open = async hash => { await page.goto('about:blank'); await page.goto(`${base}/#${hash}`); };

const account = page.getByRole('button', { name: /^Account of ada/ });
const asked = page.getByRole('main').locator('p').filter({ hasText: 'This link signs you in' });

try {
  // What earlier versions printed: a token in the address signs in no more.
  await open('token=eyJhbGciOiJIUzI1NiJ9.e30.x');
  await page.getByText('landfall open').waitFor();
  if (await account.isVisible()) fail('a token in the address signed in');
  done('a token is ignored');

  await open(`open=${own}`);
  await asked.filter({ hasText: 'as ada of the tenant acme' }).waitFor();
  if (await page.evaluate(() => location.hash) !== '') fail('the code stays in the address');
  if ((await context.cookies()).length) fail('it signed in without being asked');
  await page.screenshot({ path: `${shots}/page-link.png` });
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await account.waitFor();
  done('asked and signed in');

  await open(`open=${foreign}`);
  await asked.filter({ hasText: 'as mallory' }).waitFor();
  if (!(await asked.textContent()).includes('You are signed in as ada')) fail('it does not say who is signed in');
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await account.waitFor();
  await page.reload();
  await account.waitFor();
  done('another person\'s link declined');

  await open(`open=${own}`);
  await page.getByRole('alert').filter({ hasText: 'was used' }).waitFor();
  await account.waitFor();
  done('used link refused');
} catch (error) {
  await page.screenshot({ path: `${shots}/page-failed.png` }).catch(() => {});
  fail(String(error));
} finally {
  await browser.close();
}
