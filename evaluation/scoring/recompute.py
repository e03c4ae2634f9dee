"""Recompute scores from raw answers: what `dynabench verify` runs on another machine.

    python -m evaluation.scoring.recompute [--intervals] task.yaml labels.jsonl answers.jsonl

Prints a JSON line with the digest of the set, and then one for each model, in the order of the
answers. Needs no database and no Django.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from evaluation.contract import Answer, SetRow
from evaluation.scoring.bootstrap import compute_scores
from evaluation.scoring.metrics import METRICS
from evaluation.scoring.metrics.base import Mean
from evaluation.set_lines import iterate_digested_lines
from evaluation.task_shape import get_labels
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig


class ModelScores(NamedTuple):
    """A model's scores on a set: by metric its value and the ends of its interval, as shares.

    An end is None without an interval, or where it was not recomputed. `error` says why there are
    no scores.
    """

    model: str
    scores: dict[str, tuple[float, float | None, float | None]]
    error: str = ""


def read_set_rows(lines: Iterable[bytes]) -> list[SetRow]:
    """Return the examples of a set from lines `{"id", "inputs", "gold", "slices"}`."""
    rows = []
    for line in map(orjson.loads, lines):
        gold, criteria = tuple(line["gold"]), tuple(line.get("criteria", ()))
        rows.append(SetRow(line["id"], line["inputs"], gold, line["slices"], criteria))
    return rows


def compute_set_digest(rows: Iterable[SetRow]) -> str:
    """Return the SHA-256 that a board shows for a set: of the lines of both its stored files."""
    digest = hashlib.sha256()
    for line in iterate_digested_lines(rows):
        digest.update(line)
    return digest.hexdigest()


def recompute_scores(
    config: TaskConfig,
    rows: Sequence[SetRow],
    lines: Iterable[bytes],
    *,
    with_intervals: bool = False,
) -> Iterator[ModelScores]:
    """Yield the scores of each model.

    lines: for each model `{"model", "seed", "answers"}` and then as many lines `{"id", "answer"}`,
    in the order of the rows. with_intervals: whether to resample the intervals that only resampling
    gives. They take six times as long as all values. Those of means are always computed.
    """
    remaining_lines = iter(lines)
    for header in map(orjson.loads, remaining_lines):
        answers = [orjson.loads(line) for line in islice(remaining_lines, header["answers"])]
        if [answer["id"] for answer in answers] != [row.uid for row in rows]:
            # Another version of the set, or an added or missing answer.
            yield ModelScores(header["model"], {}, "the answers are not those of the set")
            continue
        scores = _compute(config, rows, answers, header["seed"], with_intervals)
        yield ModelScores(header["model"], scores)


def _compute(
    config: TaskConfig,
    rows: Sequence[SetRow],
    answers: Sequence[Any],
    seed: int,
    with_intervals: bool,
) -> dict[str, tuple[float, float | None, float | None]]:
    given_answers = []
    for answer in answers:
        given_answers.append(None if answer["answer"] is None else Answer(answer["answer"]))
    numbers = compute_scores(
        zip(rows, given_answers, strict=True),
        metrics=config.metrics.computed_names,
        labels=get_labels(config),
        slices=(),
        seed=seed,
        draws=None if with_intervals else 1,
        language=config.language,
    )
    scores = {}
    for number in numbers:
        # A metric that this machine cannot compute has no value, such as spBLEU without its model.
        if number.value is None or number.slice:
            continue
        ends: tuple[float | None, float | None] = (None, None)
        if with_intervals or issubclass(METRICS[number.metric], Mean):
            ends = number.low, number.high
        scores[number.metric] = (number.value, *ends)
    return scores


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the three files, and print the scores of each model as a JSON line."""
    parser = argparse.ArgumentParser(description="Recompute scores from raw answers.")
    for name in ("config", "labels", "answers"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--intervals", action="store_true", help="resample intervals, too")
    args = parser.parse_args(arguments)
    config = load_config(args.config.read_text(encoding="utf-8"))
    with args.labels.open("rb") as lines:
        rows = read_set_rows(lines)
    sys.stdout.buffer.write(orjson.dumps({"sha256": compute_set_digest(rows)}) + b"\n")
    with args.answers.open("rb") as lines:
        for found in recompute_scores(config, rows, lines, with_intervals=args.intervals):
            sys.stdout.buffer.write(orjson.dumps(found._asdict()) + b"\n")


if __name__ == "__main__":
    main()
