"""The measurements: a batch of flows, one flow at a time, and the job of a killed worker."""

import contextlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import tempfile
import time

import servers
from servers import Failed
from variants import POSTGRES, Variant

# A measurement may take this long, and longer with more files.
SECONDS = 120
SECONDS_PER_FILE = 0.03
START_SECONDS = 60
# How much a program may print in one line: the latencies of a few hundred flows.
MAX_LINE = 1 << 20

LANDFALL = [
    Variant("landfall", "Landfall, PostgreSQL", "postgres", POSTGRES, "landfall"),
    # Work that a power failure loses is repeated; what a client was told about is synced.
    Variant("landfall", "Landfall, SQLite", "sqlite", "SQLite, WAL; only the last stage is synced", "landfall"),
]


class Programs:
    """Where the programs of the peers are installed."""

    def __init__(self, sources, tools):
        self.node_folder = tools / "node"
        self.apalis = tools / "target" / "release" / "apalis-flows"
        machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "none")
        bundled = self.node_folder / "node_modules" / f"node-linux-{machine}" / "bin" / "node"
        self.node = bundled if bundled.exists() else "node"
        # Node finds the packages beside the program that imports them, so the programs are copied there.
        if (self.node_folder / "node_modules").is_dir():
            for program in (sources / "node").glob("*.mjs"):
                shutil.copy(program, self.node_folder)

    def command(self, variant):
        program = self.apalis if variant.program == "apalis" else self.node_folder / variant.program
        if not program.exists():
            raise Failed(f"it is not installed; run `bench/peers/run install {variant.peer}`")
        return [str(program)] if variant.program == "apalis" else [str(self.node), str(program)]


class Program:
    """A running program of a peer, which prints a JSON line at the end of each phase and then waits for a reply."""

    def __init__(self, command, task, seconds):
        self.deadline = time.monotonic() + seconds
        self.seconds = seconds
        self.unread = b""
        self.errors = tempfile.TemporaryFile()
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        self.process = subprocess.Popen(
            servers.dying_with_us(command),
            env=environment | {"PEER_TASK": json.dumps(task)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )

    def phase(self, name):
        """The line of this phase. It must be the next one."""
        while b"\n" not in self.unread:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0, self.deadline - time.monotonic()))
            if not readable:
                raise Failed(f"it took longer than {self.seconds:.0f} s{self.last_errors()}")
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read or len(self.unread) > MAX_LINE:
                raise Failed(f"the program ended before the phase `{name}`{self.last_errors()}")
            self.unread += read
        line, _, self.unread = self.unread.partition(b"\n")
        try:
            shown = json.loads(line)
        except ValueError:
            shown = {}
        if not isinstance(shown, dict) or shown.get("phase") != name:
            raise Failed(f"the program printed `{line[:200].decode(errors='replace')}` in place of the phase `{name}`")
        return shown

    def reply(self):
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"the program ended{self.last_errors()}") from None

    def last_errors(self):
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - 800))
        shown = " ".join(self.errors.read().decode(errors="replace").split())
        return f": {shown}" if shown else ""

    def kill(self):
        """Kills the program, with everything that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


@contextlib.contextmanager
def started(programs, variant, task, seconds):
    program = Program(programs.command(variant), task | variant.settings, seconds)
    try:
        yield program
    finally:
        program.kill()


class Usage:
    """What the server and the machine have used between two moments."""

    def __init__(self, server):
        self.server = server
        self.before = self.read()

    def read(self):
        return servers.cpu_of_tree(self.server), servers.busy_of_machine(), time.monotonic()

    def lap(self):
        """The CPU ms of the server and of the whole machine, and the seconds, since the last lap."""
        now = self.read()
        used = [late - early for late, early in zip(now, self.before, strict=True)]
        self.before = now
        return used


def flows(programs, variant, files):
    """All files are queued, then the workers start; until the last file has passed its last stage."""
    with servers.running(variant.backend) as (told, server):
        task = {"mode": "flows", "files": files} | told
        with started(programs, variant, task, SECONDS + SECONDS_PER_FILE * files) as program:
            program.phase("opened")
            usage = Usage(server)
            program.reply()
            queued = program.phase("queued")
            server_queued, _, _ = usage.lap()
            program.reply()
            worked = program.phase("worked")
            server_worked, machine, seconds = usage.lap()
    if worked["stages"] != [files] * 3:
        raise Failed(f"the stages ran {worked['stages']} times for {files} files")
    if worked["out_of_order"]:
        raise Failed(f"{worked['out_of_order']} stages ran out of order")
    cpu = worked["client_cpu_ms"] + server_worked
    return {
        "files": files,
        "flows_per_second": files / worked["ms"] * 1e3,
        "cpu_ms_per_flow": cpu / files,
        "client_cpu_ms_per_flow": worked["client_cpu_ms"] / files,
        "flows_per_second_with_queueing": files / (queued["ms"] + worked["ms"]) * 1e3,
        "cpu_ms_per_flow_with_queueing": (cpu + queued["client_cpu_ms"] + server_queued) / files,
        "cores_used_by_others": max(0.0, (machine - cpu) / seconds / 1e3),
    }


def latency(programs, variant, count):
    """One flow at a time, from queueing it until its last stage has run."""
    with servers.running(variant.backend) as (told, server):
        task = {"mode": "latency", "files": count} | told
        with started(programs, variant, task, SECONDS + count) as program:
            program.phase("opened")
            usage = Usage(server)
            program.reply()
            worked = program.phase("worked")
            server_cpu, machine, seconds = usage.lap()
    samples = sorted(worked["samples"])
    return {
        "flows": count,
        "p50_ms": quantile(samples, 0.5),
        "p99_ms": quantile(samples, 0.99),
        "cores_used_by_others": max(0.0, (machine - server_cpu - worked["client_cpu_ms"]) / seconds / 1e3),
    }


def takeover(programs, variant, seconds):
    """The time from the death of a worker until another one starts its job, with the defaults of the peer."""
    with servers.running(variant.backend) as (told, _server):
        with started(programs, variant, {"mode": "hold", "files": 1} | told, START_SECONDS) as holder:
            holder.phase("held")
            with started(programs, variant, {"mode": "take", "files": 1} | told, START_SECONDS + seconds) as taker:
                taker.phase("opened")
                taker.reply()
                os.kill(holder.process.pid, signal.SIGKILL)
                killed = time.monotonic()
                taker.deadline = killed + seconds
                try:
                    taker.phase("taken")
                except Failed:
                    # It may still be waiting, which is a result.
                    if taker.process.poll() is not None:
                        raise
                    return {"longer_than_seconds": seconds}
                return {"seconds": time.monotonic() - killed}


def quantile(ordered, share):
    return ordered[round((len(ordered) - 1) * share)]


# --- Landfall -------------------------------------------------------------------------------------------------------


def landfall_flows(program, variant, files):
    figures = landfall(program, f"{variant.backend}-flows-{files}")
    client = figures[f"{files} files: CPU ms per flow"]
    return {
        "files": files,
        "flows_per_second": figures[f"{files} files: flows/s"],
        "cpu_ms_per_flow": client + figures.get(f"{files} files: server's CPU ms per flow", 0.0),
        "client_cpu_ms_per_flow": client,
    }


def landfall_latency(program, variant):
    figures = landfall(program, f"{variant.backend}-latency")
    return {f"{name}_ms": figures[f"idle: confirm to ready, {name} ms"] for name in ("p50", "p99")}


def landfall(program, scenario):
    """Runs one scenario of Landfall's own benchmark, in a process of its own as the benchmark does."""
    try:
        shown = subprocess.run(
            servers.dying_with_us([program]),
            env=os.environ | {"BENCH_SCENARIO": scenario},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        )
        if shown.returncode != 0:
            raise Failed(f"{scenario} ended with {shown.returncode}: {shown.stderr.strip()[-400:]}")
        return dict(json.loads(shown.stdout))
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise Failed(f"{scenario}: {error}") from error
