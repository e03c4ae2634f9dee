"""Read the file of a study's cases: one row for each case, with its right answer."""

import json

from dynabench.studies.rules.builder import ANSWER, CASE
from dynabench.studies.rules.model_alone import KEY
from tasks.config.components import Component
from tasks.contexts.columns import OtherFields
from tasks.contexts.files import Summary, summarise_file
from tasks.line_files import Row

MAX_CASE_BYTES = 2 * 2**20
MAX_PREVIEW_ROWS = 5


def read_case_table(data: bytes, file_name: str, answers: list[str]) -> Summary:
    """Return the rows of a table with the columns `case` and `answer`, and its errors by line.

    answers: those that people choose from. Raises FileError.
    """
    fields = (
        Component(name=CASE, type="long_text"),
        Component.model_validate({"name": ANSWER, "type": "multiclass", "labels": answers}),
    )
    return summarise_file(data, file_name, OtherFields(fields), ())


def write_cases(summary: Summary) -> bytes:
    """Return the valid rows of such a table as a file of contexts, each with its key."""
    lines = []
    for row in summary.rows:
        key = {ANSWER: row.values[ANSWER]}
        lines.append(json.dumps({CASE: row.values[CASE], "metadata": {KEY: key}}))
    return "\n".join(lines).encode()


def list_first_cases(summary: Summary) -> list[Row]:
    """Return the rows that a preview shows. All of them are counted beside it."""
    return summary.rows[:MAX_PREVIEW_ROWS]
