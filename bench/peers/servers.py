"""The servers beside the peers, the CPU time of their processes, and what the machine is."""

import contextlib
import os
import platform
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import uuid
from pathlib import Path

START_SECONDS = 20
STOP_SECONDS = 20
TICKS = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A measurement that could not be made, with the reason."""


def dying_with_us(command):
    """The command, set to end when this process is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)


@contextlib.contextmanager
def running(backend):
    """A new, empty database. Yields what the program is told about it, and the server's process, if there is one."""
    with tempfile.TemporaryDirectory(prefix="landfall-peers-") as folder:
        if backend == "sqlite":
            yield {"file": str(Path(folder) / "jobs.db")}, None
        elif backend == "postgres":
            with postgres_database() as (url, process):
                yield {"url": url}, process
        else:
            with redis(folder, backend.removeprefix("redis-")) as (port, process):
                yield {"port": port}, process


# --- Redis ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def redis(folder, policy):
    program = shutil.which("redis-server")
    if program is None:
        raise Failed("redis-server is not installed; run `bench/peers/run install`")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "bind": "127.0.0.1", "port": str(port), "dir": folder, "daemonize": "no", "save": "",
        "appendonly": "yes", "appendfsync": policy, "maxmemory-policy": "noeviction",
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    with open(Path(folder) / "redis.log", "w+") as log:
        process = subprocess.Popen(
            dying_with_us([program, *options]), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            wait_for_port(port, process, log.name)
            yield port, process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_port(port, process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(100).startswith(b"+PONG"):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise Failed(f"Redis did not start: {Path(log).read_text()[-400:]}")


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def debian_postgres():
    """The folder of Debian's newest PostgreSQL, or None."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*") if (path / "bin" / "postgres").exists()]
    return max(found, key=lambda path: int(path.name) if path.name.isdigit() else 0, default=None)


@contextlib.contextmanager
def postgres_database():
    """A new database. Everything that the measurement promises about durability is checked first."""
    server = os.environ["LANDFALL_TEST_DATABASE_URL"]
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        if sql(server, f"SHOW {setting}") != "on":
            raise Failed(f"{setting} of this PostgreSQL is off")
    process = int(sql(server, "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)"))
    if not Path(f"/proc/{process}").exists():
        raise Failed("PostgreSQL is not on this machine, so its CPU time cannot be read")
    name = f"peers_{uuid.uuid4().hex}"
    sql(server, f"CREATE DATABASE {name}")
    try:
        yield urllib.parse.urlsplit(server)._replace(path=f"/{name}").geturl(), process
    finally:
        sql(server, f"DROP DATABASE {name} WITH (FORCE)")


def sql(server, statement):
    url = urllib.parse.urlsplit(server)
    bundled = os.environ.get("LANDFALL_TEST_POSTGRES_PROGRAMS")
    program = Path(bundled) / "psql" if bundled else "psql"
    # In the environment, because every user of the machine can read the arguments of a process.
    login = {
        "PGHOST": url.hostname, "PGPORT": str(url.port or 5432), "PGDATABASE": url.path.removeprefix("/") or "postgres",
        "PGUSER": urllib.parse.unquote(url.username or "postgres"), "PGPASSWORD": urllib.parse.unquote(url.password or ""),
    }
    try:
        shown = subprocess.run(
            [program, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement],
            env={"PATH": os.environ["PATH"]} | login, capture_output=True, text=True, timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"psql: {error}") from error
    if shown.returncode != 0:
        raise Failed(f"psql: {shown.stderr.strip()[-400:]}")
    return shown.stdout.strip()


# --- CPU time -------------------------------------------------------------------------------------------------------


def cpu_of_tree(root):
    """The CPU time in ms of a process, of its children and of their ended children; 0 without a process."""
    if root is None:
        return 0.0
    parents, own = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name in parentheses may contain anything, so count from behind it.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            own[int(entry.name)] = thread_times(entry) + ended_children(fields)
        except (OSError, ValueError, IndexError):
            continue  # It has just ended.
    tree, added = {root}, {root}
    while added:
        added = {process for process, parent in parents.items() if parent in added} - tree
        tree |= added
    return sum(own.get(process, 0.0) for process in tree)


def thread_times(process):
    """In ms. `schedstat` counts nanoseconds, where `stat` counts hundredths of a second."""
    threads = (process / "task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def ended_children(fields):
    return (int(fields[13]) + int(fields[14])) * 1000 / TICKS


def busy_of_machine():
    """The CPU time in ms that all processes of the machine have used."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) * 1000 / TICKS


# --- the machine ----------------------------------------------------------------------------------------------------


def machine(node):
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    described = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": os.cpu_count(),
        "cpu": cpu[1] if cpu else platform.machine(),
        "memory_gib": round(int(memory[1]) / 1024**2) if memory else None,
        "kernel": platform.release(),
        "file_system": file_system(Path(tempfile.gettempdir()).resolve()),
        "node": version(node),
        "redis": version("redis-server"),
    }
    if server := os.environ.get("LANDFALL_TEST_DATABASE_URL"):
        described["postgres"] = sql(server, "SHOW server_version")
    if described["file_system"] == "tmpfs":
        raise SystemExit("peers: the temporary folder is in memory; set TMPDIR to a folder on a disk")
    return described


def file_system(path):
    """The type of the file system with this path."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    on_path = [mount for mount in mounts if path.is_relative_to(mount[1])]
    return max(on_path, key=lambda mount: len(mount[1]))[2] if on_path else "unknown"


def version(program):
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+(\.\d+)+", shown)
    return number[0] if number else None
