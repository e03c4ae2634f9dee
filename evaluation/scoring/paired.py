"""Compare an old and a new model on the same rows: scores with intervals, and what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from statistics import NormalDist, fmean, pstdev
from typing import Any

from annotation.verdict.outcome import exact_match, squad_f1
from evaluation.task_shape import Shape
from tasks.config.verdicts import VerdictRule
from validation.rates.rates import Rate, rate

MAX_EXAMPLES = 50


def read_gold(shape: Shape, row: Mapping[str, Any]) -> str:
    """Return the right answer of a training row."""
    return str(row["answer" if shape.labels is None else "label"])


def compute_mean_score(
    shape: Shape, rows: Sequence[Mapping[str, Any]], answers: Sequence[str]
) -> Rate:
    """Return accuracy with Wilson's interval; for spans the mean token F1 (0-1).

    Parameters
    ----------
    shape
        The shape of the task: what its models read and answer.
    rows
        Training rows with right answers.
    answers
        The model's answers in the same order.

    Raises
    ------
    ValueError
        Without rows.

    Notes
    -----
    The interval of a mean F1 is ± 1.96 standard errors, cut at 0 and 1.
    """
    if not rows:
        raise ValueError("A score needs at least one row.")
    right_answers = [read_gold(shape, row) for row in rows]
    pairs = list(zip(answers, right_answers, strict=True))
    if shape.labels is not None:
        accuracy = rate(sum(answer == right for answer, right in pairs), len(pairs))
        assert isinstance(accuracy, Rate)
        return accuracy
    scores = [squad_f1(answer, right) for answer, right in pairs]
    mean = fmean(scores)
    # F1 is no share of right and wrong, so Wilson's interval does not hold for it.
    half = NormalDist().inv_cdf(0.975) * pstdev(scores) / sqrt(len(scores))
    return Rate(mean, max(0.0, mean - half), min(1.0, mean + half), len(scores), "normal")


def is_right(rule: VerdictRule, shape: Shape, answer: str, true: str) -> bool:
    """Return whether an answer is right: an equal label, or a span that the verdict rule accepts.

    Parameters
    ----------
    rule
        The task's verdict rule.
    shape
        The shape of the task.
    answer
        The model's answer.
    true
        The right answer.
    """
    if shape.labels is not None:
        return answer == true
    if rule.type == "string_f1":
        return squad_f1(answer, true) >= rule.threshold
    return exact_match(answer, true)


def compare(
    rule: VerdictRule,
    shape: Shape,
    rows: Sequence[Mapping[str, Any]],
    old: Sequence[str] | None,
    new: Sequence[str],
) -> dict[str, Any]:
    """Compare two models on the same test rows: scores, and rows that only one got right.

    Parameters
    ----------
    rule
        The task's verdict rule.
    shape
        The shape of the task.
    rows
        Test rows with right answers.
    old, new
        The answers of both models in the order of the rows; `old` is None without an old model.

    Returns
    -------
    dict
        `before` and `after`: the scores. `mended`: the number of rows that only the new model got
        right. `broken`: the number that only the old model got right. `p`: McNemar's exact test.
        `examples`: the first MAX_EXAMPLES rows that only the new model got right. Without an old
        model, `before`, `mended`, `broken` and `p` are None.
    """
    after = asdict(compute_mean_score(shape, rows, new))
    # The first target of a task replaces none.
    if old is None:
        return {
            "before": None, "after": after, "mended": None, "broken": None, "p": None,
            "examples": [],
        }  # fmt: skip
    mended, broken = [], 0
    for row, before, new_answer in zip(rows, old, new, strict=True):
        true = read_gold(shape, row)
        is_old_right = is_right(rule, shape, before, true)
        is_new_right = is_right(rule, shape, new_answer, true)
        if is_new_right and not is_old_right:
            mended.append(
                {
                    "inputs": shape.inputs(row),
                    "expected": true,
                    "before": before,
                    "after": new_answer,
                }
            )
        elif is_old_right and not is_new_right:
            broken += 1
    return {
        "before": asdict(compute_mean_score(shape, rows, old)),
        "after": after,
        "mended": len(mended),
        "broken": broken,
        "p": compute_mcnemar_p(len(mended), broken),
        "examples": mended[:MAX_EXAMPLES],
    }


def compute_mcnemar_p(mended: int, broken: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (1947); 1 if nothing changed.

    mended, broken: the numbers of rows that only the new or only the old model got right.

    Notes
    -----
    p = min(1, 2 · Σ C(n, k) ÷ 2ⁿ) for k from 0 to the smaller count, with n = mended + broken.
    """
    changed = mended + broken
    tail = ways = 1
    for count in range(min(mended, broken)):
        ways = ways * (changed - count) // (count + 1)  # each from the one before: boards have many
        # Integers, so that the tail is exact.
        tail += ways
    return float(min(1.0, 2 * tail / 2**changed))
