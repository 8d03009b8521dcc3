"""HTTP/1.1 over asyncio, as far as the load needs it: thousands of connections in one process."""

import asyncio
import contextlib
import json

# A server that is busy may take long, and one that hangs must be noticed.
TIMEOUT = 60


class Failed(Exception):
    """No answer, or one that the load does not expect."""


class Connection:
    """Keeps its connection, and opens it again when it is gone."""

    def __init__(self, address, token=None):
        self.host, _, port = address.partition(":")
        self.port, self.token = int(port), token
        self.reader = self.writer = None

    async def open(self):
        if self.writer is None or self.writer.is_closing() or self.reader.at_eof():
            self.close()
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None

    async def call(self, method, path, body=None, headers=None):
        """A request with an answer. A body that is not bytes is sent as JSON."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        was_open = self.writer is not None
        try:
            async with asyncio.timeout(TIMEOUT):
                await self.open()
                await self.begin(method, path, len(body or b""), headers)
                if body:
                    self.writer.write(body)
                    await self.writer.drain()
                return await self.answer()
        except (OSError, ValueError, asyncio.IncompleteReadError, TimeoutError) as error:
            self.close()
            if was_open and method == "GET" and isinstance(error, (ConnectionError, asyncio.IncompleteReadError)):
                # The server closed a connection that was idle for long, at the moment at which it was used again.
                return await self.call(method, path, body, headers)
            raise Failed(f"{method} {path.split('?')[0]}: {type(error).__name__} {error}") from error

    async def begin(self, method, path, length, headers):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", f"Content-Length: {length}"]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() != "content-length"]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        await self.writer.drain()

    async def answer(self):
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            content = b"".join([piece async for piece in self.chunks()])
        else:
            content = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return status, content

    async def head(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip().lower()
        return int(lines[0].split()[1]), headers

    async def chunks(self):
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)

    async def json(self, method, path, body=None, headers=None):
        """The body of a good answer."""
        status, content = await self.call(method, path, body, headers)
        if status >= 300:
            raise Failed(f"{method} {path.split('?')[0]}: {status} {content[:200].decode(errors='replace')}")
        return json.loads(content) if content else {}


@contextlib.asynccontextmanager
async def connected(address, token=None):
    connection = Connection(address, token)
    try:
        yield connection
    finally:
        connection.close()
