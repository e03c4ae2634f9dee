"""The reference pools that come with the official tasks; `bench/reference_pool.py` makes them."""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from evaluation.seeds import OFFICIAL_TASKS_FOLDER
from leaderboard.ranking.anchored import HIGHER_IS_BETTER_BY_COST
from leaderboard.ranking.dynascore import Table

CHANCE_LEVELS = {"matthews_correlation": 0.0, "pair_accuracy": 50.0}
"""A chance model's value of a metric, in percent, unless it is 100 ÷ the number of labels."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A fixed pool of models: their values by metric, in percent, examples per second and GiB.

    main: the main metric, which measures what a model understands. runner: the runner that measured
    the costs. cost_version: how often the site has measured them itself; 0 for the shipped values.
    """

    version: int
    main: str
    runner: str
    rows: Table
    cost_version: int = 0

    @property
    def is_plain(self) -> bool:
        """Return whether it is the plain pool of a task that has no reference models."""
        return self.version == 0

    @property
    def has_costs(self) -> bool:
        """Return whether its models can be run here, so that the site can measure their costs."""
        return not all(
            row.keys().isdisjoint(HIGHER_IS_BETTER_BY_COST) for row in self.rows.values()
        )


def get_pool_path(code: str) -> Path:
    """Return the path of the file with an official task's pool."""
    return OFFICIAL_TASKS_FOLDER / code / "reference.json"


@lru_cache
def read_shipped_pool(code: str) -> Pool | None:
    """Return the shipped pool of the official task with this code; None if there is none."""
    # Codes come from URLs, so only letters, digits and hyphens may become part of a path.
    if (
        not code.isascii()
        or not code.replace("-", "").isalnum()
        or not get_pool_path(code).exists()
    ):
        return None
    stored_pool = json.loads(get_pool_path(code).read_bytes())
    rows: dict[str, dict[str, float | None]] = {}
    for row in stored_pool["rows"]:
        numbers = rows[row["model"]] = {}
        for name, value in row.items():
            if isinstance(value, int | float | None):
                numbers[name] = value
    return Pool(stored_pool["version"], stored_pool["main"], stored_pool["runner"], rows)


@lru_cache
def build_plain_pool(main_metric: str, labels: int) -> Pool:
    """Return the pool of a task without reference models: one model that answers by chance.

    main_metric: its value is in percent. labels: the number of labels to choose from; 0 for free
    text, which is never correct by chance.
    """
    rng = CHANCE_LEVELS.get(main_metric, 100 / labels if labels else 0.0)
    return Pool(version=0, main=main_metric, runner="", rows={"chance": {main_metric: rng}})


@lru_cache
def build_local_pool(code: str, version: int, runner: str, costs: str) -> Pool | None:
    """Return the shipped pool of a task with the costs that this site measured.

    None if the task has no shipped pool.

    Parameters
    ----------
    code : str
        The code of the official task.
    version : int
        How often the site has measured the costs.
    runner : str
        The runner that measured them.
    costs : str
        JSON, so that the arguments can be hashed: throughput and memory by model. A model that was
        not measured has no costs.
    """
    pool, measured_costs = read_shipped_pool(code), json.loads(costs)
    if pool is None:
        return None
    rows = {
        model: {**row, **dict.fromkeys(HIGHER_IS_BETTER_BY_COST), **measured_costs.get(model, {})}
        for model, row in pool.rows.items()
    }
    return replace(pool, rows=rows, runner=runner, cost_version=version)
