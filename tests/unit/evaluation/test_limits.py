"""Limits: what each becomes in containers and processes, and the end of a run that exceeds one."""

import resource

import pytest

from evaluation.contract import GIB, MIB, Outcome
from evaluation.isolation.sandbox.limits import CHECK_SECONDS, LimitExceeded, Limits

LIMITS = Limits(
    seconds=7, memory_bytes=2 * GIB, cpus=1.5, processes=9, open_files=11, scratch_bytes=3 * MIB,
    scratch_files=13, shared_bytes=5 * MIB, output_bytes=100,
)  # fmt: skip


def test_a_container_is_held_to_all_that_the_kernel_can_enforce():
    told = LIMITS.list_container_options("/tmp", ["/data"], is_gvisor=False)
    assert told["mem_limit"] == told["memswap_limit"] == 2 * GIB
    assert (told["nano_cpus"], told["pids_limit"]) == (1_500_000_000, 9)
    assert told["shm_size"] == 5 * MIB
    assert f"size={3 * MIB}" in told["tmpfs"]["/tmp"]
    assert "nr_inodes=13" in told["tmpfs"]["/tmp"]
    assert told["tmpfs"]["/data"].startswith("ro,")
    ulimits = {one["name"]: (one["soft"], one["hard"]) for one in told["ulimits"]}
    assert ulimits == {"core": (0, 0), "nofile": (11, 11), "fsize": (3 * MIB, 3 * MIB)}


def test_gvisor_has_threads_of_its_own():
    told = LIMITS.list_container_options("/tmp", [], is_gvisor=True)
    assert told["pids_limit"] > LIMITS.processes
    assert {"name": "nproc", "soft": 9, "hard": 9} in told["ulimits"]


def test_a_process_is_bounded_too():
    told = LIMITS.list_process_limits()
    assert told[resource.RLIMIT_AS] > 2 * GIB
    assert told[resource.RLIMIT_FSIZE] == 3 * MIB
    assert told[resource.RLIMIT_CORE] == 0


@pytest.mark.parametrize(
    ("used", "outcome", "limit"),
    [
        ({"seconds": 7}, Outcome.TIMEOUT, "7 seconds"),
        ({"memory_bytes": 2 * GIB + 1}, Outcome.OOM, "2 GiB"),
    ],
)
def test_what_is_watched_ends_a_run(used, outcome, limit):
    within = {"seconds": 6.9, "memory_bytes": 2 * GIB, "answers": 3}
    LIMITS.check_usage(**within)
    with pytest.raises(LimitExceeded) as exceeded:
        LIMITS.check_usage(**within | used)
    ending = exceeded.value.ending
    assert (ending.outcome, ending.limit) == (outcome, limit)
    assert "3" in ending.measured


@pytest.mark.parametrize(("most", "limit"), [(100, "100 bytes"), (3 * MIB // 2, "1.5 MiB")])
def test_all_output_has_a_cap(most, limit):
    limits = Limits(output_bytes=most)
    limits.check_output(most, 1)
    with pytest.raises(LimitExceeded) as exceeded:
        limits.check_output(most + 1, 1)
    ending = exceeded.value.ending
    assert (ending.outcome, ending.limit) == (Outcome.OUTPUT_TOO_LARGE, limit)


def test_five_examples_get_less_time_and_the_same_memory():
    machine = Limits.build_for_machine(6, 1.5, 60)
    check = machine.restrict_for_check()
    assert (machine.seconds, machine.memory_bytes, machine.threads) == (60, 6 * GIB, 2)
    assert (check.seconds, check.memory_bytes) == (CHECK_SECONDS, 6 * GIB)
