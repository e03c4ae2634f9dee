"""Measure the resources that a sandbox used, from its cgroup, and the pace of its answers.

Pure: reads files of the kernel, and does not depend on Docker.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.contract import Usage
from evaluation.scoring.measured import MAX_MEMORY_PEAKS, count_seconds

BATCH_SECONDS = 0.05  # answers this soon after the first belong to the same batch
MIN_SAMPLES = 5  # fewer, in a run shorter than a second, may miss the peak of memory
STARTING_SECONDS = 30.0  # of processor time: importing a framework and reading weights
MIN_AHEAD_SHARE = 0.25
AHEAD_WARNING = (
    "The model used {before:.0f} of its {cpu:.0f} processor seconds before its first answer, so it "
    "may have worked ahead: examples per second count the whole time."
)


class Latency(NamedTuple):
    """The seconds needed for one example asked alone; None if no example was asked alone."""

    median: float | None
    p95: float | None


def compute_latency(seconds: Iterable[float]) -> Latency:
    """Return the median and the 95th percentile of the values; None for both if there are none.

    Neither is interpolated. At least 50% or 95% of the values are at most as large.
    """
    sorted_seconds = sorted(seconds)
    if not sorted_seconds:
        return Latency(None, None)
    median, p95 = (
        sorted_seconds[math.ceil(share * len(sorted_seconds)) - 1] for share in (0.5, 0.95)
    )
    return Latency(median, p95)


class ResourceSample(NamedTuple):
    """Processor seconds used so far, and bytes of memory that the kernel cannot reclaim at once.

    The kernel's own peak is not used, because it includes the file cache, such as weights read.
    """

    cpu_seconds: float
    memory_bytes: int


class Cgroup:
    """The cgroup of a container, version 1 or 2."""

    def __init__(self, cpu: Path, memory: Path, *, version: int) -> None:
        self.cpu, self.memory, self.version = cpu, memory, version

    def sample(self) -> ResourceSample | None:
        """Return the resources used so far; None if the cgroup is gone."""
        try:
            # Cached pages of files, which the kernel drops when memory is needed.
            cached_bytes = _read_field(
                self.memory / "memory.stat", ("total_inactive_file", "inactive_file")
            )
            if self.version == 1:
                seconds = int((self.cpu / "cpuacct.usage").read_text()) / 1e9
                used_bytes = int((self.memory / "memory.usage_in_bytes").read_text())
            else:
                seconds = _read_field(self.cpu / "cpu.stat", ("usage_usec",)) / 1e6
                used_bytes = int((self.memory / "memory.current").read_text())
        except OSError:
            return None
        # The two are read one after the other, so the cache may seem larger than the total.
        return ResourceSample(seconds, max(0, used_bytes - cached_bytes))


def _read_field(path: Path, names: tuple[str, ...]) -> int:
    """Return the number after the first existing name, from a file of `name number` lines."""
    number_by_name = dict(line.split() for line in path.read_text().splitlines())
    return int(next(number_by_name[name] for name in names if name in number_by_name))


def find_cgroup(pid: int, container_id: str, root: Path = Path("/")) -> Cgroup | None:
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
class RunMeasurements:
    """The measurements of one run. All times are in seconds of the caller's clock.

    The first batch of answers is warm-up: the rate is computed from the answers and the time after
    it. A model that computes everything before its first answer would look fast. So the processor
    time that a submitter's image uses before its first answer is measured. If it is more than
    STARTING_SECONDS and more than MIN_AHEAD_SHARE of the whole processor time, the rate is
    computed from all answers and the whole time.
    """

    started_at: float
    first_answer_at: float | None = None
    first_batch_at: float = 0.0  # when the last answer of the first batch arrived
    last_answer_at: float = 0.0
    answers: int = 0
    first_batch_answers: int = 0
    first_answer_sample: ResourceSample | None = None  # when the first answer arrived
    last_sample: ResourceSample | None = None
    peak_bytes: int = 0
    single_seconds: list[float] = field(
        default_factory=list
    )  # seconds of examples that were sent alone
    sample_count: int = 0
    _byte_seconds: float = field(default=0.0, repr=False)
    _sampled_at: float | None = field(default=None, repr=False)
    _sampled_since: float = field(default=0.0, repr=False)
    _memory_peaks: list[int] = field(default_factory=list, repr=False)
    _samples_per_peak: int = field(default=1, repr=False)

    def record_answers(self, count: int, now: float) -> None:
        """Record `count` more answers at the time `now`."""
        if self.first_answer_at is None:
            self.first_answer_at, self.first_answer_sample = now, self.last_sample
        # Answers of the first batch arrive together; only later ones show the model's pace.
        if now - self.first_answer_at <= BATCH_SECONDS:
            self.first_batch_at, self.first_batch_answers = now, self.first_batch_answers + count
        self.last_answer_at = now
        self.answers += count

    def record_sample(self, sample: ResourceSample | None, now: float) -> None:
        """Record a sample taken at the time `now`. None is ignored."""
        if sample is None:
            return
        if self._sampled_at is None:
            self._sampled_since = now
        else:  # a mean over time, because samples are not equally spaced
            self._byte_seconds += sample.memory_bytes * (now - self._sampled_at)
        self.last_sample, self._sampled_at = sample, now
        self.sample_count += 1
        self.peak_bytes = max(self.peak_bytes, sample.memory_bytes)
        self._record_peak(sample.memory_bytes)

    def _record_peak(self, memory_bytes: int) -> None:
        """Keep the highest sample of each part of the run, with longer parts in longer runs."""
        peaks = self._memory_peaks
        if (self.sample_count - 1) % self._samples_per_peak:
            peaks[-1] = max(peaks[-1], memory_bytes)
            return
        if len(peaks) == MAX_MEMORY_PEAKS:
            # All parts are full here, so two of them become one of twice the length.
            peaks[:] = map(max, peaks[::2], peaks[1::2])
            self._samples_per_peak *= 2
        peaks.append(memory_bytes)

    def compute_usage(self, end: float, *, is_trusted: bool) -> tuple[Usage, str]:
        """Return the usage until `end`, and a warning or "".

        is_trusted: whether our own harness ran the model, not a program of the submitter.
        """
        timed_answers, timed_seconds = 0, 0.0
        if self.last_answer_at > self.first_batch_at and self.answers > self.first_batch_answers:
            timed_answers = self.answers - self.first_batch_answers
            timed_seconds = self.last_answer_at - self.first_batch_at
        warning, early_cpu_seconds, cpu_seconds = "", 0.0, None
        if self.first_answer_sample:
            early_cpu_seconds = self.first_answer_sample.cpu_seconds
        if self.last_sample:
            cpu_seconds = self.last_sample.cpu_seconds
        if (
            not is_trusted
            and cpu_seconds
            and early_cpu_seconds > max(STARTING_SECONDS, MIN_AHEAD_SHARE * cpu_seconds)
        ):
            timed_answers, timed_seconds = self.answers, self.last_answer_at - self.started_at
            warning = AHEAD_WARNING.format(before=early_cpu_seconds, cpu=cpu_seconds)
        measurements: dict[str, Any] = {}
        examples_per_second = start_seconds = answer_seconds = peak_bytes = mean_bytes = None
        if timed_seconds:
            examples_per_second = timed_answers / timed_seconds
            measurements |= {"timed_answers": timed_answers, "timed_seconds": timed_seconds}
        if self.first_answer_at is not None:
            start_seconds, answer_seconds = (
                self.first_answer_at - self.started_at,
                self.last_answer_at - self.first_answer_at,
            )
        if self.sample_count >= MIN_SAMPLES:
            sampled_seconds = (self._sampled_at or 0.0) - self._sampled_since
            peak_bytes, mean_bytes = self.peak_bytes, round(self._byte_seconds / sampled_seconds)
            measurements |= {
                "memory_peaks": list(self._memory_peaks),
                "memory_byte_seconds": self._byte_seconds,
                "memory_seconds": sampled_seconds,
            }
        latency = compute_latency(self.single_seconds)
        if self.single_seconds:
            measurements["single_seconds"] = count_seconds(self.single_seconds)
        usage = Usage(
            seconds=end - self.started_at,
            start_seconds=start_seconds,
            answer_seconds=answer_seconds,
            examples_per_second=examples_per_second,
            cpu_seconds=cpu_seconds,
            peak_bytes=peak_bytes,
            mean_bytes=mean_bytes,
            answers=self.answers,
            latency_seconds=latency.median,
            latency_p95_seconds=latency.p95,
            measurements=measurements or None,
        )
        return usage, warning
