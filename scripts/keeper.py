"""What scripts/with-postgres and scripts/with-object-stores have in common: run a command next to servers that end with it.

The servers belong to a second process, the keeper. It stops and removes them as soon as its pipe from the main process
closes, so nothing is left behind even if the main process is killed.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import traceback

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_beside(name, make, command):
    """Runs the command beside what `make` makes, and exits with the command's own code. `name` is for messages.

    What is made has two methods: `start` returns the environment variables for the command, and `remove` leaves nothing."""
    handle_signals(lambda number, _frame: sys.exit(128 + number))
    keeper = Keeper(make)
    try:
        code = run(name, command, dict(os.environ, **keeper.variables()), keeper)
    finally:
        keeper.stop()
    sys.exit(code)


class Keeper:
    """The process that creates, starts, stops and removes the servers. It ignores signals and ends only after the main
    process has ended, so the servers are never interrupted and leave no shared memory or sockets behind."""

    def __init__(self, make):
        # Child programs do not inherit the pipes, so the keeper's pipe closes when this process ends or is killed.
        from_us, self.to_keeper = os.pipe()
        self.from_keeper, to_us = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                os.setsid()
                # An empty handler and not SIG_IGN, because the servers would inherit SIG_IGN.
                handle_signals(lambda _number, _frame: None)
                os.close(self.to_keeper)
                os.close(self.from_keeper)
                self.keep(make(), from_us, to_us)
                code = 0
            except SystemExit as refusal:
                print(refusal, file=sys.stderr)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(from_us)
        os.close(to_us)

    def keep(self, kept, from_us, to_us):
        try:
            variables = kept.start()
            with open(from_us) as pipe:
                with open(to_us, "w") as reply:
                    json.dump(variables, reply)
                groups = pipe.read().split()
            # The last entry is the process group that must end with the main process, or "none".
            if groups and groups[-1] != "none":
                os.killpg(int(groups[-1]), signal.SIGKILL)
        except (BrokenPipeError, ProcessLookupError):
            pass  # The main process or the command has already ended.
        finally:
            kept.remove()

    def variables(self):
        with open(self.from_keeper) as pipe:
            return json.loads(pipe.read() or sys.exit(1))

    def kill_with_us(self, group):
        """Sets the process group that the keeper kills if this process dies. None: there is none, or it has ended."""
        os.write(self.to_keeper, f"{group or 'none'}\n".encode())

    def stop(self):
        handle_signals(signal.SIG_IGN)
        os.close(self.to_keeper)
        os.waitpid(self.process, 0)


def handle_signals(handler):
    for number in SIGNALS:
        signal.signal(number, handler)


def run(name, command, environment, keeper):
    """Runs the command, forwards signals to it and returns its exit code."""
    # At a terminal the command must stay in the group that owns the terminal, where Ctrl-C reaches it. Otherwise it gets
    # its own group, so that a signal to this process also reaches the processes that the command has started.
    at_terminal = owns_terminal()
    child, early = None, []

    def forward(number, _frame=None):
        if child is None:
            early.append(number)
        elif not at_terminal:
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                pass  # It has just ended.
        elif number != signal.SIGINT:
            child.send_signal(number)

    handle_signals(forward)
    try:
        child = subprocess.Popen(command, env=environment, start_new_session=not at_terminal)
    except OSError as error:
        print(f"{name}: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    keeper.kill_with_us(None if at_terminal else child.pid)
    for number in early:
        forward(number)
    code = child.wait()
    keeper.kill_with_us(None)
    return code if code >= 0 else 128 - code


def owns_terminal():
    try:
        with open("/dev/tty") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def free_ports(count):
    """Ports that are free now, all different. The system gives none of them to an outgoing connection, so a server that is started
    again finds its port free."""
    probes = []
    try:
        while len(probes) < count:
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", random.randrange(10_000, first_outgoing_port())))
                probes.append(probe)
            except OSError:
                probe.close()
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def first_outgoing_port():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as found:
            return max(int(found.read().split()[0]), 20_000)
    except OSError:
        return 32_768
