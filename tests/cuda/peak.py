"""Runs a command and says what it and all its descendants took, as JSON in FILE: peak.py FILE COMMAND...

cpu_s is the CPU time of all of them, mib the most memory that they had at the same time, processes how many there were, ended_ns when the command had
ended (CLOCK_MONOTONIC). A daemon of the command counts too: this process becomes its parent, and ends it when the command has ended. Memory that
processes share counts once, by the process that has most of it.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PERIOD = 0.05
PATIENCE = 5
PR_SET_CHILD_SUBREAPER = 36
PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def parents():
    """The parent of each process, and the CPU time of its own."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK
    return found


class Family:
    def __init__(self):
        self.cpu, self.last, self.most = {}, 0, 0

    def look(self):
        """The descendants that there are now."""
        found = parents()
        family, new = set(), {os.getpid()}
        while new:
            new = {process for process, (parent, _) in found.items() if parent in new} - family
            family |= new
        own, shared = 0, 0
        for process in family:
            self.cpu[process] = found[process][1]
            try:
                _, resident, common, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
            except OSError:
                continue
            own, shared = own + resident - common, max(shared, common)
        # A process between vfork and exec has its parent's memory, for a moment: what is there twice running is no such.
        now = (own + shared) * PAGE / 2**20
        self.last, self.most = now, max(self.most, min(self.last, now))
        return family

    def end(self):
        """Ends those that are left, and waits for them."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            begin = time.monotonic()
            while time.monotonic() - begin < PATIENCE and (left := self.look()):
                for process in left:
                    try:
                        os.kill(process, number)
                    except ProcessLookupError:
                        pass
                reap()
                time.sleep(0.01)


def reap():
    """The processes that have ended, with how they did."""
    ended = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not process:
            return ended
        ended[process] = os.waitstatus_to_exitcode(status)


def main():
    file, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    # A caller that has no patience left: what is left of the command ends first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    family = Family()
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
        ended = {}
        while child not in ended:
            family.look()
            signal.sigtimedwait({signal.SIGCHLD}, PERIOD)
            ended.update(reap())
        now = time.monotonic_ns()
    finally:
        family.end()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    numbers = {
        # A child whose parent does not wait for it is in what was seen alone.
        "cpu_s": max(used.ru_utime + used.ru_stime, sum(family.cpu.values())),
        "mib": max(family.most, used.ru_maxrss / 1024),
        "processes": len(family.cpu),
        "ended_ns": now,
    }
    Path(file).write_text(json.dumps(numbers))
    sys.exit(ended[child] & 255)


if __name__ == "__main__":
    main()
