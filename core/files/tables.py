"""Write tables as CSV for people's spreadsheets. `tasks.formats` writes all other tables."""

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Characters that start a formula in spreadsheets (OWASP, "CSV Injection")."""
NUMBER_PATTERN = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?\Z", re.IGNORECASE)


def build_csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV for spreadsheets, with formulas neutralised.

    Files in the formats of other tools (`tasks.formats`), which programs read back, keep every
    character.
    """
    text = StringIO()
    csv.writer(text).writerows([neutralise_formula(cell) for cell in row] for row in rows)
    return text.getvalue()


def neutralise_formula(cell: Any) -> Any:
    """Return a cell. If spreadsheets would read its text as a formula, put an apostrophe first.

    >>> [neutralise_formula(cell) for cell in ("=1+1", "@a", "-0.5", "+49 30", -0.5, "a-b")]
    ["'=1+1", "'@a", '-0.5', "'+49 30", -0.5, 'a-b']
    """
    is_formula = (
        isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not NUMBER_PATTERN.match(cell)
    )
    # Spreadsheets take what follows an apostrophe as text, and hide the apostrophe.
    return f"'{cell}" if is_formula else cell
