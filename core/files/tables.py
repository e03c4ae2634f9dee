"""Tables as CSV for people, who open them in a spreadsheet; only `tasks.formats` writes others."""

import csv
import re
from collections.abc import Iterable
from io import StringIO
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What spreadsheets read as the beginning of a formula (OWASP, "CSV Injection")."""
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?\Z", re.IGNORECASE)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV for spreadsheets, in which no cell is a formula.

    Files in the layouts of other tools (`tasks.formats`), which programs read back, keep every
    character.
    """
    text = StringIO()
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def harmless(cell: Any) -> Any:
    """Return a cell; a text that spreadsheets would treat as a formula is marked as text.

    >>> [harmless(cell) for cell in ("=1+1", "@a", "-0.5", "+49 30", -0.5, "a-b")]
    ["'=1+1", "'@a", '-0.5', "'+49 30", -0.5, 'a-b']
    """
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA) and not NUMBER.match(cell)
    return f"'{cell}" if is_formula else cell
