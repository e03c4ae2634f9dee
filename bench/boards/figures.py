"""What the boards say in figures: ranks, people, and the changes that were asked about before."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.boards.plan import Entry, list_questions
from bench.boards.rows import Rows, list_clusters
from evaluation.scoring.corrections import adjust_by_holm
from leaderboard.ranking.ranks import compare_scores

Answers = Mapping[str, Mapping[str, Sequence[str]]]
"""The labels by model and set, in the order of the set's rows."""
DIGITS = 4


def build_figures(
    rows: Rows,
    models: Sequence[Entry],
    answers: Answers,
    site: Mapping[str, Any],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Those of one task. site: its board and its rounds."""
    counting = [one["name"] for one in site["board"]["sets"] if one["counts"]]
    return {
        "rows": {
            "train": {name: len(some) for name, some in rows.stages.items()},
            "too_close": dict(rows.dropped),
            "test": {name: len(some) for name, some in rows.tests.items()},
        },
        "counting": counting,
        "people": [*_iterate_people(site["rounds"])],
        "models": [*_iterate_models(models, site["board"]["rows"], seconds)],
        "changes": [*_iterate_changes(rows, answers, counting)],
    }


def _iterate_people(rounds: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Of rounds where people voted and a model was in the loop; in percent."""
    for one in rounds:
        if one["set"] and one["people"]["value"] is not None:
            yield {
                "set": f"round-{one['round']}",
                "people": _round_cell(one["people"]),
                "best": one["best"],
                "people_minus_best": _round_cell(one["people_minus_best"]),
            }


def _iterate_models(
    models: Sequence[Entry], board: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """In the order of the board; accuracies in percent."""
    kinds = {one.name: one for one in models}
    for row in board:
        entry = kinds[row["model"]]
        yield {
            "model": entry.name,
            "kind": entry.kind,
            "trained_on": entry.trained_on,
            "rank": row["rank"],
            "first": row["first"],
            "last": row["last"],
            "accuracy": _round_cell(row["metrics"]["accuracy"]),
            "sets": {
                name: _round_cell(told["accuracy"]) for name, told in row["sets"].items() if told
            },
            "cpu_seconds": round(seconds[entry.name], 1),
        }


def _iterate_changes(
    rows: Rows, answers: Answers, counting: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """In points, with McNemar's test, or Student's by whole groups where rows depend on others."""
    for one in list_questions([*rows.stages], rows.like, counting):
        if not {one.before, one.after} <= answers.keys():
            continue
        tested = [row for name in one.sets for row in rows.tests[name]]
        after, before = (
            _score_answers(rows, answers[name], one.sets) for name in (one.after, one.before)
        )
        found = compare_scores(after, before, list_clusters(tested))
        yield {
            **one._asdict(),
            "points": {
                part: round(100 * getattr(found, part), DIGITS) for part in ("value", "low", "high")
            },
            "p": found.p,
            "n": found.n,
            "clusters": found.clusters,
            "method": found.method,
        }


def _score_answers(
    rows: Rows, said: Mapping[str, Sequence[str]], sets: Sequence[str]
) -> list[float]:
    """1 for each right answer, 0 for a wrong one."""
    return [
        float(label == row["label"])
        for name in sets
        for row, label in zip(rows.tests[name], said[name], strict=True)
    ]


def adjust_p_values(tasks: Mapping[str, Mapping[str, Any]]) -> None:
    """Give each change its p after Holm's correction for all of the page."""
    changes = [one for task in tasks.values() for one in task["changes"]]
    for one, p in zip(changes, adjust_by_holm([one["p"] for one in changes]), strict=True):
        one["p_holm"] = p


def _round_cell(cell: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 2) for name, value in cell.items()}
