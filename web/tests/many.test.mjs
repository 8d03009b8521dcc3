/** A hundred thousand files: the list stays quick, and what is done with all of them shows its progress and stops. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { launch, says, title, visit } from './support/browser.mjs';
import { Server } from './support/server.mjs';
import { until } from './support/until.mjs';

const MANY = 99_999;
const person = { user: 'archivist', tenant: 'archive' };
let server, browser;

/** Copies the rows of a file that is ready. The totals that the server keeps grow with it. */
const COPY = `
import sqlite3, sys, time
database, count = sqlite3.connect(sys.argv[1]), int(sys.argv[2])
database.execute('PRAGMA synchronous = OFF')
database.execute('PRAGMA cache_size = -500000')
columns = [row[1] for row in database.execute('PRAGMA table_info(files)')]
# Ids are ordered by time, as the server makes them: the copies are older than the file itself.
values = dict.fromkeys(columns)
values.update({name: 'files.' + name for name in columns})
values['id'] = "unhex_(printf('%%012x7%%03x8%%015x', %d + n, n & 4095, n))" % (int(time.time() * 1000) - count - 60000)
values['file_name'] = "printf('scan-%06d.txt', n)"
values['blob_key'] = "files.blob_key || '-' || n"
database.create_function('unhex_', 1, bytes.fromhex, deterministic=True)
database.execute(
    'WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?) INSERT INTO files (%s) SELECT %s FROM numbers, files WHERE files.file_name = ?'
    % (', '.join(columns), ', '.join(values[name] for name in columns)), [count, 'template.txt'])
database.execute('''INSERT INTO listed_files (id, tenant_id, user_id, file_name, size_bytes, created_at)
    SELECT id, tenant_id, user_id, file_name, size_bytes, created_at FROM files WHERE file_name <> ?''', ['template.txt'])
database.execute('UPDATE user_totals SET ready = ready + ?', [count])
database.execute(
    'UPDATE tenants SET used_files = used_files + ?1, used_bytes = used_bytes + ?1 * (SELECT size_bytes FROM files WHERE file_name = ?2)',
    [count, 'template.txt'])
database.commit()
`;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  await server.reaches(await server.upload('template.txt', 'A scan.', { person }), ['ready'], person);
  // Alone with the database this takes seconds.
  await server.end('SIGTERM');
  execFileSync('python3', ['-c', COPY, `${server.folder}/landfall.db`, String(MANY)], { stdio: 'inherit' });
  await server.begin();
});
after(() => Promise.all([browser?.close(), server?.stop()]));

test('row 5,000 of 100,000 is reached by scrolling, with few elements and bounded requests', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  const asked = [];
  page.on('request', request => request.url().includes('/api/v2/uploads/files?') && asked.push(new URL(request.url())));
  await go('/files');
  await says(page.locator('main'), /100,00[01]\+? files/);
  const began = asked.length;
  const last = () => page.evaluate(() => Math.max(-1, ...[...document.querySelectorAll('[data-row]')].map(row => Number(row.dataset.row))));
  await until('the list has rows', async () => (await last()) > 0);
  for (let reached = await last(); reached < 5_000; ) {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    const before = reached;
    await until(`more than row ${before}`, async () => (reached = await last()) > before);
  }
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(elements < 3_000, `${elements} elements`);
  assert.ok((await page.locator('[data-row]').count()) < 80);
  for (const url of asked) assert.equal(url.searchParams.get('limit'), '100', 'one page at a time');
  assert.ok(asked.length - began < 120, `${asked.length - began} requests for 50 pages`);
  // The rows are those that belong there: the newest first.
  const shown = await page.evaluate(() => [...document.querySelectorAll('[data-row]')].map(row => [Number(row.dataset.row), row.querySelector('[data-row-link]').textContent]));
  for (const [index, name] of shown.slice(0, 20)) assert.equal(name, `scan-${String(MANY - index).padStart(6, '0')}.txt`);
  // And back at the top.
  await page.evaluate(() => scrollTo(0, 0));
  await page.getByRole('link', { name: 'template.txt' }).waitFor();
});

test('the largest filters answer at once', async t => {
  const { page, go } = await visit(t, browser, server, { person });
  await go('/files?sort=fileName&order=asc');
  await page.getByRole('link', { name: 'scan-000000.txt' }).waitFor();
  await page.getByLabel('Filter by name').fill('scan-09999');
  await says(page.locator('main'), '9 match');
  await page.getByRole('link', { name: 'scan-099990.txt' }).waitFor();
});

test('deleting all that match shows its progress, and Stop stops it', async t => {
  const { page, go, context, base } = await visit(t, browser, server, { person });
  await go('/files?status=ready');
  await page.getByLabel('Select the files on this screen').check();
  await page.getByRole('button', { name: /Select all 100,00\d\+? that match/ }).click();
  const region = page.getByRole('region', { name: 'Selected files' });
  await region.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog');
  await says(dialog, /All ready files\./);
  await dialog.getByRole('button', { name: /^Delete / }).click();
  const bar = page.getByRole('progressbar', { name: /^Delete: / });
  await bar.waitFor();
  await says(region, /[1-9][\d,]* files deleted/);
  const other = await context.newPage();
  await other.goto(`${base}/console/bulk`);
  await says(title(other), 'Bulk operations');
  await says(other.getByRole('table', { name: 'Running' }), /Delete.*Running.*of 100,00\d/s);
  await region.getByRole('button', { name: 'Stop' }).click();
  await says(region, /Stopped/);
  await says(other.getByRole('table', { name: 'History' }), /Delete.*Stopped/s);
  const api = await server.api(person);
  const { operations } = await api('GET', '/uploads/operations');
  assert.equal(operations[0].status, 'stopped');
  assert.ok(operations[0].doneCount < MANY, `${operations[0].doneCount}`);
  const { total } = await api('GET', '/uploads/files/counts?status=ready');
  assert.ok(total > 0, 'the others are still there');
});
