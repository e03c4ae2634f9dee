"""Files of comparisons: CSV with the columns id, worker, left, right and winner, read strictly."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.text.names import UnfitName, clean_name
from tasks.config.values import FORBIDDEN_CHARACTERS
from tasks.line_files import BadRow, LineError, iter_plain_lines
from tasks.table_files import read_table

COLUMNS = ("id", "worker", "left", "right", "winner")
WINNERS = ("left", "right", "tie", "both_bad")
MAX_CELL_CHARS = 100


@dataclass(frozen=True, slots=True)
class ComparisonLine:
    """A comparison of two models, by name, and the number of the line where it begins."""

    number: int
    id: str
    worker: str
    left: str
    right: str
    winner: str


def read_comparisons(lines: Iterable[bytes]) -> Iterator[ComparisonLine | LineError]:
    """Yield the comparisons of a file, and an error for each invalid line; ignore extra columns."""
    for row in read_table(iter_plain_lines(lines), _read_header, _read_value):
        yield row if isinstance(row, LineError) else _build_line(row.line, row.values)


def _read_header(cells: list[str]) -> list[str]:
    """Return the names of the columns. Raises BadRow."""
    names = [cell.strip() for cell in cells]
    for name in COLUMNS:
        if name not in names:
            raise BadRow(
                f"the column `{name}` is missing; the first line needs {', '.join(COLUMNS)}"
            )
    for name in COLUMNS:
        if names.count(name) > 1:
            raise BadRow(f"the column `{name}` appears twice; remove one of them")
    return names


def _read_value(name: str, cell: str) -> str:
    """Return the value of a cell. Raises BadRow."""
    if name not in COLUMNS:
        return cell
    value = cell.strip()
    if FORBIDDEN_CHARACTERS.search(value):
        raise BadRow("a control character or broken character; delete it")
    if len(value) > MAX_CELL_CHARS:
        raise BadRow(f"{len(value)} characters; the maximum is {MAX_CELL_CHARS}")
    # Names of models are shown to people, so they are checked like those on forms.
    if name in ("left", "right") and value:
        try:
            return clean_name(value)
        except UnfitName as error:
            raise BadRow(str(error)) from None
    if name == "winner" and value not in WINNERS:
        raise BadRow(f"{value!r} is not a valid winner; use one of: {', '.join(WINNERS)}")
    return value


def _build_line(number: int, values: Mapping[str, str]) -> ComparisonLine | LineError:
    """Return the comparison of a line, or the error in it."""
    for name in COLUMNS:
        if name not in values:
            return LineError(number, f"`{name}`: the cell is empty; fill it in")
    if values["left"] == values["right"]:
        return LineError(number, "`right`: the same model as `left`; use two different models")
    return ComparisonLine(
        number=number,
        id=values["id"],
        worker=values["worker"],
        left=values["left"],
        right=values["right"],
        winner=values["winner"],
    )
