"""The processes of Landfall: started, killed, frozen, stopped in good order, and with clocks of their own."""

import os
import signal
import subprocess
import time

# Debian's libfaketime; the folder has the name of the machine's architecture in it.
CLOCK_LIBRARY = f"/usr/lib/{os.uname().machine}-linux-gnu/faketime/libfaketimeMT.so.1"
STOP_SECONDS = 40
RESTART_SECONDS = 0.3


class Process:
    """A place in the fleet: a port, a log, a clock, and the process that runs there now."""

    def __init__(self, number, port, folder):
        self.number = number
        self.port = port
        self.log = folder / f"log-{number}"
        self.clock = folder / f"clock-{number}"
        self.child = None
        self.is_frozen = False
        self.starts_at = 0.0


class Fleet:
    def __init__(self, program, folder, ports, settings, history):
        """`settings`: the environment of the process with the given number."""
        self.program, self.folder, self.settings, self.history = program, folder, settings, history
        self.processes = [Process(number, port, folder) for number, port in enumerate(ports)]
        self.has_clocks = os.path.exists(CLOCK_LIBRARY)
        self.starts = self.kills = 0
        for process in self.processes:
            process.clock.write_text("+0\n")

    def environment(self, process):
        found = {"PATH": os.environ["PATH"], "PORT": str(process.port), **self.settings(process.number)}
        if self.has_clocks:
            found |= {
                "LD_PRELOAD": CLOCK_LIBRARY, "FAKETIME_TIMESTAMP_FILE": str(process.clock), "FAKETIME_CACHE_DURATION": "1",
                # Only the time of the day jumps. Timers go by a clock that does not.
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1",
            }
        return found

    def start(self, number):
        process = self.processes[number]
        with open(process.log, "a") as log:
            process.child = subprocess.Popen(
                [self.program, "serve"], cwd=self.folder, env=self.environment(process),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        process.is_frozen = False
        self.starts += 1

    def start_all(self):
        for process in self.processes:
            if process.child is None:
                self.start(process.number)

    def kill(self, number):
        """SIGKILL: nothing is logged, nothing is finished."""
        process = self.processes[number]
        if process.child is None:
            return False
        ended_before = process.child.poll() is not None
        process.child.kill()
        process.child.wait()
        process.child, process.is_frozen = None, False
        self.kills += not ended_before
        return not ended_before

    def kill_reader(self, number):
        """Kills one of the processes in which this one reads documents. Returns whether there was one."""
        child = self.processes[number].child
        for folder in os.listdir("/proc"):
            if child is None or not folder.isdigit():
                continue
            try:
                with open(f"/proc/{folder}/stat") as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                if parent == child.pid:
                    os.kill(int(folder), signal.SIGKILL)
                    return True
            except (OSError, IndexError):
                continue  # It has ended in the meantime.
        return False

    def freeze(self, number):
        process = self.processes[number]
        if process.child is not None:
            process.child.send_signal(signal.SIGSTOP)
            process.is_frozen = True

    def thaw(self, number):
        process = self.processes[number]
        if process.child is not None and process.is_frozen:
            process.child.send_signal(signal.SIGCONT)
        process.is_frozen = False

    def stop(self, number):
        """SIGTERM. Returns the exit code, or None if it had to be killed."""
        process = self.processes[number]
        if process.child is None:
            return 0
        process.child.terminate()
        try:
            return process.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.child.kill()
            process.child.wait()
            return None
        finally:
            process.child = None

    def set_clock(self, number, seconds):
        self.processes[number].clock.write_text(f"{seconds:+d}\n")

    def revive(self):
        """Starts what has ended by itself again, after a moment, and returns the exit codes with the last lines of the logs."""
        ended = []
        for process in self.processes:
            if process.child is not None and process.child.poll() is not None:
                ended.append((process.number, process.child.returncode, self.tail(process)))
                process.child = None
                process.starts_at = time.monotonic() + RESTART_SECONDS
            elif process.child is None and time.monotonic() >= process.starts_at:
                self.start(process.number)
        return ended

    def tail(self, process):
        with open(process.log, "rb") as log:
            log.seek(max(0, process.log.stat().st_size - 1500))
            return log.read().decode(errors="replace")

    def panics(self):
        """Lines of the logs that must not be there."""
        found = []
        for process in self.processes:
            if process.log.exists():
                with open(process.log, errors="replace") as log:
                    found += [line.strip() for line in log if "panicked" in line]
        return found

    def run(self, *arguments, settings=None):
        """Runs the program to its end, with the settings of the first process and the true clock."""
        environment = {"PATH": os.environ["PATH"], **self.settings(0), **(settings or {})}
        return subprocess.run(
            [self.program, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300
        )

    def remove(self):
        for process in self.processes:
            self.kill(process.number)


def wait_for(what, is_true, seconds, step=0.1):
    """Waits for something that must become true. Returns whether it did."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True
