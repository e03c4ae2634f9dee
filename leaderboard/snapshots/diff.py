"""What changed between two snapshots of a board, in sentences."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.text.words import gettext_noop

Table = Mapping[str, Any]
MAX_NAMED_MODELS = 20
"""Models of one kind of change that are named."""


def describe_changes(before: Table, after: Table) -> list[str]:
    """Describe the differences between two tables: sets, rules and models, or an arena's models."""
    sentences: list[str] = []
    if "battles" in after:
        sentences += _iter_arena_changes(before, after)
    else:
        sentences += _iter_set_changes(before, after)
        sentences += _iter_rule_changes(before, after)
        sentences += _iter_model_changes(before, after)
    return sentences or [gettext_noop("Nothing that is shown.")]


def _index_rows(key: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the rows by their value of `key`."""
    return {row[key]: row for row in rows}


def _iter_set_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe the sets that were added or removed, or have another version or access."""
    old, new = _index_rows("name", before["sets"]), _index_rows("name", after["sets"])
    for name, board_set in new.items():
        was = old.get(name)
        if was is None:
            yield f"{name} v{board_set['version']} is a new set."
        elif was["version"] != board_set["version"]:
            yield f"{name} is v{board_set['version']} now, was v{was['version']}."
        if was and was["access"] != board_set["access"]:
            yield f"{name} is {board_set['access']} now, was {was['access']}."
    for name in old.keys() - new.keys():
        yield f"{name} is no longer shown."


def _iter_rule_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe changes to weights, formula, metrics and code, which change the scores."""
    for kind in ("metrics", "sets"):
        old, new = before["weights"][kind], after["weights"][kind]
        for name in {**new, **old}:
            if old.get(name, 0) != new.get(name, 0):
                yield f"{name} weighs {new.get(name, 0):g} now, was {old.get(name, 0):g}."
    # Another formula comes with other rates or anchors, so only the first difference is told.
    if before["mode"] != after["mode"]:
        yield f"The Dynascore is {after['mode']} now, was {before['mode']}."
    elif before["rates"] != after["rates"]:
        yield gettext_noop("The exchange rates are other ones, which changes all scores.")
    elif before.get("anchors") != after.get("anchors"):
        yield gettext_noop("The anchors are other ones, which changes all scores.")
    old_metrics, new_metrics = (
        _index_rows("name", before["metrics"]),
        _index_rows("name", after["metrics"]),
    )
    for name, metric in new_metrics.items():
        was = old_metrics.get(name)
        if was and was["version"] != metric["version"]:
            versions = f"version {metric['version']}, was {was['version']}"
            yield f"{name} is computed otherwise: {versions}."
    if before["code"] != after["code"]:
        yield f"The code is version {after['code']} now, was {before['code']}."


def _iter_arena_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe an arena's new and moved models, and the number of added comparisons."""
    old, new = _index_rows("name", before["models"]), _index_rows("name", after["models"])
    added, moved = [], []
    for name, row in new.items():
        was = old.get(name)
        if was is None:
            added.append(f"{name} is new, {_describe_rank(row)}.")
        elif was["rank"] != row["rank"]:
            moved.append(f"{name} is {_describe_rank(row)} now, was {_describe_rank(was)}.")
    yield from _shorten(added, "are new")
    yield from _shorten(moved, "moved")
    if more := after["battles"] - before["battles"]:
        yield f"{more:,} comparisons more."


def _iter_model_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe the models that were added or removed, moved, or have another score."""
    old, new = _index_rows("id", before["rows"]), _index_rows("id", after["rows"])
    added, gone, moved = [], [], []
    rescored = 0
    for key, row in new.items():
        was = old.get(key)
        if was is None:
            added.append(f"{row['model']} is new, {_describe_rank(row)}.")
        elif was["rank"] != row["rank"]:
            moved.append(f"{row['model']} is {_describe_rank(row)} now, was {_describe_rank(was)}.")
        # Counted only: after a new set all scores change, and a list of them would hide the rest.
        elif _read_score(was) != _read_score(row):
            rescored += 1
    for key, row in old.items():
        if key not in new:
            gone.append(f"{row['model']} is gone; it was {_describe_rank(row)}.")
    yield from _shorten(added, "are new")
    yield from _shorten(gone, "are gone")
    yield from _shorten(moved, "moved")
    if rescored:
        number = "1 model has" if rescored == 1 else f"{rescored} models have"
        yield f"{number} another score at the same rank."


def _read_score(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score with its interval; earlier tables have no range."""
    value = row["dynascore"]["value"]
    return {"least": value, "most": value, **row["dynascore"]}


def _describe_rank(row: Mapping[str, Any]) -> str:
    return f"at {row['rank']}" if row["rank"] else "not run"


def _shorten(sentences: list[str], rest: str) -> list[str]:
    """Return the first sentences, and a count of the remaining ones. rest: its text."""
    first = sentences[:MAX_NAMED_MODELS]
    more = len(sentences) - len(first)
    if more:
        first.append(f"{more} more {rest}.")
    return first
