"""Cgroups of both versions, from recorded files; the pace of answers, from made-up clocks."""

import pytest

from evaluation.contract import MIB
from evaluation.isolation.sandbox.usage import (
    MIN_SAMPLES,
    Cgroup,
    Latency,
    ResourceSample,
    RunMeasurements,
    compute_latency,
    find_cgroup,
)

ID = "4d5e6f" * 10 + "abcd"
V1 = {
    "proc/7/cgroup": f"11:memory:/docker/{ID}\n4:cpu,cpuacct:/docker/{ID}\n0::/docker/{ID}\n",
    f"sys/fs/cgroup/cpuacct/docker/{ID}/cpuacct.usage": "2500000000\n",
    f"sys/fs/cgroup/memory/docker/{ID}/memory.usage_in_bytes": f"{300 * MIB}\n",
    f"sys/fs/cgroup/memory/docker/{ID}/memory.stat": (
        f"cache {120 * MIB}\ninactive_file 5\ntotal_cache {120 * MIB}\n"
        f"total_inactive_file {100 * MIB}\n"
    ),
}
SCOPE = f"system.slice/docker-{ID}.scope"
V2 = {
    "proc/7/cgroup": f"0::/{SCOPE}\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    f"sys/fs/cgroup/{SCOPE}/cpu.stat": "usage_usec 2500000\nuser_usec 2000000\n",
    f"sys/fs/cgroup/{SCOPE}/memory.current": f"{300 * MIB}\n",
    f"sys/fs/cgroup/{SCOPE}/memory.stat": f"anon 77\ninactive_file {100 * MIB}\n",
}


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_both_versions_say_the_same(tmp_path, files):
    group = find_cgroup(7, ID, tree(tmp_path, files))
    assert group.sample() == ResourceSample(cpu_seconds=2.5, memory_bytes=200 * MIB)


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_an_ended_container_says_nothing(tmp_path, files):
    group = find_cgroup(7, ID, tree(tmp_path, files))
    (group.memory / "memory.stat").unlink()
    assert group.sample() is None


def test_another_process_of_that_number_is_not_measured(tmp_path):
    assert find_cgroup(7, "f" * 64, tree(tmp_path, V1)) is None
    assert find_cgroup(8, ID, tmp_path) is None


def test_version_2_must_be_mounted(tmp_path):
    tree(tmp_path, V2)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").unlink()
    assert find_cgroup(7, ID, tmp_path) is None


def test_the_version_is_told_by_the_files(tmp_path):
    assert find_cgroup(7, ID, tree(tmp_path, V2)).version == 2
    assert isinstance(Cgroup(tmp_path, tmp_path, version=1).sample(), type(None))


def test_the_first_batch_is_the_warm_up():
    pace = RunMeasurements(started_at=100.0)
    for now, count in [(110.0, 20), (110.04, 12), (112.0, 32), (114.04, 36)]:
        pace.record_answers(count, now)
    usage, warning = pace.compute_usage(115.0, is_trusted=False)
    assert usage.start_seconds == 10
    assert usage.answer_seconds == pytest.approx(4.04)
    assert usage.examples_per_second == pytest.approx((32 + 36) / 4)
    assert (usage.seconds, usage.answers, warning) == (15, 100, "")
    assert usage.cpu_seconds is usage.peak_bytes is usage.mean_bytes is None


@pytest.mark.parametrize("came", [[], [5.0]])
def test_one_batch_or_none_has_no_pace(came):
    pace = RunMeasurements(started_at=0.0)
    for now in came:
        pace.record_answers(32, now)
    usage, _ = pace.compute_usage(6.0, is_trusted=True)
    assert usage.examples_per_second is None


def test_memory_is_the_mean_over_time():
    pace = RunMeasurements(started_at=0.0)
    for now, mebibytes in [(1.0, 100), (1.5, 100), (2.0, 100), (4.0, 400), (4.5, 300), (5.0, 300)]:
        pace.record_sample(ResourceSample(now, mebibytes * MIB), now)
    pace.record_sample(None, 6.0)
    usage, _ = pace.compute_usage(6.0, is_trusted=True)
    assert usage.peak_bytes == 400 * MIB
    assert usage.mean_bytes == 300 * MIB
    assert usage.cpu_seconds == 5.0


@pytest.mark.parametrize(("looks", "peak"), [(1, None), (MIN_SAMPLES - 1, None), (5, 7)])
def test_memory_of_a_short_run_is_not_measured(looks, peak):
    pace = RunMeasurements(started_at=0.0)
    for look in range(looks):
        pace.record_sample(ResourceSample(1.0, 7), look / 5)
    usage, _ = pace.compute_usage(2.0, is_trusted=True)
    assert (usage.peak_bytes, usage.mean_bytes) == (peak, peak)
    assert usage.cpu_seconds == 1.0


def ahead(before: float, after: float, *, trusted: bool):
    """A model that uses `before` processor seconds, then `after` for 10 answers in a second."""
    pace = RunMeasurements(started_at=0.0)
    pace.record_sample(ResourceSample(before, 1), before)
    pace.record_answers(1, before)
    pace.record_answers(10, before + 1)
    pace.record_sample(ResourceSample(before + after, 1), before + 2)
    return pace.compute_usage(before + 2, is_trusted=trusted)


def test_work_before_the_first_answer_counts():
    usage, warning = ahead(99, 1, trusted=False)
    assert usage.examples_per_second == pytest.approx(11 / 100)
    assert "99 of its 100 processor seconds" in warning


@pytest.mark.parametrize(
    ("before", "after", "trusted"),
    [(99, 1, True), (29, 1, False), (40, 200, False)],
    ids=["our harness", "loading", "a small share"],
)
def test_loading_is_not_working_ahead(before, after, trusted):
    usage, warning = ahead(before, after, trusted=trusted)
    assert usage.examples_per_second == pytest.approx(10)
    assert not warning


def test_a_latency_is_a_value_that_was_measured():
    assert compute_latency([3.0, 1.0, 2.0]) == Latency(median=2.0, p95=3.0)
    assert compute_latency([]) == Latency(None, None)
