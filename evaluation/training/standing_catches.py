"""Find which catches of a released round still fool a newly trained model, by their ids. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.scoring.paired import is_right, read_gold
from evaluation.task_shape import TaskShape
from tasks.config.verdicts import VerdictRule

CATCH_ID = "catch_uid"
"""The key of the example's id in the release, in a test row that is a catch."""


def mark_catch(row: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row, with its example's id if people caught a model with it.

    line: the row of the release; older versions lack some of the keys. Rows by programs are never
    catches.
    """
    is_wrong = line.get("validated") and line.get("model_wrong")
    is_catch = is_wrong and not line.get("by_program")
    return {**row, CATCH_ID: line["uid"]} if is_catch else dict(row)


def count_standing_catches(
    rule: VerdictRule, shape: TaskShape, rows: Sequence[Mapping[str, Any]], answers: Sequence[str]
) -> dict[str, Any]:
    """Return how many catches there are among the rows, and the ids of catches that still fool.

    Parameters
    ----------
    rule, shape
        The task's verdict rule and its shape.
    rows, answers
        Test rows, and the new model's answers in their order.

    Returns
    -------
    dict
        `catches`: the number of catches. `standing`: the ids of the catches that the model gets
        wrong.
    """
    catch_count, standing_ids = 0, []
    # Rows that people did not confirm, or that fooled no model, are not catches.
    for row, answer in zip(rows, answers, strict=True):
        if CATCH_ID not in row:
            continue
        catch_count += 1
        if not is_right(rule, shape, answer, read_gold(shape, row)):
            standing_ids.append(row[CATCH_ID])
    return {"catches": catch_count, "standing": standing_ids}
