"""The 44 hostile cases of `cases.yaml`, and how each is run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dynabench.operations.attacks import checks
from dynabench.operations.attacks.bench import GOLD, LIMITS, Bench, expect_that
from evaluation.contract import Outcome
from evaluation.isolation.sandbox.limits import Limits

TABLE = Path(__file__).with_name("cases.yaml")


@dataclass(frozen=True)
class Case:
    """One hostile model.

    script: Python, run inside the sandbox with the tools of `bench.BOOT`; image: more lines of its
    Dockerfile. outcomes: one of them must come; in_gvisor: also right there, where a child's end is
    the end of all, and files in memory are counted and not limited. log: one of these stands in the
    log; sentence: stands in what the submitter is shown; holds: a function of `checks` that raises
    Breach when something else is wrong. neighbour: a good model beside it succeeds.
    Cases that are no single run have a `check` instead, a function that returns what it saw and
    raises Breach. elsewhere: the test of what cannot be shown here.
    """

    number: int
    title: str
    expected: str
    script: str = ""
    image: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    in_gvisor: tuple[str, ...] = ()
    limits: Limits = LIMITS
    log: tuple[str, ...] = ()
    sentence: str = ""
    holds: str = ""
    neighbour: bool = False
    check: str = ""
    elsewhere: str = ""

    def run(self, bench: Bench) -> str:
        """Run the case and return what was seen. Raises Breach."""
        if self.check:
            return str(getattr(checks, self.check)(bench))
        good = None
        image = ""
        with ThreadPoolExecutor(1) as pool:
            if self.neighbour:  # it runs beside the hostile one
                good = pool.submit(bench.run, checks.GOOD)
            if self.image:
                image = bench.build(*self.image)
            seen = bench.run(self.script, image=image, limits=self.limits)
        if good:
            expect_that(good.result().ending.outcome == Outcome.OK, good.result().ending)
        ending = seen.ending
        got = f"{ending.outcome}: {ending.sentence or ' '.join(ending.warnings)}".rstrip(": ")
        expect_that("BREACH" not in ending.log, ending.log)
        if bench.is_gvisor and ending.outcome in self.in_gvisor:
            return got
        expect_that(ending.outcome in self.outcomes, f"{got}\n{ending.log}")
        expect_that(not self.log or any(words in ending.log for words in self.log), ending.log)
        expect_that(
            self.sentence in ending.sentence and GOLD not in ending.sentence, ending.sentence
        )
        if self.holds:
            getattr(checks, self.holds)(seen)
        return got


def _case(limits: dict[str, int] | None = None, **fields: Any) -> Case:
    """Return the case of an entry of the table, with tuples for its lists."""
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    return Case(**fields, limits=replace(LIMITS, **limits or {}))


CASES = tuple(_case(**fields) for fields in yaml.safe_load(TABLE.read_text()))
