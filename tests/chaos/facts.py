"""What is there when all is over, asked of the server and of the storage. It knows nothing of what was promised."""

import hashlib
import urllib.parse
from dataclasses import dataclass, field

from api import GivenUp, Lost, Session, request
from follower import SEARCH, read_all

API = "/api/v2/uploads"
UNDER_WAY = ("queued", "scanning", "extracting", "chunking", "embedding")


@dataclass
class Facts:
    # By user: the files in the list. By id: the answer to a question for the file, and the SHA-256 or refusal of its download.
    listed: dict = field(default_factory=dict)
    shown: dict = field(default_factory=dict)
    downloads: dict = field(default_factory=dict)
    # By id: how many chunks the file has.
    chunks: dict = field(default_factory=dict)
    # By word: the files that a search finds.
    hits: dict = field(default_factory=dict)
    # By tenant: quota. By id: batches. By user: events.
    quotas: dict = field(default_factory=dict)
    batches: dict = field(default_factory=dict)
    events: dict = field(default_factory=dict)
    # By user: the events that its follower saw, and those that were stored while all this was asked.
    seen: dict = field(default_factory=dict)
    late: dict = field(default_factory=dict)
    # The SHA-256 of every blob in the storage.
    blobs: list = field(default_factory=list)
    audit: tuple = (0, "")
    panics: list = field(default_factory=list)


def under_way(history, addresses, random, is_over):
    """How many files are still under way."""
    found = 0
    for user in history.users:
        session = Session(user, addresses, random, history, is_over)
        found += len(session.pages(f"{API}/files?status={','.join(UNDER_WAY)}", "files"))
    return found


def gather(history, world, fleet, random, is_over):
    facts = Facts()
    addresses = world.addresses()[:1]
    for user in history.users:
        session = Session(user, addresses, random, history, is_over)
        facts.listed[user.name] = session.pages(f"{API}/files", "files")
        facts.quotas[user.tenant] = session.insist("GET", f"{API}/quota").json
        facts.events[user.name] = events(addresses[0], user, history.followed[user.name].begins_at)
        for file in (file for file in history.files if file.user is user):
            look_at(file, session, facts)
    for batch in history.batches:
        if batch.id:
            session = Session(batch.user, addresses, random, history, is_over)
            facts.batches[batch.id] = session.insist("GET", f"{API}/batches/{batch.id}").json
    facts.blobs = world.blobs()
    done = fleet.run("audit")
    facts.audit = (done.returncode, done.stdout + done.stderr)
    facts.panics = fleet.panics()
    return facts


def look_at(file, session, facts):
    hits = session.insist("POST", SEARCH, {"query": file.word, "mode": "words", "limit": 10}).json["hits"]
    facts.hits[file.word] = [hit["fileId"] for hit in hits]
    if file.id is None:
        return
    answer = session.insist("GET", f"{API}/files/{file.id}")
    facts.shown[file.id] = answer.json.get("status") if answer.is_good else answer.code
    answer = session.insist("GET", f"{API}/files/{file.id}/download")
    if answer.status in (302, 303, 307):
        answer = follow(answer)
    facts.downloads[file.id] = hashlib.sha256(answer.content).hexdigest() if answer.is_good else answer.code
    if facts.shown[file.id] == "ready":
        chunks = session.pages(f"{API}/files/{file.id}/chunks", "chunks")
        facts.chunks[file.id] = [chunk["ordinal"] for chunk in chunks]


def follow(answer):
    """The bytes are in the object store, at a signed address."""
    url = urllib.parse.urlsplit(answer.headers["location"])
    return request(url.netloc, "GET", f"{url.path}?{url.query}")


def gather_late(facts, followers, world, history):
    """A sweep may still write an event while the questions are asked, and a follower sees it before it is asked for here."""
    for follower in followers:
        user, stored = follower.user, facts.events[follower.user.name]
        facts.seen[user.name] = list(follower.seen)
        facts.late[user.name] = events(world.addresses()[0], user, stored[-1]["id"] if stored else follower.begins_at)
        if facts.late[user.name]:
            history.count("late events", len(facts.late[user.name]))


def events(address, user, after):
    for _ in range(5):
        try:
            return read_all(address, user, after)
        except Lost:
            continue
    raise GivenUp(f"the events of {user.name} cannot be read")
