"""An old and a new model on the same rows: scores with intervals, and what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from statistics import NormalDist, fmean, pstdev
from typing import Any

from annotation.rules.outcome import exact_match, squad_f1
from evaluation.task_shape import Shape
from tasks.config.verdicts import VerdictRule
from validation.rules.rates import Rate, rate

MOST_SHOWN = 50


def gold(shape: Shape, row: Mapping[str, Any]) -> str:
    """The right answer of a training row."""
    return str(row["answer" if shape.labels is None else "label"])


def mean_score(shape: Shape, rows: Sequence[Mapping[str, Any]], said: Sequence[str]) -> Rate:
    """Accuracy with Wilson's interval; of spans the mean token F1 (0-1), ± 1.96 standard errors.

    Raises ValueError without rows.
    """
    if not rows:
        raise ValueError("A score needs at least one row.")
    both = list(zip(said, (gold(shape, row) for row in rows), strict=True))
    if shape.labels is not None:
        found = rate(sum(one == other for one, other in both), len(both))
        assert isinstance(found, Rate)
        return found
    scores = [squad_f1(one, other) for one, other in both]
    mean = fmean(scores)
    half = NormalDist().inv_cdf(0.975) * pstdev(scores) / sqrt(len(scores))
    return Rate(mean, max(0.0, mean - half), min(1.0, mean + half), len(scores), "normal")


def is_right(rule: VerdictRule, shape: Shape, said: str, true: str) -> bool:
    """Whether an answer counts: the same label; for spans what the task's verdict lets pass."""
    if shape.labels is not None:
        return said == true
    if rule.type == "string_f1":
        return squad_f1(said, true) >= rule.threshold
    return exact_match(said, true)


def compare(
    rule: VerdictRule,
    shape: Shape,
    rows: Sequence[Mapping[str, Any]],
    old: Sequence[str] | None,
    new: Sequence[str],
) -> dict[str, Any]:
    """Scores before and after on one test, and what only one of the two got right.

    `mended`: the old model was wrong and the new one is right, `broken`: the other way round;
    `p`: McNemar's exact test. Without an old model these and `before` are None. `examples` are the
    first MOST_SHOWN of the mended.
    """
    after = asdict(mean_score(shape, rows, new))
    if old is None:
        return {
            "before": None, "after": after, "mended": None, "broken": None, "p": None,
            "examples": [],
        }  # fmt: skip
    mended, broken = [], 0
    for row, was, now in zip(rows, old, new, strict=True):
        true = gold(shape, row)
        was_right, now_right = (is_right(rule, shape, said, true) for said in (was, now))
        if now_right and not was_right:
            mended.append(
                {"inputs": shape.inputs(row), "expected": true, "before": was, "after": now}
            )
        broken += was_right and not now_right
    return {
        "before": asdict(mean_score(shape, rows, old)),
        "after": after,
        "mended": len(mended),
        "broken": broken,
        "p": mcnemar(len(mended), broken),
        "examples": mended[:MOST_SHOWN],
    }


def mcnemar(mended: int, broken: int) -> float:
    """The chance of a difference at least as great if each change is a fair coin; two-sided, exact.

    McNemar 1947, in the binomial form. 1 when nothing changed.
    """
    changed = mended + broken
    tail = ways = 1
    for count in range(min(mended, broken)):
        ways = ways * (changed - count) // (count + 1)  # each from the one before: boards have many
        tail += ways
    return float(min(1.0, 2 * tail / 2**changed))
