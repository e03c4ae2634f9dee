"""The 44 hostile models, run for real; and that each would be seen if the sandbox let it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynabench.operations.attacks.bench import Bench
from dynabench.operations.attacks.cases import CASES
from dynabench.operations.soundness.doctor import Verdict, judge_case
from evaluation.contract import GIB
from evaluation.isolation.sandbox.containers import SECCOMP_PROFILE, DockerRunner

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verdicts(bench) -> dict[int, Verdict]:
    """All cases, some at a time."""
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda case: judge_case(case, bench), CASES)
        return {verdict.case.number: verdict for verdict in found}


def test_there_are_44():
    assert [case.number for case in CASES] == list(range(1, 45))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.title}")
def test_a_hostile_model_ends_as_it_must(case, verdicts):
    verdict = verdicts[case.number]
    assert verdict.is_ok is not False, verdict.result
    if verdict.is_ok is None or case.covered_by:
        path, _, name = case.covered_by.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text()


RELAXED = {
    "memory": (1, {"mem_limit": 2 * GIB, "memswap_limit": 2 * GIB}),
    "scratch": (7, {"tmpfs": {"/tmp": "rw"}, "ulimits": []}),
    "inodes": (8, {"tmpfs": {"/tmp": "rw,size=64m"}}),
    "read-only": (9, {"read_only": False, "user": "0:0"}),
    "volumes": (10, {"tmpfs": {}, "user": "0:0", "cap_drop": []}),
    "healthcheck": (11, {"healthcheck": None}),
    "network": (21, {"network_mode": "bridge", "network_disabled": False}),
    "seccomp": (22, {"security_opt": ["no-new-privileges:true"]}),
    "privileges": (22, {"security_opt": [f"seccomp={SECCOMP_PROFILE}"]}),
    "capabilities": (22, {"cap_drop": []}),
}


@pytest.mark.parametrize(("number", "options"), RELAXED.values(), ids=RELAXED)
def test_without_its_guard_a_model_is_seen(number, options, bench: Bench, monkeypatch):
    strict = DockerRunner._build_options
    relaxed = {"runtime": "runc", **options}
    monkeypatch.setattr(
        DockerRunner, "_build_options", lambda *given: {**strict(*given), **relaxed}
    )
    monkeypatch.setattr(bench, "is_gvisor", False)
    verdict = judge_case(CASES[number - 1], bench)
    assert verdict.is_ok is False, verdict.result
    assert "rejected" not in verdict.result, verdict.result
