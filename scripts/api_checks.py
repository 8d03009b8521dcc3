"""What the scripts that check the API have in common: a Python environment of their own, and a real server."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TOOLS = REPOSITORY / ".tools"


def create_venv(name, packages):
    """Installs the packages into .tools/NAME, unless they are there, and returns that folder."""
    venv = TOOLS / name

    def install():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", *packages], check=True)

    # A virtual environment contains its own path: if the repository was moved, it must be created again.
    install_once(name, "\n".join([*packages, str(venv)]), install)
    return venv


def install_once(name, expected, install):
    """Calls `install` to fill the empty folder .tools/NAME, unless it was filled for the same `expected` text before."""
    folder = TOOLS / name
    TOOLS.mkdir(exist_ok=True)
    with open(TOOLS / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "packages.stamp"
        if stamp.is_file() and stamp.read_text() == expected:
            return
        print(f"{name}: installing into {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        install()
        # Written last, so that an interrupted installation starts again.
        stamp.write_text(expected)


class Server:
    """The real program on SQLite and a folder, at a free port."""

    def __init__(self, name, program, folder, settings=None):
        self.name = name
        self.program = program
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "DATABASE_URL": f"sqlite://{folder}/landfall.db",
            "STORAGE_URL": f"file://{folder}/blobs",
            "PORT": "0",
            "LOG_FORMAT": "json",
            **(settings or {}),
        }
        self.folder = folder
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(
            [program, "serve"], cwd=folder, env=self.environment, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.base = self.read_address()
        # Read all further output, so that the pipe does not fill up.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def read_address(self):
        for line in self.process.stdout:
            if "listening on http" in line:
                return line.split()[-1]
        sys.exit(f"{self.name}: the server does not start:\n" + (self.folder / "log").read_text())

    def token(self, user, tenant, role):
        command = [self.program, "token", "--user", user, "--tenant", tenant, "--role", role]
        made = subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return made.stdout.strip()

    def check_log(self):
        """Finds errors that the server logged but did not show to the caller."""
        self.log.flush()
        lines = (self.folder / "log").read_text().splitlines()
        bad = [line for line in lines if "a request failed" in line or "panicked" in line]
        for line in bad[:20]:
            print(line)
        if bad:
            print(f"{self.name}: the server's log has {len(bad)} errors")
        return 1 if bad else 0

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
