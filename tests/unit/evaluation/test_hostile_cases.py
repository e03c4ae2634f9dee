"""The frame of the hostile cases; tests/docker runs them on an engine."""

from types import SimpleNamespace

import pytest

from dynabench.operations.attacks import checks
from dynabench.operations.attacks.bench import GOLD_ANSWER, Breach, HostileRun
from dynabench.operations.attacks.cases import CASES, Case
from evaluation.contract import Ending, Outcome


def bench(ending: Ending, good: Outcome = Outcome.OK, is_gvisor: bool = False):
    """One on which every script ends so, but for that of a good model."""

    def run(script, **_):
        return HostileRun(Ending(good) if script == checks.GOOD_SCRIPT else ending, None, [])

    return SimpleNamespace(run=run, is_gvisor=is_gvisor)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_table_names_what_there_is(case):
    assert all(callable(getattr(checks, name)) for name in (case.check, case.extra_check) if name)
    assert {*case.outcomes, *case.in_gvisor} <= {*Outcome}
    assert bool(case.script) == bool(case.outcomes)
    assert case.script or case.check or case.covered_by
    compile(case.script, case.title, "exec")


OOM = Ending(Outcome.OOM, sentence="Too much memory.", log="bomb")
SEEN = [
    ({}, OOM, {}),
    ({"log": ("fire", "bomb"), "sentence": "memory", "has_neighbour": True}, OOM, {}),
    ({"outcomes": ("ok",), "in_gvisor": ("oom",)}, OOM, {"is_gvisor": True}),
]
BREACHES = [
    ({"outcomes": ("ok",), "in_gvisor": ("oom",)}, OOM, {}),
    ({"log": ("fire",)}, OOM, {}),
    ({"sentence": "time"}, OOM, {}),
    ({"has_neighbour": True}, OOM, {"good": Outcome.TIMEOUT}),
    ({"extra_check": "check_memory_warning"}, OOM, {}),
    ({}, Ending(Outcome.OOM, log="BREACH: /etc"), {}),
    ({}, Ending(Outcome.OOM, sentence=GOLD_ANSWER), {}),
]


def case_of(**fields) -> Case:
    return Case(1, "bomb", "oom", **{"script": "bomb()", "outcomes": ("oom",), **fields})


@pytest.mark.parametrize(("fields", "ending", "more"), SEEN)
def test_what_ends_as_it_must_is_told(fields, ending, more):
    assert case_of(**fields).run(bench(ending, **more)).startswith("oom")


@pytest.mark.parametrize(("fields", "ending", "more"), BREACHES)
def test_anything_else_is_a_breach(fields, ending, more):
    with pytest.raises(Breach):
        case_of(**fields).run(bench(ending, **more))
