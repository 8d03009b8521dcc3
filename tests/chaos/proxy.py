"""TCP proxies with faults, in a process of their own.

    python3 proxy.py NAME=LISTEN:TARGET...

Each route passes bytes between a port and another one. A line on standard input, `NAME MODE`, changes a route:

    pass            bytes go through
    hold            no byte goes through, and connections stay open: what a lost network looks like. With `pass` the bytes that
                    waited go on, as TCP would send them again
    cut             all connections are reset, and new ones go through
    refuse          all connections are reset, and new ones too
    delay SECONDS   every piece waits for so long

It ends with its standard input.
"""

import asyncio
import contextlib
import socket
import struct
import sys

PIECE = 64 * 1024
# The kernel sends a reset instead of a proper end.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Route:
    def __init__(self, target):
        self.target = target
        self.delay = 0.0
        self.refuses = False
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.writers = set()

    def change(self, mode, argument):
        self.delay = float(argument) if mode == "delay" else 0.0
        self.refuses = mode == "refuse"
        if mode == "hold":
            self.is_open.clear()
        else:
            self.is_open.set()
        if mode in ("cut", "refuse"):
            for writer in list(self.writers):
                reset(writer)

    async def accept(self, reader, writer):
        self.writers.add(writer)
        other = None
        try:
            if self.refuses:
                reset(writer)
                return
            await self.is_open.wait()
            from_target, other = await asyncio.open_connection("127.0.0.1", self.target)
            self.writers.add(other)
            await asyncio.gather(self.pump(reader, other), self.pump(from_target, writer))
        except OSError:
            pass  # One side has gone; the other one learns of it below.
        finally:
            for end in (writer, other):
                if end is not None:
                    self.writers.discard(end)
                    end.close()

    async def pump(self, reader, writer):
        while data := await reader.read(PIECE):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self.is_open.wait()
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()


def reset(writer):
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    writer.transport.abort()


async def main(arguments):
    routes = {}
    for argument in arguments:
        name, ports = argument.split("=")
        listen, target = (int(port) for port in ports.split(":"))
        routes[name] = Route(target)
        await asyncio.start_server(routes[name].accept, "127.0.0.1", listen, backlog=512)
    print("listening", flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        name, mode, *argument = line.decode().split()
        routes[name].change(mode, *(argument or [None]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
