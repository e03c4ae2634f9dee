"""Write the properties of a matrix's items as a table. Pure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.files.tables import build_csv_text
from evaluation.scoring.ruler.matrices import AnswerMatrix, ItemGroups
from evaluation.scoring.ruler.response_model import fit_items

COLUMNS = (
    *("item", "group", "difficulty", "difficulty_error"),
    *("discrimination", "discrimination_error", "label_may_be_wrong"),
)


def write_item_table(path: Path, matrix: AnswerMatrix, groups: ItemGroups) -> None:
    """Write a CSV file with one line for each item, from the answers of all models.

    A value that the answers don't tell is an empty cell. See docs/statistics.md, "Properties of
    items". Raises TooFewAnswers, and OSError if the file can't be written.
    """
    properties = fit_items(matrix.is_right, np.ones_like(matrix.is_right))
    difficulties, difficulty_errors = properties.compute_difficulties()
    numbers = np.column_stack(
        [
            difficulties,
            difficulty_errors,
            properties.discriminations,
            properties.discrimination_errors,
        ]
    )
    # The priors give a number to every item, also where the answers tell nothing.
    numbers[~properties.is_stated] = np.nan
    is_flagged = properties.flag_negative()
    rows: list[Sequence[object]] = [COLUMNS]
    for place, item in enumerate(matrix.items):
        group = groups.names[groups.group_of[place]]
        cells = ["" if np.isnan(number) else f"{number:.4f}" for number in numbers[place]]
        rows.append([item, group, *cells, int(is_flagged[place])])
    path.write_text(build_csv_text(rows), encoding="utf-8", newline="")
