/** People with a browser. A test fails when the console writes an error, breaks its policy, or asks another host for anything. */
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { Network } from './proxy.mjs';
import { until } from './until.mjs';

const PATIENCE_MS = 20_000;

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
  });

/**
 * A person who is signed in, in a browser of their own, until the test ends. `allowed` are the errors that the test provokes:
 * a browser itself writes one for each request that fails. `throughNetwork` puts a network between them that can be cut.
 */
export const visit = async (t, browser, server, { person = {}, isSignedIn = true, allowed = [], throughNetwork = false, ...options } = {}) => {
  const network = throughNetwork ? await Network.to(server) : null;
  const base = network?.base ?? server.base;
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  const complain = text => allowed.some(pattern => pattern.test(text)) || complaints.push(text);
  context.on('console', message => {
    if (message.type() === 'error' || /content security policy|trusted ?type/i.test(message.text())) complain(`${message.text()} (${message.location().url})`);
  });
  context.on('weberror', error => complain(`exception: ${error.error().stack ?? error.error()}`));
  context.on('request', request => {
    const url = new URL(request.url());
    if (!['blob:', 'data:'].includes(url.protocol) && url.origin !== base) complain(`a request to another host: ${url}`);
  });
  // The policy is also broken by what the browser only reports to the page.
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', event => console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  t.after(async () => {
    await context.close();
    network?.close();
    assert.deepEqual(complaints, [], 'the console works without errors');
  });
  if (isSignedIn) {
    const response = await context.request.post(`${base}/auth/session`, { headers: { Authorization: `Bearer ${await server.token(person)}` } });
    assert.equal(response.status(), 200, await response.text());
  }
  const page = await context.newPage();
  return { context, page, base, network, go: path => go(page, base, path) };
};

/** Opens a screen and waits until it has its title. */
export const go = async (page, base, path) => {
  await page.goto(`${base}/console${path}`);
  await title(page).waitFor();
};

export const title = page => page.locator('#screen-title');

/** Waits until an element says something. */
export const says = async (locator, pattern, ms = PATIENCE_MS) => {
  let text = '';
  await until(
    `${locator} says ${pattern}`,
    async () => {
      text = (await locator.first().textContent({ timeout: 1_000 })) ?? '';
      return typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text);
    },
    ms,
  ).catch(error => {
    throw new Error(`${error.message}; it says: ${text}`);
  });
  return text;
};

export const gone = locator => locator.first().waitFor({ state: 'hidden' });

/** The row of a file in the list. */
export const row = (page, name) => page.locator('[data-row]', { has: page.getByRole('link', { name, exact: true }) });

/** Presses a button that opens the dialog of the browser, and chooses files in it. */
export const choose = async (page, button, files) => {
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), button.click()]);
  await chooser.setFiles(files);
};

export const messages = page => page.getByRole('region', { name: 'Messages' });
