"""The servers that Landfall depends on, as processes that can be killed and started again: PostgreSQL, SeaweedFS, and the proxies in
front of them."""

import re
import subprocess
import sys
import urllib.parse
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import keeper  # noqa: E402

STOP_SECONDS = 5


def script(name):
    """A program of scripts/ as a module."""
    loader = SourceFileLoader(name.replace("-", "_"), str(SCRIPTS / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Postgres:
    """A cluster as scripts/with-postgres makes it."""

    # A server that is killed loses nothing without fsync. The data is in memory, where little of the log should stay.
    SETTINGS = {"fsync": "off", "max_wal_size": "256MB"}

    def __init__(self):
        made = script("with-postgres")
        self.cluster = made.Cluster(made.ensure_installed(), made.unprivileged_user(), made.SETTINGS | self.SETTINGS)
        self.url = self.cluster.start()["LANDFALL_TEST_DATABASE_URL"]
        self.port = urllib.parse.urlsplit(self.url).port

    def url_by(self, port):
        """The address of the database by way of a proxy."""
        return self.url.replace(f":{self.port}/", f":{port}/")

    def stop(self, mode):
        self.control("stop", "-m", mode)

    def start(self):
        self.control("start", "-l", self.cluster.log, "-o", f"-p {self.port}")

    def control(self, verb, *arguments):
        done = self.cluster.program("pg_ctl", verb, "--wait", "-t", "60", "-D", self.cluster.data, *arguments)
        if done.returncode != 0:
            sys.exit(f"chaos: pg_ctl {verb}: {done.stdout}\n{self.cluster.log.read_text()[-2000:]}")

    def terminate_backends(self):
        """Ends all connections of clients, and returns how many there were."""
        sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        psql = [self.cluster.installed / "bin" / "psql", self.url, "-qtA", "-c", sql]
        found = re.search(r"\d+", subprocess.run(psql, capture_output=True, text=True, check=False).stdout)
        return int(found[0]) if found else 0

    def remove(self):
        self.cluster.remove()


class ObjectStore:
    """SeaweedFS as scripts/with-object-stores starts it, always on the same ports and data."""

    def __init__(self, folder):
        made = script("with-object-stores")
        made.ensure_packages()

        class Kept(made.SeaweedFs):
            line = None

            def command(self):
                self.line = self.line or super().command()
                return self.line

        self.store = Kept(folder)
        self.start()
        self.port = urllib.parse.urlsplit(self.store.url).port

    def start(self):
        self.store.start()
        self.store.wait()

    def stop(self, mode):
        process = self.store.process
        if mode == "stop":
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                pass  # It closes its parts one after the other, and now and then waits for one of them for ever.
        process.kill()
        process.wait()

    def remove(self):
        self.store.kill()


class Proxies:
    """Routes by name, each from a free port of its own to the given one."""

    def __init__(self, targets):
        self.ports = dict(zip(targets, keeper.free_ports(len(targets))))
        routes = [f"{name}={self.ports[name]}:{target}" for name, target in targets.items()]
        command = [sys.executable, HERE / "proxy.py", *routes]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "listening\n":
            sys.exit("chaos: the proxies did not start")

    def change(self, name, mode):
        self.process.stdin.write(f"{name} {mode}\n")
        self.process.stdin.flush()

    def remove(self):
        self.process.kill()
        self.process.wait()
