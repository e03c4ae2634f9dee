"""Processes that are kept going: one that ends is started again, one that falls silent is killed.

They share no lock and no pipe, so that one which is killed at any moment harms no other. A process
whose keeper was killed ends by itself.
"""

import logging
import mmap
import multiprocessing
import os
import signal
import struct
import time
from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)

FORK = multiprocessing.get_context("fork")
LOOK_SECONDS = 0.5
IDLE_SECONDS = 30.0  # that a process may be silent while it waits; SQLite makes one wait for 20
WORK_SECONDS = 600.0  # and while it does a job

_ending = False  # this process was asked to end
_until: mmap.mmap | None = None  # a time: until then the silence of this process means no harm
_keeper = 0  # its process id


class KeptProcess:
    """A process that runs `work`, restarted whenever it ends."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name, self._work = name, work
        # Shared with the process after the fork. Without a lock, a process killed here blocks
        # nobody.
        self._until = mmap.mmap(-1, 8)
        self.start()

    def start(self) -> None:
        # Before the fork: a process that hangs on its way up is killed, too.
        _write(self._until, IDLE_SECONDS)
        self._process = FORK.Process(target=self._run, args=[os.getpid()], name=self._name)
        try:
            self._process.start()
        except OSError as error:  # no memory just now; the next look tries again
            logger.error("%s cannot be started: %s", self._name, error)

    def _run(self, keeper: int) -> None:
        global _until, _keeper
        _until, _keeper = self._until, keeper
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C: the keeper asks
        logger.info("%s ready for work at %s", self._name, os.getpid())
        self._work()

    def look(self) -> None:
        """Restart the process if it ended; kill it first if it has been silent for too long."""
        if self._process.is_alive() and time.monotonic() > _read(self._until):
            logger.error("%s hangs and is killed", self._name)
            self.kill()
        if not self._process.is_alive():
            if self._process.exitcode:
                logger.error("%s ended with %s", self._name, self._process.exitcode)
            self.start()

    def ask_to_end(self) -> None:
        if not self.has_ended():
            self._process.terminate()

    def has_ended(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        if not self.has_ended():
            self._process.kill()
            self._process.join()


def keep(work_by_name: Mapping[str, Callable[[], None]], grace_seconds: float) -> None:
    """Run each of the works in a separate process until SIGTERM or SIGINT.

    Processes may then finish their work; after `grace_seconds` they are killed.
    """
    # Before the forks, so that the processes have the handlers, too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    processes = [KeptProcess(name, work) for name, work in work_by_name.items()]
    while not _ending:
        for process in processes:
            process.look()
        time.sleep(LOOK_SECONDS)
    for process in processes:
        process.ask_to_end()
    deadline = time.monotonic() + grace_seconds
    while time.monotonic() < deadline and not all(process.has_ended() for process in processes):
        time.sleep(0.1)
    for process in processes:
        process.kill()


def _end(number: int, frame: object) -> None:
    global _ending
    _ending = True


def must_end() -> bool:
    """Return whether this process was asked to end, or its keeper has died."""
    # A process whose parent ended gets another one at once.
    return _ending or (_keeper != 0 and os.getppid() != _keeper)


def pause(seconds: float) -> bool:
    """Sleep while signalling the keeper; return False, early, if this process must end."""
    end = time.monotonic() + seconds
    while not must_end() and (remaining_seconds := end - time.monotonic()) > 0:
        _tell(IDLE_SECONDS)
        # In short steps: a signal ends no sleep (PEP 475), and the keeper must hear from us.
        time.sleep(min(remaining_seconds, 1.0))
    return not must_end()


def is_at_work() -> None:
    """Tell the keeper that this process runs a job, so that it may be silent for longer.

    A long job must call this repeatedly, or its process is killed. Without a keeper this does
    nothing.
    """
    _tell(WORK_SECONDS)


def _tell(silent_seconds: float) -> None:
    if _until is not None:
        _write(_until, silent_seconds)


def _write(until: mmap.mmap, seconds: float) -> None:
    # This clock is the same in all processes of a machine, and nobody sets it back.
    until[:] = struct.pack("d", time.monotonic() + seconds)


def _read(until: mmap.mmap) -> float:
    (ends_at,) = struct.unpack("d", until[:])
    return float(ends_at)
