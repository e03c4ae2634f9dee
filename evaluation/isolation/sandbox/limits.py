"""The limits of a model's run, and how containers, processes and endpoints enforce them.

To add a limit, add a field to `Limits` and its rule: an option of containers, a resource limit of
processes, or a check by the monitor. Pure.
"""

import math
import resource
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaluation.contract import GIB, MIB, Ending, Outcome

SCRATCH_MOUNT = "rw,noexec,nosuid,nodev,size={},nr_inodes={},mode=1777"
GVISOR_PROCESSES = 1024  # includes its own threads
PROCESS_FILES = 1024  # open at once, for a process without a container
PROCESS_SLACK_BYTES = 4 * GIB  # of reserved but unused address space
PROCESS_NICE = 10  # the site on the same machine has priority
CHECK_SECONDS = 300.0  # for five examples; most of it is for loading a large model from disk
MAX_IMAGE_BYTES = 16 * GIB  # for an unpacked image
SPARE_BYTES = 5 * GIB  # of the engine's disk, which images may not use


class LimitExceeded(Exception):
    """Raised when a run exceeds a limit. `ending` is the ending that follows."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.sentence)
        self.ending = ending


@dataclass(frozen=True)
class Limits:
    """The resources that a model may use.

    A run that exceeds a limit ends with that limit's outcome.
    """

    seconds: float = 3600.0
    memory_bytes: int = 8 * GIB
    cpus: float = 2.0
    processes: int = 256
    open_files: int = 4096
    scratch_bytes: int = 256 * MIB  # for /tmp
    scratch_files: int = 16384
    shared_bytes: int = 64 * MIB  # for /dev/shm
    output_bytes: int = 256 * MIB  # for all answers
    line_bytes: int = MIB  # for one answer
    log_bytes: int = 64 * 1024  # of the end of the log

    @classmethod
    def build_for_machine(cls, memory_gib: int, cpus: float, seconds: float = 3600.0) -> "Limits":
        """Return the limits for a whole set, with an installation's memory, processors and time."""
        return cls(seconds=seconds, memory_bytes=memory_gib * GIB, cpus=cpus)

    def restrict_for_check(self) -> "Limits":
        """Return these limits reduced for answering five examples."""
        return replace(self, seconds=CHECK_SECONDS, output_bytes=MIB)

    @property
    def threads(self) -> int:
        """The number of threads that can work at the same time."""
        return math.ceil(self.cpus)

    def list_container_options(
        self, scratch: str, volumes: Collection[str], *, is_gvisor: bool
    ) -> dict[str, Any]:
        """Return the arguments of Docker's `containers.create` that enforce the limits.

        scratch: the writable folder. volumes: the paths that the image declares as volumes, which
        otherwise would be writable on the host's disk.
        """
        ulimits = {"core": 0, "nofile": self.open_files, "fsize": self.scratch_bytes}
        processes = self.processes
        if is_gvisor:
            # With runc, nproc would count the processes of all containers of this user.
            ulimits["nproc"] = self.processes
            processes = max(self.processes, GVISOR_PROCESSES)
        # An empty file system for each volume, which would otherwise be a folder of the host.
        mounts = dict.fromkeys(volumes, "ro,size=4k,mode=555")
        mounts[scratch] = SCRATCH_MOUNT.format(self.scratch_bytes, self.scratch_files)
        return {
            "tmpfs": mounts,
            "shm_size": self.shared_bytes,
            "pids_limit": processes,
            "mem_limit": self.memory_bytes,
            "memswap_limit": self.memory_bytes,  # equal to memory: no swap
            "nano_cpus": int(self.cpus * 1e9),
            "ulimits": [
                {"name": name, "soft": limit, "hard": limit} for name, limit in ulimits.items()
            ],
            "oom_score_adj": 500,  # killed before any process of the host
        }

    def list_process_limits(self) -> Mapping[int, int]:
        """Return the resource limits of a process.

        `check_usage` stops a model before it reaches them.
        """
        return {
            resource.RLIMIT_AS: self.memory_bytes + PROCESS_SLACK_BYTES,
            resource.RLIMIT_FSIZE: self.scratch_bytes,
            resource.RLIMIT_NOFILE: PROCESS_FILES,
            resource.RLIMIT_CORE: 0,
        }

    def check_output(self, size: int, lines: int) -> None:
        """Raise LimitExceeded if the standard output has more bytes than allowed."""
        if size > self.output_bytes:
            raise LimitExceeded(
                Ending(
                    Outcome.OUTPUT_TOO_LARGE,
                    sentence="The model wrote more to standard output than its answers may take. "
                    "Write a line for each example there, and all else to standard error.",
                    limit=_format_size(self.output_bytes),
                    measured=f"more, after {lines} lines",
                )
            )

    def check_usage(self, *, seconds: float, memory_bytes: int, answers: int) -> None:
        """Raise LimitExceeded if the model has used too much time or memory.

        memory_bytes: 0 if the kernel enforces the memory limit.
        """
        if memory_bytes > self.memory_bytes:
            raise LimitExceeded(self.build_oom_ending(answers))
        if seconds >= self.seconds:
            raise LimitExceeded(
                Ending(
                    Outcome.TIMEOUT,
                    sentence="The model had not finished when its time was over. Answer in "
                    "batches, load the model once, and flush each answer; or submit a smaller one.",
                    limit=f"{self.seconds:g} seconds",
                    measured=f"{answers} answers by then",
                )
            )

    def build_oom_ending(self, answers: int) -> Ending:
        """Return the ending of a model that exceeded its memory limit."""
        return Ending(
            Outcome.OOM,
            sentence="The model needed more memory than it may use. Load it once, in 16 "
            "bits, and answer in smaller batches; or submit a smaller one.",
            limit=_format_size(self.memory_bytes),
            measured=f"more, after {answers} answers",
        )


def _format_size(size: int) -> str:
    """Return a number of bytes as text: `_format_size(2**30)` is "1 GiB"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


@dataclass(frozen=True)
class CallLimits:
    """The limits on the size, number, duration and retries of calls to an endpoint."""

    examples: int = 16  # in one call
    concurrent_calls: int = 4
    seconds: float = 60.0  # for one call
    attempts: int = 5  # of a failing call; “retry later” does not count
    longest_wait_seconds: float = 3600.0  # that a “retry later” may ask for
    doublings: int = 6  # of the wait, which starts at two seconds


CALL_LIMITS = CallLimits()
CHAT_CALL_LIMITS = CallLimits(examples=1, concurrent_calls=8)
