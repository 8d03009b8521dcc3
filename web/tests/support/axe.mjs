import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe that what is on the screen breaks. A screen that changed while axe looked at it is looked at again. */
export const violations = async (page, what) => {
  const found = await look(page, what);
  return found.length > 0 ? look(page, what) : found;
};

const look = async (page, what) => {
  // The debugger's evaluation is not bound by the policy of the page, which allows no other script.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source);
  return page.evaluate(async where => {
    const result = await globalThis.axe.run(document, { resultTypes: ['violations'], preload: false });
    return result.violations.map(({ id, help, nodes }) => `${where}: ${id}: ${help}: ${nodes.slice(0, 3).map(node => `${node.html.slice(0, 200)} [${node.any.concat(node.all).map(check => check.message).join('; ')}]`).join(' | ')}`);
  }, what);
};
