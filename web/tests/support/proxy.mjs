/** A network between the browser and the server: it counts, slows, holds and cuts. */
import { connect, createServer } from 'node:net';

export class Network {
  #sockets = new Set();
  #isCut = false;
  #left = Infinity;
  #waiting = [];
  /** Every request line that went through, in order. */
  requests = [];

  static async to(server) {
    const network = new Network();
    network.#server = createServer(socket => network.#take(socket, server.port));
    await new Promise(done => network.#server.listen(0, '127.0.0.1', done));
    network.base = `http://127.0.0.1:${network.#server.address().port}`;
    return network;
  }

  #server;

  #take(near, port) {
    if (this.#isCut) return near.destroy();
    const far = connect(port, '127.0.0.1');
    const pair = { near, far, isStream: false, isUpload: false };
    this.#sockets.add(pair);
    const end = () => {
      this.#sockets.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on('error', end).on('close', end).setNoDelay(true);
    near.on('data', data => {
      const line = /^(GET|HEAD|POST|PUT|PATCH|DELETE) (\S+) HTTP\/1\.1\r\n/.exec(data.subarray(0, 2_000).toString('latin1'));
      if (line) {
        pair.isStream = line[2].startsWith('/api/v2/uploads/events');
        pair.isUpload = line[1] === 'PATCH';
        this.requests.push(`${line[1]} ${line[2]}`);
      }
      if (pair.isUpload) this.#pass(near, far, data);
      else far.write(data);
    });
    far.on('data', data => near.write(data));
  }

  #pass(near, far, data) {
    this.#left -= data.length;
    if (this.#left >= 0) return void far.write(data);
    near.pause();
    this.#waiting.push(() => {
      far.write(data);
      near.resume();
    });
  }

  /** Lets so many more bytes of resumable uploads reach the server, and holds the rest. */
  hold(bytes) {
    this.#left = bytes;
  }

  release() {
    this.#left = Infinity;
    for (const go of this.#waiting.splice(0)) go();
  }

  /** All connections break, and no new one is made. */
  cut() {
    this.#isCut = true;
    this.#left = Infinity;
    this.#waiting = [];
    for (const { near, far } of this.#sockets) {
      near.destroy();
      far.destroy();
    }
  }

  mend() {
    this.#isCut = false;
  }

  /** How many streams of events are open now. */
  get streams() {
    return [...this.#sockets].filter(pair => pair.isStream).length;
  }

  close() {
    this.cut();
    this.#server.close();
  }
}
