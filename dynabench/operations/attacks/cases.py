"""The 44 hostile cases of `cases.yaml`, and how each is run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dynabench.operations.attacks import checks
from dynabench.operations.attacks.bench import BENCH_LIMITS, GOLD_ANSWER, Bench, expect_that
from evaluation.contract import Outcome
from evaluation.isolation.sandbox.limits import Limits

CASES_FILE = Path(__file__).with_name("cases.yaml")


@dataclass(frozen=True)
class Case:
    """A hostile model and the result that the sandbox must give.

    script: Python code, run inside the sandbox with the tools of `bench.BOOT_SCRIPT`.
    image: further lines of its Dockerfile. outcomes: the permitted outcomes.
    in_gvisor: further outcomes permitted in gVisor, where the end of a child process ends
    everything, and where files in memory are counted but not limited.
    log: texts, one of which the log must contain.
    sentence: a text that the submitter must be shown.
    extra_check: the name of a function in `checks` that raises Breach if a run with a
    permitted outcome is wrong in another way.
    has_neighbour: whether a good model that runs at the same time must succeed.
    check: the name of a function in `checks` that replaces the run, and returns what it saw or
    raises Breach.
    covered_by: the test that covers what cannot be shown here.
    """

    number: int
    title: str
    expected: str
    script: str = ""
    image: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    in_gvisor: tuple[str, ...] = ()
    limits: Limits = BENCH_LIMITS
    log: tuple[str, ...] = ()
    sentence: str = ""
    extra_check: str = ""
    has_neighbour: bool = False
    check: str = ""
    covered_by: str = ""

    def run(self, bench: Bench) -> str:
        """Run the case and return a description of the result. Raises Breach."""
        if self.check:
            return str(getattr(checks, self.check)(bench))
        neighbour_run = None
        image = ""
        with ThreadPoolExecutor(1) as pool:
            if self.has_neighbour:  # it runs beside the hostile one
                neighbour_run = pool.submit(bench.run, checks.GOOD_SCRIPT)
            if self.image:
                image = bench.build_image(*self.image)
            hostile_run = bench.run(self.script, image=image, limits=self.limits)
        if neighbour_run:
            expect_that(
                neighbour_run.result().ending.outcome == Outcome.OK, neighbour_run.result().ending
            )
        ending = hostile_run.ending
        result = f"{ending.outcome}: {ending.sentence or ' '.join(ending.warnings)}".rstrip(": ")
        expect_that("BREACH" not in ending.log, ending.log)
        if bench.is_gvisor and ending.outcome in self.in_gvisor:
            return result
        expect_that(ending.outcome in self.outcomes, f"{result}\n{ending.log}")
        expect_that(not self.log or any(words in ending.log for words in self.log), ending.log)
        expect_that(
            self.sentence in ending.sentence and GOLD_ANSWER not in ending.sentence, ending.sentence
        )
        if self.extra_check:
            getattr(checks, self.extra_check)(hostile_run)
        return result


def _build_case(limits: dict[str, int] | None = None, **fields: Any) -> Case:
    """Return the case of an entry in `cases.yaml`. limits: changes to BENCH_LIMITS."""
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    return Case(**fields, limits=replace(BENCH_LIMITS, **limits or {}))


CASES = tuple(_build_case(**fields) for fields in yaml.safe_load(CASES_FILE.read_text()))
