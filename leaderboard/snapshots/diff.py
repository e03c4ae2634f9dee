"""Sentences about what changed between two snapshots of a board."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.text.words import gettext_noop

Table = Mapping[str, Any]
MAX_NAMED_MODELS = 20
"""The most models that are named for one kind of change."""


def describe_changes(before: Table, after: Table) -> list[str]:
    """Describe the differences between two tables: sets, rules and models, or an arena's models."""
    sentences: list[str] = []
    if "battles" in after:
        sentences += _iter_arena_changes(before, after)
    else:
        sentences += _iter_set_changes(before, after)
        sentences += _iter_rule_changes(before, after)
        sentences += _iter_model_changes(before, after)
    return sentences or [gettext_noop("No visible changes.")]


def _index_rows(key: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the rows by their value of `key`."""
    return {row[key]: row for row in rows}


def _iter_set_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe the sets that were added or removed, or have another version or access."""
    old_sets, new_sets = _index_rows("name", before["sets"]), _index_rows("name", after["sets"])
    for name, board_set in new_sets.items():
        old_set = old_sets.get(name)
        if old_set is None:
            yield f"{name} v{board_set['version']} is a new set."
        elif old_set["version"] != board_set["version"]:
            yield f"{name} changed from v{old_set['version']} to v{board_set['version']}."
        if old_set and old_set["access"] != board_set["access"]:
            yield f"{name} changed from {old_set['access']} to {board_set['access']}."
    for name in old_sets.keys() - new_sets.keys():
        yield f"{name} is no longer shown."


def _iter_rule_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe changes to weights, formula, metrics and code, which change the scores."""
    for kind in ("metrics", "sets"):
        old_weights, new_weights = before["weights"][kind], after["weights"][kind]
        for name in {**new_weights, **old_weights}:
            old_weight, new_weight = old_weights.get(name, 0), new_weights.get(name, 0)
            if old_weight != new_weight:
                yield f"The weight of {name} changed from {old_weight:g} to {new_weight:g}."
    # Another formula has other rates or anchors, so only the first difference is stated.
    if before["mode"] != after["mode"]:
        yield f"The Dynascore's mode changed from {before['mode']} to {after['mode']}."
    elif before["rates"] != after["rates"]:
        yield gettext_noop("The exchange rates changed, so every score changes.")
    elif before.get("anchors") != after.get("anchors"):
        yield gettext_noop("The reference models changed, so every score changes.")
    old_metrics, new_metrics = (
        _index_rows("name", before["metrics"]),
        _index_rows("name", after["metrics"]),
    )
    for name, metric in new_metrics.items():
        old_metric = old_metrics.get(name)
        if old_metric and old_metric["version"] != metric["version"]:
            versions = f"version {metric['version']}, was {old_metric['version']}"
            yield f"{name} is computed differently: {versions}."
    if before["code"] != after["code"]:
        yield f"The code changed from version {before['code']} to {after['code']}."


def _iter_arena_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe an arena's new and moved models, and the number of added comparisons."""
    old_models, new_models = (
        _index_rows("name", before["models"]),
        _index_rows("name", after["models"]),
    )
    added_sentences, moved_sentences = [], []
    for name, row in new_models.items():
        old_row = old_models.get(name)
        if old_row is None:
            added_sentences.append(f"{name} is new, {_describe_rank(row)}.")
        elif old_row["rank"] != row["rank"]:
            moved_sentences.append(
                f"{name} is now {_describe_rank(row)} (was {_describe_rank(old_row)})."
            )
    yield from _shorten_list(added_sentences, "are new")
    yield from _shorten_list(moved_sentences, "moved")
    if more := after["battles"] - before["battles"]:
        yield f"{more:,} new comparisons."


def _iter_model_changes(before: Table, after: Table) -> Iterator[str]:
    """Describe the models that were added or removed, moved, or have another score."""
    old_models, new_models = _index_rows("id", before["rows"]), _index_rows("id", after["rows"])
    added_sentences, gone_sentences, moved_sentences = [], [], []
    rescored_count = 0
    for key, row in new_models.items():
        old_row = old_models.get(key)
        if old_row is None:
            added_sentences.append(f"{row['model']} is new, {_describe_rank(row)}.")
        elif old_row["rank"] != row["rank"]:
            moved_sentences.append(
                f"{row['model']} is now {_describe_rank(row)} (was {_describe_rank(old_row)})."
            )
        # Only counted: after a new set all scores change, and a list would hide the rest.
        elif _read_score(old_row) != _read_score(row):
            rescored_count += 1
    for key, row in old_models.items():
        if key not in new_models:
            gone_sentences.append(f"{row['model']} was removed (was {_describe_rank(row)}).")
    yield from _shorten_list(added_sentences, "are new")
    yield from _shorten_list(gone_sentences, "were removed")
    yield from _shorten_list(moved_sentences, "moved")
    if rescored_count:
        number = "1 model has" if rescored_count == 1 else f"{rescored_count} models have"
        yield f"{number} a new score at the same rank."


def _read_score(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score with its interval; earlier tables have no range."""
    value = row["dynascore"]["value"]
    return {"least": value, "most": value, **row["dynascore"]}


def _describe_rank(row: Mapping[str, Any]) -> str:
    return f"at rank {row['rank']}" if row["rank"] else "not run"


def _shorten_list(sentences: list[str], rest_text: str) -> list[str]:
    """Return the first sentences, and one that counts the others, such as "3 more moved."

    rest_text: the words after the number.
    """
    shown_sentences = sentences[:MAX_NAMED_MODELS]
    more = len(sentences) - len(shown_sentences)
    if more:
        shown_sentences.append(f"{more} more {rest_text}.")
    return shown_sentences
