"""Tables for spreadsheets: no cell is a formula, whoever wrote it, and numbers stay numbers."""

import csv
import io
import re
from pathlib import Path

from core.files.tables import FORMULA_STARTS, build_csv_text
from tests.support.variables import APPS

ROOT = Path(__file__).parents[3]
ROOMS = (*APPS, "scripts")
FOR_PROGRAMS = "tasks/formats/__init__.py"
"""What other tools read back letter by letter."""


def test_no_cell_begins_a_formula_and_each_number_is_left():
    texts = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "+-1"]
    kept = ["", "a=b", "-0.5", "+4", "1e-5", "-3.5E+7", "2026-01-31T10:00:00", "–", "'=1"]
    numbers = [-0.5, -3, None, True]
    [*rows] = csv.reader(io.StringIO(build_csv_text([texts, kept, numbers]), newline=""))
    assert rows[0] == [f"'{text}" for text in texts]
    assert not [cell for cell in rows[0] if cell.startswith(FORMULA_STARTS)]
    assert rows[1] == kept
    assert rows[2] == ["-0.5", "-3", "", "True"]


def test_every_door_that_hands_out_csv_uses_it():
    writes = re.compile(r"\bcsv\.(writer|DictWriter)\(|\.to_csv\(")
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if writes.search(path.read_text())
    }
    assert found == {"core/files/tables.py", FOR_PROGRAMS}
