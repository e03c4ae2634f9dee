"""The resources that a sandbox used, from its cgroup, and the pace of its answers.

Pure: reads files of the kernel, knows no Docker.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evaluation.contract import Usage

BATCH_SECONDS = 0.05  # answers this soon after the first came in the same batch
LEAST_SAMPLES = 5  # fewer, of a run shorter than a second, may all miss the peak of memory
STARTING_SECONDS = 30.0  # of processor time: importing a framework and reading weights
AHEAD_SHARE = 0.25
AHEAD_WARNING = (
    "The model used {before:.0f} of its {cpu:.0f} processor seconds before its first answer, so it "
    "may have worked ahead: examples per second count the whole time."
)


class Latency(NamedTuple):
    """The seconds needed for one example asked alone; None if no example was asked alone."""

    median: float | None
    p95: float | None


def latency_of(seconds: Iterable[float]) -> Latency:
    """Return the median and the 95th percentile: the smallest values that cover 50 % and 95 %."""
    sorted_seconds = sorted(seconds)
    if not sorted_seconds:
        return Latency(None, None)
    median, p95 = (
        sorted_seconds[math.ceil(share * len(sorted_seconds)) - 1] for share in (0.5, 0.95)
    )
    return Latency(median, p95)


class Sample(NamedTuple):
    """Processor seconds used so far, and bytes of memory that the kernel cannot reclaim at once.

    The kernel's own peak is not used, because it includes the file cache, such as weights read.
    """

    cpu_seconds: float
    memory_bytes: int


class Cgroup:
    """The cgroup of a container, version 1 or 2."""

    def __init__(self, cpu: Path, memory: Path, *, version: int) -> None:
        self.cpu, self.memory, self.version = cpu, memory, version

    def sample(self) -> Sample | None:
        """Return the resources used so far; None if the cgroup is gone."""
        try:
            # Pages of files that were read: the kernel drops them when others need the memory.
            cached_bytes = _field(
                self.memory / "memory.stat", ("total_inactive_file", "inactive_file")
            )
            if self.version == 1:
                seconds = int((self.cpu / "cpuacct.usage").read_text()) / 1e9
                used_bytes = int((self.memory / "memory.usage_in_bytes").read_text())
            else:
                seconds = _field(self.cpu / "cpu.stat", ("usage_usec",)) / 1e6
                used_bytes = int((self.memory / "memory.current").read_text())
        except OSError:
            return None
        return Sample(seconds, max(0, used_bytes - cached_bytes))


def _field(path: Path, names: tuple[str, ...]) -> int:
    """Return the number after the first existing name, from a file of `name number` lines."""
    numbers = dict(line.split() for line in path.read_text().splitlines())
    return int(next(numbers[name] for name in names if name in numbers))


def cgroup_of(pid: int, container_id: str, root: Path = Path("/")) -> Cgroup | None:
    """Return the cgroup of a container, found by its first process.

    None if the engine runs on another machine, because the local process with this id is then
    another one.
    """
    try:
        text = (root / f"proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if container_id in path:
            paths.update({name: path.lstrip("/") for name in controllers.split(",")})
    cgroup_root = root / "sys/fs/cgroup"
    if "memory" in paths and "cpuacct" in paths:
        cpu, memory = (cgroup_root / name / paths[name] for name in ("cpuacct", "memory"))
        return Cgroup(cpu, memory, version=1)
    if "" in paths and (cgroup_root / "cgroup.controllers").exists():
        return Cgroup(cgroup_root / paths[""], cgroup_root / paths[""], version=2)
    return None


@dataclass
class Pace:
    """The measurements of one run. All times are in seconds of the caller's clock.

    The first batch of answers is warm-up: the rate is computed from the answers and the time after
    it. A model that computes everything before its first answer would look fast. So if a
    submitter's image used more than STARTING_SECONDS of processor time, and more than AHEAD_SHARE
    of all of it, before its first answer, its answers are divided by the whole time.
    """

    start: float
    first: float | None = None
    warm: float = 0.0  # when the last answer of the first batch came
    last: float = 0.0
    answers: int = 0
    warm_answers: int = 0
    before: Sample | None = None  # when the first answer came
    now: Sample | None = None
    peak_bytes: int = 0
    alone: list[float] = field(default_factory=list)  # seconds of examples that were asked alone
    samples: int = 0
    _byte_seconds: float = field(default=0.0, repr=False)
    _sampled: float | None = field(default=None, repr=False)
    _since: float = field(default=0.0, repr=False)

    def answered(self, count: int, now: float) -> None:
        """Record `count` more answers at the time `now`."""
        if self.first is None:
            self.first, self.before = now, self.now
        # Answers of the first batch come together; only what follows shows the model's pace.
        if now - self.first <= BATCH_SECONDS:
            self.warm, self.warm_answers = now, self.warm_answers + count
        self.last = now
        self.answers += count

    def sampled(self, sample: Sample | None, now: float) -> None:
        """Record a sample at the time `now`."""
        if sample is None:
            return
        if self._sampled is None:
            self._since = now
        else:  # a mean over time, because looks are not equally far apart
            self._byte_seconds += sample.memory_bytes * (now - self._sampled)
        self.now, self._sampled = sample, now
        self.samples += 1
        self.peak_bytes = max(self.peak_bytes, sample.memory_bytes)

    def usage(self, end: float, *, trusted: bool) -> tuple[Usage, str]:
        """Return the usage until `end`, and a warning or "".

        trusted: whether the harness is ours.
        """
        rate = None
        if self.last > self.warm and self.answers > self.warm_answers:
            rate = (self.answers - self.warm_answers) / (self.last - self.warm)
        warning, early_cpu_seconds, cpu = "", 0.0, None
        if self.before:
            early_cpu_seconds = self.before.cpu_seconds
        if self.now:
            cpu = self.now.cpu_seconds
        if not trusted and cpu and early_cpu_seconds > max(STARTING_SECONDS, AHEAD_SHARE * cpu):
            rate = self.answers / (self.last - self.start)
            warning = AHEAD_WARNING.format(before=early_cpu_seconds, cpu=cpu)
        start_seconds = answer_seconds = peak_bytes = mean_bytes = None
        if self.first is not None:
            start_seconds, answer_seconds = self.first - self.start, self.last - self.first
        if self.samples >= LEAST_SAMPLES:
            sampled_seconds = (self._sampled or 0.0) - self._since
            peak_bytes, mean_bytes = self.peak_bytes, round(self._byte_seconds / sampled_seconds)
        latency = latency_of(self.alone)
        usage = Usage(
            seconds=end - self.start,
            start_seconds=start_seconds,
            answer_seconds=answer_seconds,
            examples_per_second=rate,
            cpu_seconds=cpu,
            peak_bytes=peak_bytes,
            mean_bytes=mean_bytes,
            answers=self.answers,
            latency_seconds=latency.median,
            latency_p95_seconds=latency.p95,
        )
        return usage, warning
