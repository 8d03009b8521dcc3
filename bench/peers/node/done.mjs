// A durable row for each file that has passed its last stage, for the peers that do not know about batches.

import pg from 'pg';
import { task } from './harness.mjs';

const pool = new pg.Pool({ connectionString: task.url, max: 10 });

export async function createDone() {
  await pool.query('CREATE TABLE IF NOT EXISTS done (file int)');
}

export async function recordDone(files) {
  await pool.query('INSERT INTO done SELECT unnest($1::int[])', [files]);
}

/** The one number that this query returns. */
export async function number(sql) {
  const { rows } = await pool.query({ text: sql, rowMode: 'array' });
  return Number(rows[0][0]);
}

export async function countDone() {
  return number('SELECT count(DISTINCT file) FROM done');
}
