"""The figures of a load: times and counts since the last sample, and a line of a CSV for each sample."""

import csv
import hashlib
import os
import time
from collections import Counter

TIMES = ("register", "send", "confirm", "confirm to ready", "event lag", "search", "list", "quota")
COLUMNS = ["seconds", "ready per second", "unfinished", "rss MB", "readers MB", "files open", "database MB", "streams", "connections",
           "events per second", "failures", "server CPU", "clients CPU", "machine idle", "fixed work CPU ms"]
COLUMNS += [f"{what} {part} ms" for what in TIMES for part in ("p50", "p99")]

TICKS = os.sysconf("SC_CLK_TCK")
FIXED_WORK = bytes(4 * 2**20)


class Figures:
    def __init__(self):
        self.times = {what: [] for what in TIMES}
        self.counts, self.levels, self.failures = Counter(), Counter(), Counter()
        self.samples = []
        self.began = self.sampled = time.monotonic()
        self.before = Counter()
        self.used = {}

    def begin(self, process, database, load):
        """Forgets what came before: while the capacity is measured, the server has more to do than it can."""
        self.sample(process, database, load)
        self.samples.clear()
        self.failures.clear()
        self.before["failures"] = self.counts["failures"] = 0
        self.began = time.monotonic()

    def time(self, what, seconds):
        self.times[what].append(seconds)

    def count(self, what, number=1):
        self.counts[what] += number

    def level(self, what, change):
        self.levels[what] += change

    def fail(self, message):
        self.counts["failures"] += 1
        self.failures[message[:160]] += 1

    def sample(self, process, database, load):
        now = time.monotonic()
        seconds, self.sampled = now - self.sampled, now
        counts = self.counts + Counter({"ready": load.ready})
        since, self.before = counts - self.before, counts
        line = {
            "seconds": now - self.began, "ready per second": since["ready"] / seconds, "unfinished": load.unfinished(),
            "rss MB": memory(process), "readers MB": sum(memory(child) for child in children(process)),
            "files open": len(os.listdir(f"/proc/{process}/fd")), "database MB": size(database),
            "streams": self.levels["streams"], "connections": self.levels["connections"],
            "events per second": since["events"] / seconds, "failures": since["failures"], **self.processors(process, seconds),
        }
        for what, times in self.times.items():
            line[f"{what} p50 ms"] = percentile(times, 0.5)
            line[f"{what} p99 ms"] = percentile(times, 0.99)
            times.clear()
        self.samples.append(line)
        return line

    def processors(self, process, seconds):
        """How many processors each used since the last sample. The fixed work shows when the machine itself became slower."""
        used = {"server CPU": processor_time(process), "clients CPU": time.process_time(), "machine idle": idle_time()}
        before, self.used = self.used or used, used
        began = time.thread_time()
        hashlib.sha256(FIXED_WORK).digest()
        fixed = (time.thread_time() - began) * 1000
        return {name: (used[name] - before[name]) / seconds for name in used} | {"fixed work CPU ms": fixed}

    def write(self, path):
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for line in self.samples:
                writer.writerow({name: "" if value is None else f"{value:.3f}" for name, value in line.items()})


def percentile(times, part):
    """In milliseconds, or None if there were none."""
    if not times:
        return None
    found = sorted(times)
    return found[min(len(found) - 1, int(len(found) * part))] * 1000


def memory(process):
    """Resident memory in MB; of a process that has ended, none."""
    try:
        with open(f"/proc/{process}/status") as status:
            return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:")), 0)
    except OSError:
        return 0


def processor_time(process):
    """Seconds, without those of its children."""
    with open(f"/proc/{process}/stat") as stat:
        # The name, which is in parentheses, may have spaces.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def idle_time():
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[4]) / TICKS


def children(process):
    found = []
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/children") as listed:
                found += listed.read().split()
        except OSError:
            continue  # The thread has ended.
    return found


def size(database):
    """The files of a SQLite database in MB."""
    return sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*")) / 2**20
