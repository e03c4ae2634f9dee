"""Read matrices of right and wrong answers, and the groups of their items. Pure."""

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class InvalidMatrix(ValueError):
    """Raised when a file can't be used. The message names the file, the line and the reason."""


@dataclass(frozen=True)
class AnswerMatrix:
    """Which items each model answered rightly."""

    models: tuple[str, ...]
    items: tuple[str, ...]
    is_right: NDArray[np.bool_]
    """One row for each model, one column for each item."""


@dataclass(frozen=True)
class ItemGroups:
    """The group of each item, such as its round. Groups are in order of time."""

    names: tuple[str, ...]
    group_of: NDArray[np.intp]
    """For each item the place of its group in `names`."""

    def compute_shares(self, is_right: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the share (0-1) of right answers: one row for each model, one column a group."""
        columns = [
            is_right[:, self.group_of == group].mean(axis=1) for group in range(len(self.names))
        ]
        return np.column_stack(columns)


def read_matrix(path: Path) -> AnswerMatrix:
    """Return the answers in a CSV file, which may be compressed with gzip.

    The first line names the items, the first column the models. Each other cell is 0 or 1.

    Raises
    ------
    InvalidMatrix
        If the file can't be read, or a line has another form.
    """
    lines = _read_lines(path)
    header = next(lines, [])
    items = header[1:]
    if not items:
        raise InvalidMatrix(f"{path}: the first line must name the items.")
    _require_distinct(path, "item", items)
    models, rows = [], []
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(header):
            raise InvalidMatrix(
                f"{path}, line {number}: {len(cells)} cells instead of {len(header)}."
            )
        models.append(cells[0])
        rows.append(_read_answers(path, number, items, cells[1:]))
    if not rows:
        raise InvalidMatrix(f"{path}: there is no model below the first line.")
    _require_distinct(path, "model", models)
    return AnswerMatrix(tuple(models), tuple(items), np.array(rows))


def _read_answers(
    path: Path, number: int, items: Sequence[str], cells: Sequence[str]
) -> NDArray[np.bool_]:
    # Compared as an array: files have millions of cells.
    texts = np.array(cells)
    is_right = texts == "1"
    invalid = np.flatnonzero(~is_right & (texts != "0"))
    if len(invalid):
        place = int(invalid[0])
        raise InvalidMatrix(
            f"{path}, line {number}, item {items[place]}: {cells[place]!r} is neither 0 nor 1."
        )
    return np.asarray(is_right)


def read_groups(path: Path, items: Sequence[str]) -> ItemGroups:
    """Return the groups of these items from a CSV file with the columns `item` and `group`.

    Groups are in the order in which the file first names them. Lines about other items are
    ignored, so one file can serve several matrices.

    Raises
    ------
    InvalidMatrix
        If the file can't be read, an item has no group or two, or all items have the same one.
    """
    lines = _read_lines(path)
    if next(lines, []) != ["item", "group"]:
        raise InvalidMatrix(f"{path}: the first line must be item,group.")
    group_by_item: dict[str, str] = {}
    for number, cells in enumerate(lines, start=2):
        if len(cells) != 2 or not all(cells):
            raise InvalidMatrix(f"{path}, line {number}: an item and its group are needed.")
        item, group = cells
        if group_by_item.setdefault(item, group) != group:
            raise InvalidMatrix(f"{path}, line {number}: item {item} already has another group.")
    for item in items:
        if item not in group_by_item:
            raise InvalidMatrix(f"{path}: item {item} has no group.")
    # A group that only other items have would have no share of right answers.
    used = {group_by_item[item] for item in items}
    # A dict keeps the order in which the file first names each group.
    names = [name for name in dict.fromkeys(group_by_item.values()) if name in used]
    if len(names) < 2:
        raise InvalidMatrix(f"{path}: at least two groups are needed, an earlier and a later one.")
    place_by_name = {name: place for place, name in enumerate(names)}
    places = [place_by_name[group_by_item[item]] for item in items]
    return ItemGroups(tuple(names), np.array(places, dtype=np.intp))


def _read_lines(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each line that isn't empty."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    # EOFError: the compressed file ends too early.
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidMatrix(f"{path}: can't be read ({error}).") from error
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), strict=True):
            if cells:
                yield cells
    except csv.Error as error:
        raise InvalidMatrix(f"{path}: isn't a CSV file ({error}).") from error


def _require_distinct(path: Path, kind: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            problem = f"{kind} {name} appears twice" if name else f"a name of a {kind} is empty"
            raise InvalidMatrix(f"{path}: {problem}.")
        seen.add(name)
