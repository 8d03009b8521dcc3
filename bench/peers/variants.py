"""The peers, each with the settings that it is measured with."""

from dataclasses import dataclass, field

POSTGRES = "PostgreSQL, fsync on, synchronous_commit on"
SQLITE = "SQLite, WAL, synchronous=FULL"


@dataclass(frozen=True)
class Variant:
    peer: str
    title: str
    # Which server runs beside it: redis-always, redis-everysec, postgres or sqlite.
    backend: str
    durability: str
    # The program in bench/peers/node, or "apalis".
    program: str
    # What the program is told besides the mode, the number of files and the server.
    settings: dict = field(default_factory=dict)
    # With more files it would take too long, or it was never worth it.
    most_files: int = 10_000
    # Latency and takeover depend on few of the settings, so one variant of each kind is enough.
    latency: bool = True
    takeover: bool = False


def bullmq(policy, durability, workers, **more):
    title = f"BullMQ 6.7.0, {'/'.join(map(str, workers))} workers"
    return Variant("bullmq", title, f"redis-{policy}", durability, "bullmq.mjs", {"workers": workers}, **more)


def pg_boss(title, batch, **more):
    settings = {"workers": [8, 5, 5], "batch": batch}
    return Variant("pg-boss", f"pg-boss 12.38.0, {title}", "postgres", POSTGRES, "pg-boss.mjs", settings, **more)


def graphile_worker(title, slots, local_queue=0, **more):
    settings = {"slots": slots, "localQueue": local_queue}
    title = f"graphile-worker 0.18.0, {title}"
    return Variant("graphile-worker", title, "postgres", POSTGRES, "graphile-worker.mjs", settings, **more)


def apalis(backend, durability, slots, batch, **more):
    title = f"apalis-{backend} 1.0.0, {slots} slots, batches of {batch}"
    return Variant("apalis", title, backend, durability, "apalis", {"slots": slots, "batch": batch}, **more)


VARIANTS = [
    bullmq("always", "Redis AOF, fsync always", [8, 5, 5], takeover=True),
    bullmq("always", "Redis AOF, fsync always", [100, 100, 100], latency=False),
    bullmq("everysec", "Redis AOF, fsync every second", [8, 5, 5]),
    bullmq("everysec", "Redis AOF, fsync every second", [100, 100, 100], latency=False),
    pg_boss("100 jobs a call", 100, takeover=True),
    pg_boss("single jobs", 2, most_files=1_000, latency=False),
    graphile_worker("default, 18 slots", 18, most_files=1_000, takeover=True),
    graphile_worker("default, 100 slots", 100, most_files=1_000, latency=False),
    graphile_worker("localQueue 500, 100 slots", 100, local_queue=500, latency=False),
    apalis("postgres", POSTGRES, 18, 10, most_files=1_000, takeover=True),
    apalis("postgres", POSTGRES, 100, 100, latency=False),
    # Its time grows with the square of the number of files.
    apalis("sqlite", SQLITE, 18, 10, most_files=1_000, takeover=True),
    apalis("sqlite", SQLITE, 100, 100, most_files=1_000, latency=False),
]
