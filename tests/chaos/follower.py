"""Clients that listen: to the events of a user, and to what searches find."""

import http.client
import json
import threading

from api import TIMEOUT, Lost, Session, request

EVENTS = "/api/v2/uploads/events"
SEARCH = "/api/v2/search"


class Follower(threading.Thread):
    """Reads the events of a user, loses its connection now and then, and goes on at any process after the last event it saw."""

    def __init__(self, user, addresses, random, history, is_over):
        super().__init__(name=f"follower of {user.name}", daemon=True)
        self.user, self.addresses, self.random = user, addresses, random
        self.history, self.is_over = history, is_over
        self.begins_at, self.last, self.seen = None, None, []
        self.has_begun = threading.Event()
        history.followed[user.name] = self

    def run(self):
        while not self.is_over.is_set():
            try:
                self.listen()
            except (OSError, ValueError, http.client.HTTPException):
                self.history.count("streams that broke")
            self.is_over.wait(0.05)

    def listen(self):
        connection = http.client.HTTPConnection(self.random.choice(self.addresses), timeout=TIMEOUT)
        headers = {"Authorization": f"Bearer {self.user.token}", "Accept": "text/event-stream"}
        if self.last is not None:
            headers["Last-Event-ID"] = str(self.last)
        try:
            connection.request("GET", EVENTS, headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                return
            leaves_after = self.random.randint(20, 2000)
            for number, message in enumerate(messages(response)):
                self.take(message)
                if self.is_over.is_set() or number >= leaves_after:
                    return
        finally:
            connection.close()

    def take(self, message):
        kind = message["type"]
        if kind == "stream:open":
            if self.begins_at is None:
                self.begins_at = self.last = message["id"]
                self.has_begun.set()
        elif kind in ("stream:gap", "stream:reset"):
            self.history.break_promise("a stream has no gap", f"{self.name}: {json.dumps(message)}")
            self.last = message["data"]["resumesAfter"] if "data" in message else message["resumesAfter"]
        elif not kind.startswith("stream:"):
            self.seen.append(message)
            self.last = message["id"]
            self.history.note_event(message)


def messages(response):
    """The data of each server-sent event."""
    data = []
    while line := response.readline():
        line = line.decode().rstrip("\n")
        if line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


def read_all(address, user, after):
    """All events of a user that are stored."""
    headers = {"Authorization": f"Bearer {user.token}", "Accept": "text/event-stream"}
    answer = request(address, "GET", f"{EVENTS}?after={after}&follow=false", None, headers, timeout=60)
    if answer.status != 200:
        raise Lost(str(answer))
    found = [json.loads(line[5:]) for line in answer.content.decode().split("\n") if line.startswith("data:")]
    return [event for event in found if not event["type"].startswith("stream:")]


class Searcher(threading.Thread):
    """Searches for words of files that are ready, which must be found, and of deleted ones, which must not."""

    def __init__(self, users, addresses, random, history, stop, is_over):
        super().__init__(name="searcher", daemon=True)
        self.users, self.random, self.history, self.stop = users, random, history, stop
        self.sessions = {user.name: Session(user, addresses, random, history, is_over) for user in users}

    def run(self):
        while not self.stop.wait(0.1):
            with self.history.lock:
                known = [file for file in self.history.files if file.id]
            for file in self.random.sample(known, min(2, len(known))):
                try:
                    self.search(file)
                except Lost:
                    pass  # The next one will be answered.

    def search(self, file):
        was_deleted, was_ready = "delete" in file.told, file.is_ready
        query = {"query": file.word, "mode": "words", "limit": 5}
        answer = self.sessions[file.user.name].try_once("POST", SEARCH, query)
        if not answer.is_good:
            return
        found = {hit["fileId"] for hit in answer.json["hits"]}
        self.history.count("searches")
        if found - {file.id}:
            self.history.break_promise("a search finds what has the word", f"{file.word} found {found}", file)
        if was_deleted and file.id in found:
            self.history.break_promise("nothing deleted is found", f"{file.name} was deleted, and found", file)
        # Asked after the search: a client may have deleted it meanwhile.
        if was_ready and not file.asked & {"delete", "retry"} and file.id not in found:
            self.history.break_promise("what is ready is found", f"{file.name} is ready, and not found", file)
