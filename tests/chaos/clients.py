"""What clients do: upload, vanish, cancel, delete, retry, in batches and in pieces. Each step is noted as a promise."""

import base64
import hashlib
import itertools
import socket
import threading
import urllib.parse

from api import GivenUp, Lost, Session, request
from history import Batch, File

API = "/api/v2/uploads"
# More files than this wait for nothing but a busy machine.
MOST_UNFINISHED = 60
LETTERS = "bcdfghklmnprstvw"
SENTENCE = "The harbour of {word} was rebuilt in stone after the storm, and its lighthouse guides ships past the reef. "
numbers = itertools.count()


class Client(threading.Thread):
    """One user who does one thing after another, drawn from the seed, until the run ends."""

    def __init__(self, name, user, addresses, random, history, stop, is_over):
        super().__init__(name=name, daemon=True)
        self.random, self.history, self.stop, self.user = random, history, stop, user
        self.session = Session(user, addresses, random, history, is_over)

    def run(self):
        weights = [weight for _, weight in DEEDS]
        while not self.stop.is_set():
            if self.history.unfinished() > MOST_UNFINISHED:
                self.stop.wait(0.2)
                continue
            [(deed, _)] = self.random.choices(DEEDS, weights)
            try:
                deed(self)
                self.history.count(deed.__name__.replace("_", " "))
            except GivenUp as what:
                self.history.break_promise("a client that repeats its requests comes to an end", f"{self.name}: {what}")
                return

    # --- files ------------------------------------------------------------------------------------------------------

    def new_file(self, batch=None, poison=None):
        """A file with a word of its own. `poison`: how it is damaged."""
        number = next(numbers)
        word = "q" + "".join(self.random.choice(LETTERS) for _ in range(9)) + "x"
        body = (SENTENCE.format(word=word) * self.random.randint(1, 12)).encode()
        name, code, kind = f"{number}-{word}.txt", None, "text/plain"
        if poison:
            suffix, kind, code, make = POISONS[poison]
            name, body = f"{number}-{word}{suffix}", make(body, self.random)
        file = File(name, self.user, len(body), hashlib.sha256(body).hexdigest(), word, code, batch)
        self.history.add_file(file)
        return file, body, kind

    def register(self, file, kind):
        body = {"fileName": file.name, "fileSize": file.size, "contentType": kind}
        path = f"{API}/batches/{file.batch.id}/upload-urls" if file.batch else f"{API}/files/init"
        self.history.ask(file, "register")
        answer = self.session.insist("POST", path, body, {"Idempotency-Key": f"file-{file.name}"})
        if answer.status != 201:
            raise GivenUp(f"the registration of {file.name} was refused: {answer}")
        self.history.identify(file, answer.json["fileId"])
        self.history.tell(file, "register", file.id)
        return answer.json

    def send(self, file, ticket, body):
        """Sends the bytes until they are there, or the file has gone on without."""
        self.history.ask(file, "send")
        while True:
            url = urllib.parse.urlsplit(ticket["uploadUrl"])
            try:
                answer = request(url.netloc, ticket["method"], f"{url.path}?{url.query}", body, dict(ticket["headers"]))
                # An object store says 412 if the bytes are there already: only the answer was lost.
                if answer.is_good or answer.status == 412:
                    return self.history.tell(file, "send", str(answer.status))
                last = str(answer)
            except Lost as lost:
                last = str(lost)
            self.history.note(file, f"send: {last}")
            self.session.wait(f"sending {file.name}: {last}")
            fresh = self.session.insist("POST", f"{API}/files/{file.id}/upload-url")
            if not fresh.is_good:
                # It was confirmed or deleted meanwhile; the confirmation tells which.
                return self.history.note(file, f"fresh URL: {fresh}")
            ticket = fresh.json

    def confirm(self, file, ticket, body):
        while True:
            self.history.ask(file, "confirm")
            answer = self.session.insist("POST", f"{API}/files/{file.id}/confirm", {"size": file.size})
            if answer.is_good:
                return self.history.tell(file, "confirm", answer.json["status"])
            if answer.code != "UPLOAD_MISSING":
                raise GivenUp(f"the confirmation of {file.name} was refused: {answer}")
            self.history.note(file, f"confirm: {answer}")
            if "send" in file.told:
                self.history.break_promise("bytes that were accepted are there", f"{file.name}: {answer}", file)
                return None
            self.send(file, ticket, body)

    def upload(self, batch=None, poison=None):
        file, body, kind = self.new_file(batch, poison)
        ticket = self.register(file, kind)
        self.send(file, ticket, body)
        self.confirm(file, ticket, body)
        return file

    def simple(self):
        self.upload()

    def poisoned(self):
        file = self.upload(poison=self.random.choice(list(POISONS)))
        if self.random.random() < 0.3 and self.wait_for_end(file):
            self.history.ask(file, "retry")
            if self.session.insist("POST", f"{API}/files/{file.id}/retry").is_good:
                self.history.tell(file, "retry")

    def repeated(self):
        """Every request comes twice, as from a client that lost the answers."""
        file, body, kind = self.new_file()
        self.register(file, kind)
        ticket = self.register(file, kind)
        self.send(file, ticket, body)
        self.confirm(file, ticket, body)
        self.confirm(file, ticket, body)

    # --- those who do not stay --------------------------------------------------------------------------------------

    def vanishing(self):
        file, body, kind = self.new_file()
        step = self.random.randrange(4)
        if step == 0:
            self.history.ask(file, "register")
            try:
                answer = self.session.try_once("POST", f"{API}/files/init", {"fileName": file.name, "fileSize": file.size})
                if answer.status == 201:
                    self.history.identify(file, answer.json["fileId"])
            except Lost:
                pass  # The file may be registered or not.
            return
        ticket = self.register(file, kind)
        if step == 1:
            self.history.ask(file, "send")
            send_half(ticket, body)
        elif step == 2:
            self.send(file, ticket, body)
        else:
            self.send(file, ticket, body)
            self.history.ask(file, "confirm")
            try:
                answer = self.session.try_once("POST", f"{API}/files/{file.id}/confirm")
                if answer.is_good:
                    self.history.tell(file, "confirm")
            except Lost:
                pass  # It may be confirmed or not.

    # --- in pieces --------------------------------------------------------------------------------------------------

    def resumable(self):
        file, body, kind = self.new_file()
        vanishes = self.random.random() < 0.15
        encoded = {"filename": file.name, "filetype": kind}
        metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in encoded.items())
        headers = {"Tus-Resumable": "1.0.0", "Upload-Length": str(file.size), "Upload-Metadata": metadata}
        self.history.ask(file, "register")
        answer = self.session.insist("POST", f"{API}/tus", b"", headers | {"Idempotency-Key": f"tus-{file.name}"})
        if answer.status != 201:
            raise GivenUp(f"the upload of {file.name} was refused: {answer}")
        self.history.identify(file, urllib.parse.urlsplit(answer.headers["location"]).path.rsplit("/", 1)[1])
        self.history.tell(file, "register", file.id)
        while file.offset < file.size:
            if vanishes and file.offset > 0:
                return
            self.send_piece(file, body)
        self.history.tell(file, "confirm", "the last piece was accepted")

    def send_piece(self, file, body):
        path, headers = f"{API}/tus/{file.id}", {"Tus-Resumable": "1.0.0"}
        piece = body[file.offset : file.offset + self.random.randint(1, max(2, file.size // 2))]
        last = file.offset + len(piece) == file.size
        self.history.ask(file, "send")
        if last:
            self.history.ask(file, "confirm")
        more = {"Upload-Offset": str(file.offset), "Content-Type": "application/offset+octet-stream"}
        try:
            answer = self.session.try_once("PATCH", path, piece, headers | more)
            if answer.is_good:
                return self.learn_offset(file, answer)
            lost = str(answer)
        except Lost as error:
            lost = str(error)
        self.history.note(file, f"piece at {file.offset}: {lost}")
        self.session.wait(f"a piece of {file.name}: {lost}")
        answer = self.session.insist("HEAD", path, None, headers)
        if not answer.is_good or "upload-offset" not in answer.headers:
            raise GivenUp(f"the offset of {file.name} was refused: {answer}")
        return self.learn_offset(file, answer)

    def learn_offset(self, file, answer):
        offset = int(answer.headers["upload-offset"])
        if offset < file.offset or offset > file.size:
            self.history.break_promise(
                "the offset of an upload does not go back", f"{file.name} was at {file.offset}, and is at {offset}", file
            )
        file.offset = offset
        self.history.note(file, f"offset {offset}")

    # --- batches ----------------------------------------------------------------------------------------------------

    def batch(self):
        count = self.random.randint(2, 6)
        batch = self.history.add_batch(Batch(f"batch-{next(numbers)}", self.user, count))
        answer = self.session.insist("POST", f"{API}/batches", {"fileCount": count}, {"Idempotency-Key": batch.key})
        if answer.status != 201:
            raise GivenUp(f"a batch was refused: {answer}")
        batch.id = answer.json["batchId"]
        for number in range(count):
            self.upload(batch, self.random.choice(list(POISONS)) if number == 0 and self.random.random() < 0.3 else None)
        if self.random.random() < 0.15:
            batch.asked.add("cancel")
            if self.session.insist("POST", f"{API}/batches/{batch.id}/cancel").is_good:
                batch.told.add("cancel")

    # --- second thoughts --------------------------------------------------------------------------------------------

    def cancelled(self):
        file = self.upload()
        self.history.ask(file, "cancel")
        answer = self.session.insist("POST", f"{API}/files/{file.id}/cancel")
        self.history.note(file, f"cancel: {answer}")
        if answer.is_good:
            self.history.tell(file, "cancel")
            if self.random.random() < 0.5:
                self.history.ask(file, "retry")
                if self.session.insist("POST", f"{API}/files/{file.id}/retry").is_good:
                    self.history.tell(file, "retry")

    def deleted(self):
        file = self.upload()
        if self.random.random() < 0.6:
            self.wait_for_end(file)
        self.history.ask(file, "delete")
        answer = self.session.insist("DELETE", f"{API}/files/{file.id}")
        # A repeated deletion finds nothing: the first one was carried out.
        if answer.is_good or answer.status in (404, 410):
            self.history.tell(file, "delete", str(answer))
        else:
            raise GivenUp(f"the deletion of {file.name} was refused: {answer}")

    def wait_for_end(self, file):
        """Waits until its end was announced, or the run ends before."""
        while not self.stop.wait(0.05):
            if file.id in self.history.ended:
                return True
        return False


def send_half(ticket, body):
    """Sends half of the bytes, and leaves without a word."""
    url = urllib.parse.urlsplit(ticket["uploadUrl"])
    head = [f"{ticket['method']} {url.path}?{url.query} HTTP/1.1", f"Host: {url.netloc}", f"Content-Length: {len(body)}"]
    head += [f"{name}: {value}" for name, value in ticket["headers"].items() if name.lower() != "content-length"]
    try:
        with socket.create_connection((url.hostname, url.port), timeout=5) as connection:
            connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body[: len(body) // 2])
    except OSError:
        pass  # It wanted to leave anyway.


def noise(body, random):
    return b"\x00\xff\xfe" + random.randbytes(2000) + body


# How a document is damaged: its name ends, its type, the code that it fails with, and how its bytes are made.
POISONS = {
    "not a PDF": (".pdf", "application/pdf", "NOT_PDF", lambda body, _: body),
    "a broken PDF": (".pdf", "application/pdf", "PARSE_ERROR", lambda body, _: b"%PDF-1.7\n" + body),
    "no document": (".bin", "application/octet-stream", "UNSUPPORTED_TYPE", noise),
}

# What clients do, and how often.
DEEDS = [
    (Client.simple, 35), (Client.resumable, 15), (Client.batch, 8), (Client.poisoned, 6), (Client.repeated, 4),
    (Client.vanishing, 8), (Client.cancelled, 8), (Client.deleted, 12),
]
