// Listens to events as others' programs do, is cut off at random moments, and comes back after the last event it saw.
//
//     node listen.mjs ws|sse CUTS URL...        (LANDFALL_TOKEN, LANDFALL_TEST_NODE, LANDFALL_AFTER)
//
// Prints a line for each event, in the order in which they came; and one that says when it was cut off for the last time.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const WebSocket = require('ws');
const { EventSource } = require('eventsource');

const [kind, cuts, ...servers] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.LANDFALL_TOKEN}` };
const types = ['stream:open', 'stream:gap', 'file:status-changed', 'file:processing-stalled', 'file:cleaned-up',
  'batch:progress', 'batch:completed', 'batch:expired', 'batch:cancelled', 'notification:created'];

let last = process.env.LANDFALL_AFTER;
const print = line => process.stdout.write(`${JSON.stringify(line)}\n`);

function saw(text, cut) {
  const event = JSON.parse(text);
  last = event.id;
  print(event);
  cut.soon();
}

// A cut comes after some events, or after a while when there are none; or never, when there were enough.
function cutting(number, cut) {
  if (number >= cuts) return { soon() {}, now() {} };
  let left = 1 + Math.floor(Math.random() * 40);
  let timer;
  const now = () => { clearTimeout(timer); cut(); };
  timer = setTimeout(now, Math.random() * 300);
  return { soon() { if (--left === 0) now(); }, now };
}

const address = (server, scheme) => {
  const url = new URL('/api/v2/uploads/events', server);
  if (scheme) url.protocol = scheme;
  if (last !== undefined) url.searchParams.set('after', last);
  return url;
};

const listen = {
  ws: (server, number) => new Promise(gone => {
    const socket = new WebSocket(address(server, 'ws:'), { headers });
    const cut = cutting(number, () => socket.terminate());
    socket.on('message', text => saw(text, cut));
    socket.on('ping', () => print({ ping: true }));
    socket.on('error', () => {});
    socket.on('close', (code, reason) => { print({ close: code, reason: reason.toString() }); cut.now(); gone(); });
  }),
  // Now and then only the connection breaks, and the client comes back by itself, with Last-Event-ID.
  sse: (server, number) => new Promise(gone => {
    let breakOff;
    const broken = new Promise(done => { breakOff = () => done({ done: true }); });
    let open = 0;
    const source = new EventSource(address(server), {
      fetch: async (url, init) => {
        const answer = await fetch(url, { ...init, headers: { ...init.headers, ...headers } });
        if (open++ > 0) return answer;
        const { status, headers: answered, redirected } = answer;
        const reader = answer.body.getReader();
        const read = () => Promise.race([broken, reader.read()]);
        return { status, headers: answered, redirected, url: answer.url,
          body: { getReader: () => ({ read, cancel: () => reader.cancel() }) } };
      },
    });
    const own = number % 25 === 24 && number < cuts;
    const end = () => { source.close(); gone(); };
    const cut = cutting(number, own ? () => { breakOff(); setTimeout(end, 2500); } : end);
    for (const type of types) source.addEventListener(type, event => saw(event.data, cut));
  }),
};

for (let number = 0; ; number++) {
  if (number == cuts) print({ cuts: number });
  await listen[kind](servers[number % servers.length], number);
  if (number >= cuts) break;
}
