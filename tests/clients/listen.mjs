// Follows events with third-party clients, disconnects at random moments, and resumes after the last event.
//
//     node listen.mjs ws|sse CUTS URL...        (LANDFALL_TOKEN, LANDFALL_TEST_NODE, LANDFALL_AFTER)
//
// Prints a line for each event, in the order of arrival, and a line when it has disconnected for the last time.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.LANDFALL_TEST_NODE}/`);
const WebSocket = require('ws');
const { EventSource } = require('eventsource');

const [kind, cuts, ...servers] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.LANDFALL_TOKEN}` };
const types = ['stream:open', 'stream:gap', 'stream:reset', 'file:status-changed', 'file:processing-stalled', 'file:cleaned-up',
  'batch:progress', 'batch:completed', 'batch:expired', 'batch:cancelled', 'notification:created'];

let last = process.env.LANDFALL_AFTER;
const print = line => process.stdout.write(`${JSON.stringify(line)}\n`);

function receive(text, cut) {
  const event = JSON.parse(text);
  last = event.id;
  print(event);
  cut.afterEvent();
}

// Disconnects after some events, or after a while without events; never, once there were enough disconnects.
function planCut(number, cut) {
  if (number >= cuts) return { afterEvent() {}, now() {} };
  let left = 1 + Math.floor(Math.random() * 40);
  let timer;
  const now = () => { clearTimeout(timer); cut(); };
  timer = setTimeout(now, Math.random() * 300);
  return { afterEvent() { if (--left === 0) now(); }, now };
}

const address = (server, scheme) => {
  const url = new URL('/api/v2/uploads/events', server);
  if (scheme) url.protocol = scheme;
  if (last !== undefined) url.searchParams.set('after', last);
  return url;
};

const listen = {
  ws: (server, number) => new Promise(closed => {
    const socket = new WebSocket(address(server, 'ws:'), { headers });
    const cut = planCut(number, () => socket.terminate());
    socket.on('message', text => receive(text, cut));
    socket.on('ping', () => print({ ping: true }));
    socket.on('error', () => {});
    socket.on('close', (code, reason) => { print({ close: code, reason: reason.toString() }); cut.now(); closed(); });
  }),
  // Sometimes only the connection breaks, and the client reconnects by itself, with Last-Event-ID.
  sse: (server, number) => new Promise(closed => {
    let breakConnection;
    const broken = new Promise(done => { breakConnection = () => done({ done: true }); });
    let open = 0;
    const source = new EventSource(address(server), {
      fetch: async (url, init) => {
        const response = await fetch(url, { ...init, headers: { ...init.headers, ...headers } });
        if (open++ > 0) return response;
        const { status, headers: responseHeaders, redirected } = response;
        const reader = response.body.getReader();
        const read = () => Promise.race([broken, reader.read()]);
        return { status, headers: responseHeaders, redirected, url: response.url,
          body: { getReader: () => ({ read, cancel: () => reader.cancel() }) } };
      },
    });
    const reconnects = number % 25 === 24 && number < cuts;
    const end = () => { source.close(); closed(); };
    const cut = planCut(number, reconnects ? () => { breakConnection(); setTimeout(end, 2500); } : end);
    for (const type of types) source.addEventListener(type, event => receive(event.data, cut));
  }),
};

for (let number = 0; ; number++) {
  if (number == cuts) print({ cuts: number });
  await listen[kind](servers[number % servers.length], number);
  if (number >= cuts) break;
}
