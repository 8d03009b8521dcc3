"""What clients asked for and what they were told: the promises that the checker holds Landfall to."""

import threading
import time
from dataclasses import dataclass, field

# States after which nothing more happens to a file by itself.
ENDS = ("ready", "failed", "cancelled", "deleted")


@dataclass
class User:
    name: str
    tenant: str
    token: str = ""


@dataclass
class Batch:
    key: str
    user: User
    expected: int
    id: str | None = None
    asked: set = field(default_factory=set)
    told: set = field(default_factory=set)


@dataclass
class File:
    """A file as its client knows it. `asked` has the verbs of requests that were sent: register, send, confirm, cancel, retry,
    delete. `told` has those whose success was answered."""

    name: str
    user: User
    size: int
    sha256: str
    # A word that no other file has.
    word: str
    # Why it must fail, or None if it must become ready.
    fails_with: str | None = None
    batch: Batch | None = None
    id: str | None = None
    asked: set = field(default_factory=set)
    told: set = field(default_factory=set)
    # Steps with their times, for the story of a broken promise.
    log: list = field(default_factory=list)
    # The furthest offset that a resumable upload was told.
    offset: int = 0
    is_ready: bool = False

    @property
    def end(self):
        return "failed" if self.fails_with else "ready"

    def possible_ends(self):
        """The states that it may be in when all is over. `gone` stands for a file that was deleted."""
        if "delete" in self.told:
            return {"gone"}
        possible = {"gone"} if "delete" in self.asked else set()
        cancels_batch = self.batch is not None and "cancel" in self.batch.asked
        if "confirm" not in self.told:
            # The bytes may be there without the client knowing it, and a confirmation may have been answered to no one.
            possible |= {"registered", "uploaded"} if self.id else {"registered", "uploaded", "gone"}
            if "send" in self.asked:
                possible |= {self.end}
            if cancels_batch:
                possible |= {"gone", "cancelled"}
            if "cancel" in self.asked:
                possible |= {"gone", "cancelled"}
            return possible
        if "cancel" not in self.asked and not cancels_batch:
            return possible | {self.end}
        if "cancel" in self.told and "retry" not in self.asked:
            return possible | {"cancelled"}
        if "cancel" in self.told and "retry" in self.told and not cancels_batch:
            return possible | {self.end}
        return possible | {self.end, "cancelled"}


@dataclass
class Broken:
    promise: str
    subject: str
    message: str
    at: float = 0.0
    file: File | None = None


class History:
    """Shared by all clients of a run."""

    def __init__(self):
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.users, self.files, self.batches = [], [], []
        self.by_id = {}
        self.faults = []
        # Of each follower: where its stream began, and the events in the order in which they came.
        self.followed = {}
        # Promises that were broken while the run went on.
        self.broken = []
        self.counts = {}
        # Files that were confirmed, and files whose end was announced.
        self.confirmed, self.ended = set(), set()

    def now(self):
        return time.monotonic() - self.began

    def add_file(self, file):
        with self.lock:
            self.files.append(file)
        return file

    def add_batch(self, batch):
        with self.lock:
            self.batches.append(batch)
        return batch

    def identify(self, file, id):
        with self.lock:
            if file.id is None:
                file.id = id
                self.by_id[id] = file
        if file.id != id:
            self.break_promise(
                "a repeated request creates nothing twice", f"{file.name} was registered as {file.id} and as {id}", file
            )

    def ask(self, file, verb):
        file.asked.add(verb)
        self.note(file, f"{verb}?")

    def tell(self, file, verb, answer=""):
        file.told.add(verb)
        self.note(file, f"{verb}: {answer or 'done'}")
        if verb == "confirm":
            with self.lock:
                self.confirmed.add(file.id)

    def note(self, file, text):
        file.log.append((self.now(), text))

    def note_fault(self, text):
        with self.lock:
            self.faults.append((self.now(), text))

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + number

    def note_event(self, event):
        """A follower saw this. It tells the clients how far their files are."""
        id, to = event["data"].get("fileId"), event["data"].get("to")
        if event["type"] != "file:status-changed" or id is None:
            return
        with self.lock:
            file = self.by_id.get(id)
            if to in ENDS:
                self.ended.add(id)
            else:
                self.ended.discard(id)
        if file is not None:
            file.is_ready = to == "ready"

    def unfinished(self):
        with self.lock:
            return len(self.confirmed - self.ended)

    def break_promise(self, promise, message, file=None):
        broken = Broken(promise, file.name if file else "", message, self.now(), file)
        with self.lock:
            self.broken.append(broken)
