"""Compares what was promised (history) with what is there (facts). It does no I/O, so that broken histories can be fed to it."""

from collections import Counter

from history import Broken

# docs/lifecycle.md; a state that is written again, such as a retry of the same stage, passes through `queued`.
STAGES = ("scanning", "extracting", "chunking", "embedding")
MOVES = {
    None: {"registered"},
    "registered": {"uploaded", "queued", "deleted"},
    "uploaded": {"queued", "deleted"},
    "queued": {*STAGES, "failed", "cancelled"},
    "scanning": {"extracting", "queued", "failed", "cancelled"},
    "extracting": {"chunking", "queued", "failed", "cancelled"},
    "chunking": {"embedding", "queued", "failed", "cancelled"},
    "embedding": {"ready", "queued", "failed", "cancelled"},
    "ready": {"deleted"},
    "failed": {"queued", "deleted"},
    "cancelled": {"queued", "deleted"},
    "deleted": set(),
}
GONE = ("FILE_NOT_FOUND", "FILE_DELETED", "deleted")
RESERVED = ("registered", "uploaded")


class Checker:
    def __init__(self, history, facts):
        self.history, self.facts = history, facts
        self.broken, self.checked = [], Counter()
        self.views = {view["fileId"]: view for views in facts.listed.values() for view in views}

    def check(self):
        """Returns the broken promises, those of the run first."""
        for promise in (
            self.known_once, self.endings, self.deletions, self.bytes_are_right, self.searches, self.chunks, self.quotas,
            self.batches, self.streams, self.lifecycles, self.blobs, self.audit, self.processes,
        ):
            promise()
        return [*self.history.broken, *self.broken]

    def expect(self, promise, is_kept, message, file=None):
        self.checked[promise] += 1
        if not is_kept:
            self.broken.append(Broken(promise, file.name if file else "", message, file=file))

    # --- files ------------------------------------------------------------------------------------------------------

    def known_once(self):
        promise = "each file is there once, and no other"
        for user, views in self.facts.listed.items():
            names = Counter(view["fileName"] for view in views)
            known = {file.name: file for file in self.history.files if file.user.name == user}
            for name, count in names.items():
                file = known.get(name)
                self.expect(promise, file is not None, f"no client registered {name} of {user}")
                self.expect(promise, count == 1, f"{name} is in the list {count} times", file)

    def endings(self):
        promise = "a confirmed file ends ready, and a damaged one fails for its own reason"
        names = {view["fileName"]: view for view in self.views.values()}
        for file in self.history.files:
            view = self.views.get(file.id) if file.id else names.get(file.name)
            state, possible = (view["status"] if view else "gone"), file.possible_ends()
            wanted = " or ".join(sorted(possible))
            self.expect(promise, state in possible, f"{file.name} is {state}{because(view)}, and not {wanted}", file)
            if state == "failed" and file.fails_with:
                code = (view["error"] or {}).get("code")
                self.expect(promise, code == file.fails_with, f"{file.name} failed with {code}, not {file.fails_with}", file)

    def deletions(self):
        promise = "nothing deleted is found"
        for file in self.history.files:
            if "delete" not in file.told:
                continue
            shown, download = self.facts.shown.get(file.id), self.facts.downloads.get(file.id)
            self.expect(promise, shown in GONE, f"{file.name} was deleted, and is {shown}", file)
            self.expect(promise, download in GONE, f"{file.name} was deleted, and its download says {download}", file)
            hits = self.facts.hits.get(file.word, [])
            self.expect(promise, not hits, f"{file.name} was deleted, and a search finds {hits}", file)

    def bytes_are_right(self):
        promise = "bytes that come back are those that were sent"
        for file in self.history.files:
            view = self.views.get(file.id)
            if view and view["status"] not in RESERVED:
                found = self.facts.downloads.get(file.id)
                self.expect(promise, found == file.sha256, f"{file.name} was sent as {file.sha256}, and is {found}", file)
                self.expect(promise, view["size"] == file.size, f"{file.name} has {view['size']} bytes, not {file.size}", file)

    def searches(self):
        promise = "a search finds each ready file, and nothing else"
        names = {view["fileName"]: view for view in self.views.values()}
        for file in self.history.files:
            view = names.get(file.name)
            wanted = [view["fileId"]] if view and view["status"] == "ready" else []
            found = self.facts.hits.get(file.word, [])
            self.expect(promise, found == wanted, f"{file.word} of {file.name} finds {found}, and not {wanted}", file)

    def chunks(self):
        promise = "each chunk is there once"
        for id, numbers in self.facts.chunks.items():
            file = self.history.by_id.get(id)
            self.expect(promise, numbers == list(range(len(numbers))), f"{id} has the chunks {numbers}", file)
            count = self.views[id]["chunkCount"] if id in self.views else None
            self.expect(promise, count == len(numbers), f"{id} has {len(numbers)} chunks, and says {count}", file)

    def blobs(self):
        promise = "no blob without its file, and no file without its blob"
        files = {file.id: file for file in self.history.files if file.id}
        held, maybe = Counter(), Counter()
        for id, view in self.views.items():
            file = files.get(id)
            if file is None:
                continue  # Either an unanswered registration, which has no bytes, or reported above.
            # Bytes sent to the object store before the confirmation are there, and the row does not know of them.
            is_certain = view["status"] != "registered"
            (held if is_certain else maybe)[file.sha256] += 1
        found = Counter(self.facts.blobs)
        for sha256, count in (held - found).items():
            self.expect(promise, False, f"{count} blob(s) with {sha256} are missing", self.by_sha256(sha256))
        for sha256, count in (found - held - maybe).items():
            self.expect(promise, False, f"{count} blob(s) with {sha256} belong to no file", self.by_sha256(sha256))
        self.checked[promise] += sum(found.values())

    def by_sha256(self, sha256):
        return next((file for file in self.history.files if file.sha256 == sha256), None)

    # --- accounts ---------------------------------------------------------------------------------------------------

    def quotas(self):
        promise = "the quota is exact"
        sizes = {file.name: file.size for file in self.history.files}
        tenants = {user.name: user.tenant for user in self.history.users}
        wanted = {tenant: Counter() for tenant in self.facts.quotas}
        for user, views in self.facts.listed.items():
            for view in views:
                kind = "reserved" if view["status"] in RESERVED else "used"
                account = wanted[tenants[user]]
                account["bytes", kind] += sizes.get(view["fileName"], view["size"])
                account["files", kind] += 1
        for tenant, quota in self.facts.quotas.items():
            for unit in ("bytes", "files"):
                for kind in ("reserved", "used"):
                    found, right = quota[unit][kind], wanted[tenant][unit, kind]
                    self.expect(promise, found == right, f"{tenant} has {found} {unit} {kind}, and its files have {right}")

    def batches(self):
        promise = "a batch counts its files"
        for batch in self.history.batches:
            view = self.facts.batches.get(batch.id)
            if view is None:
                continue
            files = [file for file in self.history.files if file.batch is batch]
            states = Counter(self.views[file.id]["status"] for file in files if file.id in self.views)
            for state in ("ready", "failed", "cancelled"):
                found = view["summary"][state]
                self.expect(promise, found == states[state], f"{batch.id} counts {found} {state}, and has {states[state]}")

    # --- events -----------------------------------------------------------------------------------------------------

    def streams(self):
        promise = "every event is seen once, in order"
        for user, events in self.facts.seen.items():
            stored, late = ({event["id"]: event for event in found.get(user, [])} for found in (self.facts.events, self.facts.late))
            seen = {event["id"]: event for event in events}
            self.checked[promise] += len(events)
            for before, after in zip(events, events[1:]):
                if before["id"] >= after["id"]:
                    self.expect(promise, False, f"the follower of {user} saw {after} after {before}")
            missing = [event for id, event in stored.items() if id not in seen]
            extra = [event for id, event in seen.items() if id not in stored and id not in late]
            changed = [event for id, event in seen.items() if event != (stored | late).get(id, event)]
            self.expect(promise, not missing, f"the follower of {user} missed {len(missing)} events, the first is {missing[:1]}")
            self.expect(promise, not extra, f"the follower of {user} saw {len(extra)} events that are not stored: {extra[:1]}")
            self.expect(promise, not changed, f"the follower of {user} saw {len(changed)} other events than are stored: {changed[:1]}")

    def lifecycles(self):
        promise = "each event follows from the one before"
        for stored in self.facts.events.values():
            states = {}
            for event in stored:
                if event["type"] != "file:status-changed":
                    continue
                data = event["data"]
                id, source, to = data["fileId"], data.get("from"), data["to"]
                file = self.history.by_id.get(id)
                known = states.get(id)
                self.expect(promise, source == known, f"event {event['id']}: {id} went from {source}, and was {known}", file)
                self.expect(promise, to in MOVES.get(source, ()), f"event {event['id']}: {source} → {to}", file)
                states[id] = to
            for id, state in states.items():
                file, view = self.history.by_id.get(id), self.views.get(id)
                now = view["status"] if view else "deleted"
                self.expect(promise, state == now, f"the last event of {id} says {state}, and it is {now}", file)

    # --- the rest ---------------------------------------------------------------------------------------------------

    def audit(self):
        code, printed = self.facts.audit
        self.expect("the audit finds nothing", code == 0, printed[-3000:])

    def processes(self):
        self.expect("no process panics", not self.facts.panics, "\n".join(self.facts.panics[:3]))


def because(view):
    error = view and view.get("error")
    return f" ({error['code']}: {error['message']})" if error else ""
