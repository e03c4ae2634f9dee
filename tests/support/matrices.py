"""Matrices of boards by chance, without a database."""

import datetime as dt
from uuid import UUID

import numpy as np

from leaderboard.board.columns import select_drawn_metrics
from leaderboard.board.matrix import DRAW_COUNT, BoardModel, FrozenRates, Matrix, Numbers
from leaderboard.board.sets import BoardSet
from leaderboard.ranking.pools import Pool

METRICS = ("accuracy", "throughput", "memory", "fairness", "robustness")

POOL = Pool(
    1,
    "accuracy",
    "docker",
    {
        "majority": {"accuracy": 50.0, "throughput": 900.0, "memory": 0.5, "fairness": 100.0,
                     "robustness": 100.0},
        "words": {"accuracy": 60.0, "throughput": 400.0, "memory": 1.0, "fairness": 50.0,
                  "robustness": 50.0},
        "encoder": {"accuracy": 80.0, "throughput": 10.0, "memory": 16.0, "fairness": 60.0,
                    "robustness": 60.0},
    },
)  # fmt: skip


def chance_matrix(
    models=5,
    sets=2,
    seed=0,
    metrics=METRICS,
    rates=None,
    size=1000,
    spread=10.0,
    missing=(),
    is_sensitive=False,
):
    """A board. rates: frozen ones. missing: (model, set, metric) without a value."""
    chance = np.random.default_rng(seed)
    shape = (models, sets, len(metrics))
    values = 70 + spread * chance.standard_normal((models, 1, 1)) + chance.standard_normal(shape)
    values[..., metrics.index("memory")] = chance.uniform(1, 15, shape[:2])
    for cell in missing:
        values[cell[0], cell[1], metrics.index(cell[2])] = np.nan
    columns = [metrics.index(name) for name in select_drawn_metrics(metrics)]
    centre = np.nan_to_num(values[..., columns].transpose(1, 2, 0)[..., None])
    shared = chance.standard_normal((*centre.shape[:2], 1, DRAW_COUNT))
    own = 0.5 * chance.standard_normal((*centre.shape[:3], DRAW_COUNT))
    runners = np.full(shape[:2], "docker", dtype="U20")
    runners[np.isnan(values).all(axis=2)] = ""
    return Matrix(
        task="nli",
        main=metrics[0],
        metrics=metrics,
        models=tuple(
            BoardModel(
                UUID(int=n), f"Model {n}", "w-abc", "", "directory", True, False, (UUID(int=n),)
            )
            for n in range(models)
        ),
        sets=tuple(
            BoardSet(n, f"round-{n + 1}", 1, "scoring", size, dt.date(2026, 1, 1), "ab" * 32, n + 1)
            for n in range(sets)
        ),
        numbers=Numbers(
            values=values,
            low=values - 2,
            high=values + 2,
            n=np.full(shape, size),
            draws=(centre + shared + own).astype(np.float32),
            in_the_loop=np.zeros(shape[:2], dtype=bool),
            warned=np.zeros(shape[:2], dtype=bool),
            outdated=np.zeros(shape[:2], dtype=bool),
            kept_back=np.zeros(shape[:2], dtype=bool),
            undefined=np.zeros(shape[1:], dtype=bool),
            runners=runners,
            runner="docker",
        ),
        frozen=FrozenRates((*rates.items(),), ("Model 0",), is_sensitive) if rates else None,
    )


def over_datasets(tables, weights):
    """The weighted mean of each metric of each model over tables by dataset, written plainly.

    None where a dataset with a weight lacks the result.
    """
    used = [(tables[name], weight) for name, weight in weights.items() if weight]

    def mean(model, metric):
        values = [table[model][metric] for table, _ in used]
        if None in values:
            return None
        return sum(weight * value for (_, weight), value in zip(used, values, strict=True)) / sum(
            weight for _, weight in used
        )

    models = next(iter(tables.values()))
    return {model: {metric: mean(model, metric) for metric in row} for model, row in models.items()}
