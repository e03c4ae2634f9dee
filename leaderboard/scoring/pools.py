"""The reference pools that come with the official tasks; `bench/reference_pool.py` makes them."""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from evaluation.seeds import OFFICIAL
from leaderboard.scoring.anchored import COSTS
from leaderboard.scoring.dynascore import Table

CHANCE = {"matthews_correlation": 0.0, "pair_accuracy": 50.0}
"""What metrics are, in percent, of one that knows nothing, where that is not one in so many."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A frozen pool: its models' values by metric, in percent, examples a second and GiB.

    main: the metric that says what a model understands. runner: what measured the costs. costs:
    how often a site has measured them itself; 0: they are as shipped.
    """

    version: int
    main: str
    runner: str
    rows: Table
    costs: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it stands for a task that has no reference models."""
        return self.version == 0

    @property
    def has_costs(self) -> bool:
        """Whether its models are run here, so that a site can measure what they cost."""
        return any(cost in row for row in self.rows.values() for cost in COSTS)


def path_of(code: str) -> Path:
    """Where the pool of an official task lies."""
    return OFFICIAL / code / "reference.json"


@lru_cache
def shipped(code: str) -> Pool | None:
    """The pool of the official task of this code; None: there is none."""
    if not code.isascii() or not code.replace("-", "").isalnum() or not path_of(code).exists():
        return None
    given = json.loads(path_of(code).read_bytes())
    rows = {
        row["model"]: {
            name: value for name, value in row.items() if isinstance(value, int | float | None)
        }
        for row in given["rows"]
    }
    return Pool(given["version"], given["main"], given["runner"], rows)


@lru_cache
def plain(main: str, labels: int) -> Pool:
    """For a task without reference models: the main metric, in percent, of one that knows nothing.

    Of so many labels it has one in as many right by chance; free answers (0 labels) none.
    """
    chance = CHANCE.get(main, 100 / labels if labels else 0.0)
    return Pool(version=0, main=main, runner="", rows={"chance": {main: chance}})


@lru_cache
def measured_here(code: str, version: int, runner: str, rows: str) -> Pool | None:
    """The pool of a task with the costs that a site measured, as JSON; None: there is no pool.

    A model that was not measured has no costs.
    """
    pool, here = shipped(code), json.loads(rows)
    if pool is None:
        return None
    table = {
        model: {**row, **dict.fromkeys(COSTS), **here.get(model, {})}
        for model, row in pool.rows.items()
    }
    return replace(pool, rows=table, runner=runner, costs=version)
