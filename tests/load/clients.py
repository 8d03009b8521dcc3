"""Who uses the server during the load. Every answer that took a time, and every one that failed, goes to the figures."""

import asyncio
import contextlib
import datetime
import itertools
import json
import random
import time
import urllib.parse

from connection import Connection, Failed, connected

API = "/api/v2/uploads"
WORDS = "harbour lighthouse storm reef anchor captain ledger cargo customs pilot tide channel beacon quay warehouse".split()
SLOW_BYTES, SLOW_RATE = 60 * 1024, 1024
JOBS = ("stuck-file-recovery", "orphan-cleanup", "upload-expiry", "retention")
numbers = itertools.count()


class Load:
    """What all clients share."""

    def __init__(self, address, users, operator, figures):
        self.address, self.users, self.operator, self.figures = address, users, operator, figures
        self.stop = asyncio.Event()
        # When each file was confirmed, and the number of those whose end was announced.
        self.confirmed, self.ready, self.failed = {}, 0, 0
        self.tasks = []
        self.pace = None

    def start(self, count, deed):
        self.tasks += [asyncio.create_task(self.keep_on(deed, number)) for number in range(count)]

    async def keep_on(self, deed, number):
        """Does it again and again until the load is over. A failure is counted, and followed by a pause."""
        while not self.stop.is_set():
            try:
                await deed(self, number)
            except (Failed, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                if not self.stop.is_set():
                    self.figures.fail(f"{deed.__name__}: {error}")
                    await self.pause(1)

    async def pause(self, seconds):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    async def end(self):
        self.stop.set()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def unfinished(self):
        return len(self.confirmed)


def text():
    number = next(numbers)
    sentences = (" ".join(random.choices(WORDS, k=9)).capitalize() + "." for _ in range(random.randint(2, 12)))
    return f"{number}.txt", f"Entry {number}. {' '.join(sentences)}\n".encode()


def padded():
    """A page with little text and a long comment: many bytes, and little work."""
    number = next(numbers)
    head = f"<html><body><p>Entry {number}: {' '.join(random.choices(WORDS, k=9))}.</p><!-- ".encode()
    return f"{number}.html", head + b"x" * (SLOW_BYTES - len(head) - 20) + b" --></body></html>\n "


async def upload(load, number):
    """One upload after another, at the pace of the load."""
    if load.pace is None:
        # As fast as it can: the capacity is measured. The queue must not grow without end.
        while load.unfinished() > 150:
            await load.pause(0.05)
    else:
        await load.pace.turn()
    name, body = text()
    token = load.users[number % len(load.users)]
    async with connected(load.address, token) as connection:
        ticket = await timed(load, "register", connection.json("POST", f"{API}/files/init", {"fileName": name, "fileSize": len(body)}))
        url = urllib.parse.urlsplit(ticket["uploadUrl"])
        path = f"{url.path}?{url.query}"
        await timed(load, "send", connection.json(ticket["method"], path, body, ticket["headers"]))
        await confirm(load, connection, ticket["fileId"])


async def confirm(load, connection, file):
    # Noted before, because the file may be ready before the answer is read.
    load.confirmed[file] = time.monotonic()
    try:
        await timed(load, "confirm", connection.json("POST", f"{API}/files/{file}/confirm", {}))
    except BaseException:
        # Without an answer nothing is promised.
        load.confirmed.pop(file, None)
        raise


async def slow_upload(load, number):
    """1 KB a second, whatever the machine of the clients has to do besides."""
    name, body = padded()
    async with connected(load.address, load.users[number % len(load.users)]) as connection:
        ticket = await connection.json("POST", f"{API}/files/init", {"fileName": name, "fileSize": len(body)})
        url = urllib.parse.urlsplit(ticket["uploadUrl"])
        await connection.begin(ticket["method"], f"{url.path}?{url.query}", len(body), ticket["headers"])
        began, sent = time.monotonic(), 0
        while sent < len(body):
            await load.pause(1)
            if load.stop.is_set():
                return
            due = int((time.monotonic() - began) * SLOW_RATE)
            connection.writer.write(body[sent:due])
            await connection.writer.drain()
            sent = max(sent, min(due, len(body)))
        status, content = await asyncio.wait_for(connection.answer(), 60)
        if status >= 300:
            raise Failed(f"a slow upload: {status} {content[:200]}")
        await confirm(load, connection, ticket["fileId"])
    load.figures.count("slow uploads")


async def listen(load, number):
    """An event stream. One of each user's streams tells when files are ready; all of them count."""
    user, tells = number % len(load.users), number < len(load.users)
    async with connected(load.address, load.users[user]) as connection:
        await connection.open()
        await connection.begin("GET", f"{API}/events", 0, {"Accept": "text/event-stream"})
        status, _ = await asyncio.wait_for(connection.head(), 60)
        if status != 200:
            raise Failed(f"a stream was refused: {status}")
        load.figures.level("streams", 1)
        try:
            rest = b""
            async for piece in connection.chunks():
                *messages, rest = (rest + piece).split(b"\n\n")
                for message in messages:
                    load.figures.count("events", b"data:" in message)
                    if tells:
                        take_event(load, message)
        finally:
            load.figures.level("streams", -1)


def take_event(load, message):
    line = next((line for line in message.split(b"\n") if line.startswith(b"data:")), None)
    event = json.loads(line[5:]) if line else {}
    if event.get("type") != "file:status-changed":
        return
    at = datetime.datetime.fromisoformat(event["at"]).timestamp()
    load.figures.time("event lag", max(0.0, time.time() - at))
    to, file = event["data"]["to"], event["data"]["fileId"]
    if to in ("ready", "failed"):
        began = load.confirmed.pop(file, None)
        load.ready += to == "ready"
        load.failed += to == "failed"
        if began is not None and to == "ready":
            load.figures.time("confirm to ready", time.monotonic() - began)


async def search(load, number):
    async with connected(load.address, load.users[number % len(load.users)]) as connection:
        query = {"query": " ".join(random.choices(WORDS, k=2)), "limit": 10}
        await timed(load, "search", connection.json("POST", "/api/v2/search", query))
        await timed(load, "list", connection.json("GET", f"{API}/files?limit=50"))
    await load.pause(1)


async def idle(load, number):
    """A connection that is kept and seldom used."""
    connection = Connection(load.address, load.users[number % len(load.users)])
    try:
        # They do not all come at once.
        await load.pause(random.uniform(0, 20))
        load.figures.level("connections", 1)
        while not load.stop.is_set():
            await timed(load, "quota", connection.json("GET", f"{API}/quota"))
            await load.pause(random.uniform(15, 25))
    finally:
        load.figures.level("connections", -1)
        connection.close()


async def sweep(load, number):
    """An operator runs the jobs that otherwise run at night."""
    async with connected(load.address, load.operator) as connection:
        status, content = await connection.call("POST", f"/api/v2/admin/jobs/{JOBS[number]}/run", {})
        if status >= 300 and b"JOB_RUNNING" not in content:
            raise Failed(f"{JOBS[number]}: {status} {content[:200]}")
        load.figures.count("sweeps")
    await load.pause(20)


async def timed(load, what, call):
    began = time.monotonic()
    answer = await call
    load.figures.time(what, time.monotonic() - began)
    return answer


class Pace:
    """So many turns a second, evenly."""

    def __init__(self, rate):
        self.rate, self.next = rate, time.monotonic()

    async def turn(self):
        now = time.monotonic()
        # Turns that were missed are not made up for all at once.
        self.next = max(self.next + 1 / self.rate, now - 1)
        await asyncio.sleep(self.next - now)
