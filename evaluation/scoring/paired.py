"""Compare an old and a new model on the same rows: scores with intervals, and what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from statistics import NormalDist, fmean, pstdev
from typing import Any

from annotation.verdict.outcome import compute_squad_f1, is_exact_match
from evaluation.task_shape import TaskShape
from tasks.config.verdicts import VerdictRule
from validation.rates.rates import Rate, compute_rate

MAX_EXAMPLES = 50


def read_gold(shape: TaskShape, row: Mapping[str, Any]) -> str:
    """Return the right answer of a training row."""
    return str(row["answer" if shape.labels is None else "label"])


def compute_mean_score(
    shape: TaskShape, rows: Sequence[Mapping[str, Any]], answers: Sequence[str]
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
        accuracy = compute_rate(sum(answer == right for answer, right in pairs), len(pairs))
        assert isinstance(accuracy, Rate)
        return accuracy
    scores = [compute_squad_f1(answer, right) for answer, right in pairs]
    mean = fmean(scores)
    # F1 is not a proportion, so Wilson's interval does not apply.
    half_width = NormalDist().inv_cdf(0.975) * pstdev(scores) / sqrt(len(scores))
    return Rate(
        mean, max(0.0, mean - half_width), min(1.0, mean + half_width), len(scores), "normal"
    )


def is_right(rule: VerdictRule, shape: TaskShape, answer: str, gold: str) -> bool:
    """Return whether an answer is right: an equal label, or a span that the verdict rule accepts.

    Parameters
    ----------
    rule
        The task's verdict rule.
    shape
        The shape of the task.
    answer
        The model's answer.
    gold
        The right answer.
    """
    if shape.labels is not None:
        return answer == gold
    if rule.type == "string_f1":
        return compute_squad_f1(answer, gold) >= rule.threshold
    return is_exact_match(answer, gold)


def compare_models(
    rule: VerdictRule,
    shape: TaskShape,
    rows: Sequence[Mapping[str, Any]],
    old_answers: Sequence[str] | None,
    new_answers: Sequence[str],
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
    old_answers, new_answers
        The answers of both models in the order of the rows; `old_answers` is None without an old
        model.

    Returns
    -------
    dict
        `before` and `after`: the scores. `mended`: the number of rows that only the new model got
        right. `broken`: the number that only the old model got right. `p`: McNemar's exact test.
        `examples`: the first MAX_EXAMPLES rows that only the new model got right. Without an old
        model, `before`, `mended`, `broken` and `p` are None.
    """
    new_score = asdict(compute_mean_score(shape, rows, new_answers))
    # The first target of a task replaces nothing.
    if old_answers is None:
        return {
            "before": None, "after": new_score, "mended": None, "broken": None, "p": None,
            "examples": [],
        }  # fmt: skip
    mended_rows, broken = [], 0
    for row, old_answer, new_answer in zip(rows, old_answers, new_answers, strict=True):
        gold = read_gold(shape, row)
        is_old_right = is_right(rule, shape, old_answer, gold)
        is_new_right = is_right(rule, shape, new_answer, gold)
        if is_new_right and not is_old_right:
            mended_rows.append(
                {
                    "inputs": shape.select_inputs(row),
                    "expected": gold,
                    "before": old_answer,
                    "after": new_answer,
                }
            )
        elif is_old_right and not is_new_right:
            broken += 1
    return {
        "before": asdict(compute_mean_score(shape, rows, old_answers)),
        "after": new_score,
        "mended": len(mended_rows),
        "broken": broken,
        "p": compute_mcnemar_p(len(mended_rows), broken),
        "examples": mended_rows[:MAX_EXAMPLES],
    }


def compute_mcnemar_p(mended_count: int, broken_count: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (1947); 1 if nothing changed.

    mended_count, broken_count: the numbers of rows that only the new or only the old model got
    right.

    Notes
    -----
    p = min(1, 2 · Σ C(n, k) ÷ 2ⁿ) for k from 0 to the smaller count, with n the sum of both.
    """
    changed_count = mended_count + broken_count
    tail = ways = 1
    for count in range(min(mended_count, broken_count)):
        # Each from the previous one, because boards have many.
        ways = ways * (changed_count - count) // (count + 1)
        # Integers, so that the tail is exact.
        tail += ways
    return float(min(1.0, 2 * tail / 2**changed_count))
