"""What changed between two snapshots of a board, in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.text.words import gettext_noop

Table = Mapping[str, Any]
MOST_TOLD = 20
"""Models of one kind of change that are named."""


def what_changed(before: Table, after: Table) -> list[str]:
    """Describe which sets, rules and models differ in the later table; of an arena the models."""
    if "battles" in after:
        return [*_arena(before, after)] or [gettext_noop("Nothing that is shown.")]
    found = [*_sets(before, after), *_rules(before, after), *_models(before, after)]
    return found or [gettext_noop("Nothing that is shown.")]


def _sets(before: Table, after: Table) -> Iterator[str]:
    old, new = ({one["name"]: one for one in table["sets"]} for table in (before, after))
    for name, one in new.items():
        was = old.get(name)
        if was is None:
            yield f"{name} v{one['version']} is a new set."
        elif was["version"] != one["version"]:
            yield f"{name} is v{one['version']} now, was v{was['version']}."
        if was and was["access"] != one["access"]:
            yield f"{name} is {one['access']} now, was {was['access']}."
    for name in old.keys() - new.keys():
        yield f"{name} is no longer shown."


def _rules(before: Table, after: Table) -> Iterator[str]:
    for what in ("metrics", "sets"):
        old, new = before["weights"][what], after["weights"][what]
        for name in [*new, *(one for one in old if one not in new)]:
            if old.get(name, 0) != new.get(name, 0):
                yield f"{name} weighs {new.get(name, 0):g} now, was {old.get(name, 0):g}."
    if before["mode"] != after["mode"]:
        yield f"The Dynascore is {after['mode']} now, was {before['mode']}."
    elif before["rates"] != after["rates"]:
        yield gettext_noop("The exchange rates are other ones, which changes all scores.")
    elif before.get("anchors") != after.get("anchors"):
        yield gettext_noop("The anchors are other ones, which changes all scores.")
    old, new = ({one["name"]: one["version"] for one in t["metrics"]} for t in (before, after))
    for name in [name for name in new if name in old and old[name] != new[name]]:
        yield f"{name} is computed otherwise: version {new[name]}, was {old[name]}."
    if before["code"] != after["code"]:
        yield f"The code is version {after['code']} now, was {before['code']}."


def _arena(before: Table, after: Table) -> Iterator[str]:
    old, new = ({one["name"]: one for one in table["models"]} for table in (before, after))
    both = [(name, old[name], one) for name, one in new.items() if name in old]
    added = [f"{name} is new, {_at(one)}." for name, one in new.items() if name not in old]
    moved = [
        f"{name} is {_at(one)} now, was {_at(was)}."
        for name, was, one in both
        if was["rank"] != one["rank"]
    ]
    yield from _some(added, "are new")
    yield from _some(moved, "moved")
    if more := after["battles"] - before["battles"]:
        yield f"{more:,} comparisons more."


def _models(before: Table, after: Table) -> Iterator[str]:
    old, new = ({row["id"]: row for row in table["rows"]} for table in (before, after))
    added = [row for key, row in new.items() if key not in old]
    gone = [row for key, row in old.items() if key not in new]
    both = [(old[key], row) for key, row in new.items() if key in old]
    moved = [(was, row) for was, row in both if was["rank"] != row["rank"]]
    scored = [
        (was, row) for was, row in both if was["rank"] == row["rank"] and _score(was) != _score(row)
    ]
    yield from _some([f"{row['model']} is new, {_at(row)}." for row in added], "are new")
    yield from _some([f"{row['model']} is gone; it was {_at(row)}." for row in gone], "are gone")
    yield from _some(
        [f"{row['model']} is {_at(row)} now, was {_at(was)}." for was, row in moved], "moved"
    )
    if scored:
        number = "1 model has" if len(scored) == 1 else f"{len(scored)} models have"
        yield f"{number} another score at the same rank."


def _score(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score with its interval; earlier tables have no range."""
    value = row["dynascore"]["value"]
    return {"least": value, "most": value, **row["dynascore"]}


def _at(row: Mapping[str, Any]) -> str:
    return f"at {row['rank']}" if row["rank"] else "not run"


def _some(sentences: list[str], rest: str) -> list[str]:
    more = len(sentences) - MOST_TOLD
    return [*sentences[:MOST_TOLD], f"{more} more {rest}."] if more > 0 else sentences
