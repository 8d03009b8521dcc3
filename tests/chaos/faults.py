"""The faults, drawn from a seed: what breaks, where, when and for how long."""

import time

# Processes count as dead after two seconds (worlds.py), so most of these last longer.
LONGER_THAN_A_LEASE = (2.5, 5.0)
SHORT = (0.2, 1.5)
# A process that cannot reach its database or storage when it starts ends by itself, and is started again. It notices late.
EXCUSED_SECONDS = 15
STEP = 0.02
# A pause between bursts of kills, compared with the pause between two kills.
CALM = 8


class Fault:
    """Something that is broken for a while. `begin` may say what it did, and `end` undoes it."""

    # Whether a process may end by itself because of it.
    excuses = False
    seconds = LONGER_THAN_A_LEASE

    def __init__(self, world, fleet, random):
        self.world, self.fleet, self.random = world, fleet, random
        self.number = random.randrange(len(fleet.processes))
        self.prepare()

    @staticmethod
    def applies(_world, _fleet):
        return True

    def prepare(self):
        pass

    def begin(self):
        pass

    def end(self):
        pass


class Freeze(Fault):
    """SIGSTOP for longer than a lease, then SIGCONT: a process that was thought dead comes back."""

    def begin(self):
        self.fleet.freeze(self.number)
        return f"process {self.number} is frozen"

    def end(self):
        self.fleet.thaw(self.number)


class Network(Fault):
    """Bytes are held back, delayed or cut off, for one process or for all."""

    def prepare(self):
        kinds = ["client"] + ["database"] * bool(self.world.postgres) + ["store"] * bool(self.world.store)
        kind = self.random.choice(kinds)
        everywhere = self.random.random() < 0.3
        numbers = range(len(self.fleet.processes)) if everywhere else [self.number]
        self.routes = [f"{kind}{number}" for number in numbers]
        self.mode = self.random.choice(["hold", "cut", "refuse", f"delay {self.random.uniform(0.01, 0.15):.3f}"])
        self.then = self.random.choice(["pass", "cut"])
        self.excuses = kind != "client"

    def begin(self):
        for route in self.routes:
            self.world.proxies.change(route, self.mode)
        return f"network {self.mode}: {' '.join(self.routes)}"

    def end(self):
        for route in self.routes:
            self.world.proxies.change(route, self.then)


class RestartDatabase(Fault):
    excuses, seconds = True, SHORT

    @staticmethod
    def applies(world, _fleet):
        return world.postgres is not None

    def begin(self):
        mode = self.random.choice(["fast", "immediate"])
        self.world.postgres.stop(mode)
        return f"PostgreSQL is stopped ({mode})"

    def end(self):
        self.world.postgres.start()


class TerminateBackends(Fault):
    excuses, seconds = True, (0, 0)
    applies = RestartDatabase.applies

    def begin(self):
        return f"{self.world.postgres.terminate_backends()} connections of PostgreSQL are ended"


class RestartStore(Fault):
    excuses, seconds = True, SHORT

    @staticmethod
    def applies(world, _fleet):
        return world.store is not None

    def begin(self):
        mode = self.random.choice(["kill", "stop"])
        self.world.store.stop(mode)
        return f"SeaweedFS is stopped ({mode})"

    def end(self):
        self.world.store.start()


class FullDisk(Fault):
    """No room for blobs, nor for a SQLite database: less than the minimum, or not a byte."""

    excuses, seconds = True, (0.5, 3.0)

    @staticmethod
    def applies(world, _fleet):
        return world.disk.can_fill and world.store is None

    def begin(self):
        leave = self.random.choice([0, 100_000, 4_000_000])
        self.world.disk.fill(leave)
        return f"the disk is full but for {leave} bytes"

    def end(self):
        self.world.disk.free()


class ClockJump(Fault):
    """The clock jumps and jumps back. Processes on one SQLite share a machine, and so a clock. The store refuses requests of a
    clock that is wrong by 15 minutes."""

    seconds = (2.0, 8.0)

    @staticmethod
    def applies(_world, fleet):
        return fleet.has_clocks

    def prepare(self):
        most = 240 if self.world.store else 1500
        self.jump = self.random.choice([-1, 1]) * self.random.choice([3, 25, most])
        shared = self.world.postgres is None or self.random.random() < 0.2
        self.numbers = range(len(self.fleet.processes)) if shared else [self.number]

    def begin(self):
        for number in self.numbers:
            self.fleet.set_clock(number, self.jump)
        return f"clock {self.jump:+d} s: processes {' '.join(str(number) for number in self.numbers)}"

    def end(self):
        for number in self.numbers:
            self.fleet.set_clock(number, 0)


class Deploy(Fault):
    """SIGTERM: a process stops in good order, and another one takes its place."""

    seconds = (0, 0)

    def begin(self):
        self.fleet.thaw(self.number)
        code = self.fleet.stop(self.number)
        self.fleet.start(self.number)
        return f"process {self.number} was stopped, exit code {code}"


class KillAll(Fault):
    """All processes die at once, as in a power cut of their machine."""

    seconds = (0, 0)

    def begin(self):
        for process in self.fleet.processes:
            self.fleet.kill(process.number)
        self.fleet.start_all()
        return "all processes are killed"


class KillReader(Fault):
    """A process that reads a document is killed from outside."""

    seconds = (0, 0)

    def begin(self):
        return f"a reader of process {self.number} is killed: {self.fleet.kill_reader(self.number)}"


KINDS = [
    (Freeze, 4), (Network, 8), (RestartDatabase, 2), (TerminateBackends, 2), (RestartStore, 2), (FullDisk, 2), (ClockJump, 3),
    (Deploy, 2), (KillAll, 1), (KillReader, 3),
]


class Schedule:
    """Breaks things for some seconds: processes are killed all the time, and other faults come one or two at once."""

    def __init__(self, world, fleet, random, history, kill_every):
        self.world, self.fleet, self.random, self.history = world, fleet, random, history
        self.kill_every = kill_every
        self.kinds = [(kind, weight) for kind, weight in KINDS if kind.applies(world, fleet)]
        self.active = []
        self.excused_until = 0.0
        self.counts = {}

    def run(self, seconds):
        ends_at = time.monotonic() + seconds
        next_fault = next_kill = time.monotonic() + 0.5
        while (now := time.monotonic()) < ends_at:
            self.end_what_is_over(now)
            if now >= next_kill:
                self.kill()
                # Kills come in bursts, so that work goes on in between and is interrupted at every point.
                pause = CALM if self.random.random() < 0.1 else 1
                next_kill = now + self.random.uniform(0.1, 1.9) * self.kill_every * pause
            if now >= next_fault and len(self.active) < 2:
                self.begin_fault()
                next_fault = time.monotonic() + self.random.uniform(0.2, 2.5)
            self.look_at_processes()
            time.sleep(STEP)
        self.heal()

    def kill(self):
        number = self.random.randrange(len(self.fleet.processes))
        if self.fleet.kill(number):
            self.history.note_fault(f"process {number} is killed")
        self.fleet.start(number)

    def begin_fault(self):
        [(kind, _)] = self.random.choices(self.kinds, [weight for _, weight in self.kinds])
        if any(isinstance(fault, kind) for fault, _ in self.active):
            return
        fault = kind(self.world, self.fleet, self.random)
        seconds = self.random.uniform(*fault.seconds)
        if what := fault.begin():
            self.history.note_fault(f"{what} ({seconds:.1f} s)" if seconds else what)
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
        self.active.append((fault, time.monotonic() + seconds))
        self.excuse(fault)

    def end_what_is_over(self, now):
        for fault, ends_at in list(self.active):
            if now >= ends_at:
                self.active.remove((fault, ends_at))
                self.end(fault)

    def end(self, fault):
        fault.end()
        self.excuse(fault)
        if any(fault.seconds):
            self.history.note_fault(f"{type(fault).__name__} is over")

    def excuse(self, fault):
        if fault.excuses:
            self.excused_until = time.monotonic() + EXCUSED_SECONDS

    def look_at_processes(self):
        for number, code, tail in self.fleet.revive():
            broken = any(fault.excuses for fault, _ in self.active) or time.monotonic() < self.excused_until
            self.history.note_fault(f"process {number} ended by itself with {code}")
            if broken:
                self.history.count("starts that were refused")
            else:
                self.history.break_promise("a process does not end by itself", f"process {number}, code {code}: {tail}")

    def heal(self):
        """Everything works again: what is broken now, and what was left over."""
        for fault, _ in self.active:
            self.end(fault)
        self.active = []
        for route in self.world.proxies.ports:
            self.world.proxies.change(route, "pass")
        self.fleet.start_all()
        self.history.note_fault("everything works again")
