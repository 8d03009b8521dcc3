/**
 * Takes pictures of ten screens:
 *
 *     LANDFALL_PROGRAM=… LANDFALL_DOCUMENTS=… node tests/screenshots.mjs FOLDER
 *
 * LANDFALL_DOCUMENTS is a folder with documents, in folders by kind.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { go, launch, says, title, visit } from './support/browser.mjs';
import { large } from './support/documents.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const [folder] = process.argv.slice(2);
const documents = process.env.LANDFALL_DOCUMENTS;
if (!folder || !documents) throw new Error('the folder for the pictures, and LANDFALL_DOCUMENTS, are needed');

const PERSON = { user: 'ada', tenant: 'acme', role: 'operator' };
const COLLEAGUE = { user: 'grace', tenant: 'acme' };
const MB = 1 << 20;

const inFolder = kind => {
  try {
    return readdirSync(join(documents, kind)).filter(name => !name.endsWith('.txt') && statSync(join(documents, kind, name)).isFile()).sort().map(name => join(documents, kind, name));
  } catch {
    return [];
  }
};
const baseName = path => path.split('/').at(-1);

/** What `visit` does at the end of a test. */
const endings = [];
const t = { after: ending => endings.push(ending) };
const servers = await Promise.all([Server.start(), Server.start({ EMBEDDINGS_URL: 'http://127.0.0.1:9/v1', EMBEDDINGS_MODEL: 'text-embedding-3-small', CIRCUIT_THRESHOLD: '1' })]);
const [server, withoutService] = servers;
const browser = await launch();
try {
  const sent = [];
  for (const kind of ['pdf', 'docx', 'pptx', 'xlsx', 'html', 'odt', 'eml'])
    for (const [index, path] of inFolder(kind).entries()) sent.push(await server.upload(baseName(path), readFileSync(path), { person: index % 4 === 3 ? COLLEAGUE : PERSON }));
  for (const path of inFolder('hostile')) await server.upload(baseName(path), readFileSync(path), { person: PERSON });
  const operator = await server.api(PERSON);
  await until('all have ended', async () => {
    const { total, byStatus } = await operator('GET', '/uploads/files/counts?scope=all');
    return total === (byStatus.ready ?? 0) + (byStatus.failed ?? 0);
  }, 300_000);

  // The browser writes errors of its own where the pictures show something that is broken.
  const options = { person: PERSON, allowed: [/./] };
  const { page, base, context, network } = await visit(t, browser, server, { ...options, throughNetwork: true });
  const picture = async (name, of = page) => {
    await until('it has loaded', async () => (await of.getByText(/^(Loading|Looking|Searching|Opening)[^.]*…$/).count()) === 0);
    await of.screenshot({ path: join(folder, `${name}.png`) });
  };

  await go(page, base, '/files?scope=tenant');
  await page.locator('[data-row]').first().waitFor();
  await picture('files');

  await go(page, base, '/search?q=who%20invented%20the%20word%20processor');
  await page.locator('[data-hit-link]').first().waitFor();
  await picture('search');
  await page.getByRole('listitem').filter({ hasText: '.pdf' }).locator('[data-hit-link]').first().click();
  await page.locator('mark#hit').waitFor();
  await page.locator('[data-hit]').first().waitFor();
  await picture('file');

  await go(page, base, '/failures');
  await page.getByText('What helps').first().waitFor();
  await picture('failures');

  await go(page, base, '/overview?scope=all');
  await page.getByRole('table', { name: 'Workers' }).waitFor();
  await picture('overview');

  await page.emulateMedia({ colorScheme: 'dark' });
  await go(page, base, '/files?scope=all&sort=fileName&order=asc');
  await page.locator('[data-row]').first().waitFor();
  await picture('dark');
  await page.emulateMedia({ colorScheme: 'light' });

  await go(page, base, '/upload');
  network.hold(24 * MB);
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Choose files' }).click()]);
  await chooser.setFiles([
    ...inFolder('pdf').slice(0, 4).map(path => ({ name: baseName(path), mimeType: 'application/pdf', buffer: readFileSync(path) })),
    { name: 'annual-report-2026-with-all-appendices.pdf', mimeType: 'application/pdf', buffer: large(26 * MB) },
    { name: 'scanned-contracts.pdf', mimeType: 'application/pdf', buffer: large(17 * MB) },
  ]);
  await until('both are on their way', async () => (await page.getByRole('progressbar', { name: /^Upload of/ }).count()) === 2);
  await until('they moved', async () => Number(await page.getByRole('progressbar', { name: 'All uploads' }).getAttribute('aria-valuenow')) > 30);
  await picture('upload');
  network.release();
  await page.getByRole('button', { name: 'Cancel all' }).click().catch(() => {});
  await page.getByRole('button', { name: 'Cancel the uploads' }).click().catch(() => {});

  const phone = await context.newPage();
  await phone.setViewportSize({ width: 360, height: 740 });
  await go(phone, base, '/files?scope=tenant&status=failed');
  await phone.locator('[data-row]').first().waitFor();
  await picture('phone', phone);
  await phone.close();

  const waiting = await visit(t, browser, withoutService, options);
  for (const path of [...inFolder('docx').slice(0, 5), ...inFolder('pdf').slice(0, 4)]) await withoutService.upload(baseName(path), readFileSync(path), { person: PERSON });
  await waiting.go('/waiting?scope=all');
  await says(waiting.page.locator('main'), /The embedding service does not work/, 60_000);
  await picture('waiting', waiting.page);

  // An operation that lasts: thousands of small files.
  const batch = await operator('POST', '/uploads/batches', { fileCount: 400 });
  await operator('POST', '/admin/queues/extract/pause');
  for (let index = 0; index < 400; index += 1) await server.upload(`invoice-${String(index).padStart(4, '0')}.txt`, `Invoice ${index}.`, { person: PERSON, batchId: batch.batchId });
  await go(page, base, `/files?batchId=${batch.batchId}`);
  await page.getByLabel('Select the files on this screen').check();
  await page.getByRole('button', { name: /that match$/ }).click();
  await page.getByRole('region', { name: 'Selected files' }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: /^Delete/ }).click();
  await says(page.getByRole('region', { name: 'Selected files' }), /deleted/);
  await page.screenshot({ path: join(folder, 'bulk.png') });
  await title(page).waitFor();
} finally {
  for (const ending of endings) await ending().catch(error => console.error(String(error)));
  await browser.close();
  await Promise.all(servers.map(one => one.stop()));
}
