"""Answers that other evaluators wrote down, as the lines of a predictions file. Pure.

Known by their content: lines of lm-evaluation-harness (`--log_samples`) and Inspect's `.eval` logs.
Anything else is taken as a predictions file. Ids are those of the release.
"""

import json
import math
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from core.files.damage import damage_of
from core.text.words import spelled
from evaluation.contract import LEAST_LOGPROB, MIB, InvalidOutput
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.uploads import eval_logs
from evaluation.task_shape import labels_of
from tasks.config.schema import TaskConfig
from tasks.line_files import PART, FileError, plain_lines
from tasks.targets.endpoints.answer_reader import read_label, without_thoughts

LINE_BYTES = Limits.line_bytes
HARNESS_BYTES = 16 * MIB  # of a line that holds a prompt for each choice


def answer_lines(config: TaskConfig, path: Path) -> Iterator[bytes]:
    """Yield the lines of a predictions file, also from logs of other evaluators.

    One line for each line or sample of the file.
    Raises InvalidOutput, which names the line or sample and how to correct it, and ArchiveRefused.
    """
    if eval_logs.is_zip(path):
        yield from _of_inspect(config, path)
    elif is_of_harness(path):
        yield from _of_harness(config, path)
    else:
        yield from lines_of(path)


def lines_of(path: Path, most: int = LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a text file as UTF-8 without a byte order mark, ending with LF.

    Also reads UTF-16 and files with CRLF or CR.
    A line longer than `most` bytes comes in parts, each of which is then refused.
    Raises InvalidOutput.
    """
    with path.open("rb") as file:
        lines = plain_lines(iter(lambda: file.read(PART), b""), most + 2)
        try:
            yield next(lines, b"").removeprefix(BOM_UTF8)
            yield from lines
        except FileError as error:
            raise InvalidOutput(str(error)) from None


def is_of_harness(path: Path) -> bool:
    """Return whether the first non-empty line is a logged sample of lm-evaluation-harness."""
    try:
        # The harness writes NaN where a model gave none, which strict JSON does not know.
        first = json.loads(next(filter(bytes.strip, lines_of(path, HARNESS_BYTES)), b""))
    except (ValueError, RecursionError, InvalidOutput):
        return False
    return isinstance(first, dict) and {"doc", "filtered_resps"} <= first.keys()


def _of_harness(config: TaskConfig, path: Path) -> Iterator[bytes]:
    filters = set()
    for number, line in enumerate(lines_of(path, HARNESS_BYTES), 1):
        if not line.strip():
            continue
        where = f"Line {number}"
        row = _object(line, where)
        doc, said = row.get("doc"), row.get("filtered_resps")
        if not isinstance(doc, Mapping) or not isinstance(said, list) or not said:
            raise InvalidOutput(f'{where}: a logged sample has "doc" and "filtered_resps".')
        filters.add(str(row.get("filter", "none")))
        if len(filters) > 1:
            names = ", ".join(sorted(filters))
            raise InvalidOutput(f"{where}: there are several filters ({names}). Keep one of them.")
        uid = doc.get("uid")
        if not isinstance(uid, str):
            raise InvalidOutput(
                f'{where}: "doc" has no "uid". Evaluate with the task that comes with the release.'
            )
        yield _line(config, uid, *_chosen(config, doc, said, where))


def _chosen(
    config: TaskConfig, doc: Mapping[str, Any], said: Sequence[Any], where: str
) -> tuple[str | None, dict[str, float] | None, float | None]:
    """Return the answer that the harness counted, with probabilities and log-likelihood.

    Both are None unless the sample was multiple choice.
    """
    choices = doc.get("choices")
    if choices is None:
        if not isinstance(said[0], str):
            raise InvalidOutput(f'{where}: "filtered_resps" should hold the text that was written.')
        return _of_text(config, said[0]), None, None
    labels = labels_of(config) or ()
    names = spelled(choices, labels) if isinstance(choices, list) else None
    if names is None:
        raise InvalidOutput(f"{where}: the choices are not the task's labels: {', '.join(labels)}.")
    try:
        logs = [float(pair[0]) for pair in said]
        if len(logs) != len(names) or not all(map(math.isfinite, logs)):
            raise ValueError
    except (TypeError, ValueError, IndexError, KeyError):
        raise InvalidOutput(
            f'{where}: "filtered_resps" should hold the logarithm of how likely each choice is.'
        ) from None
    best = max(range(len(logs)), key=lambda place: logs[place])
    shares = [math.exp(log - logs[best]) for log in logs]
    chances = {name: share / sum(shares) for name, share in zip(names, shares, strict=True)}
    return names[best], chances, min(max(logs[best], LEAST_LOGPROB), 0.0)


def _of_text(config: TaskConfig, text: str) -> str | None:
    """Return the answer in a generated text; None when it is not one of the labels."""
    labels, written = labels_of(config), without_thoughts(text).text
    if labels is None:
        return written or None
    reading = read_label(written, labels, config.answer_field)
    return reading.label if reading else None


def _of_inspect(config: TaskConfig, path: Path) -> Iterator[bytes]:
    for name, data in eval_logs.samples(path):
        where = f"Sample {name}"
        row = _object(data, where)
        if row.get("epoch", 1) != 1:
            raise InvalidOutput(f"{where}: it is of a further epoch. Run with --epochs 1.")
        if row.get("error"):
            raise InvalidOutput(f"{where}: it ended with an error. Retry it: inspect eval-retry.")
        scores = row.get("scores")
        if not isinstance(scores, Mapping) or not scores:
            raise InvalidOutput(
                f"{where}: it has no score. Evaluate with the task that comes with the release."
            )
        score = next(iter(scores.values()))
        said = score.get("answer") if isinstance(score, Mapping) else None
        answer = _of_text(config, said) if isinstance(said, str) else None
        yield _line(config, str(row.get("id")), answer)


def _object(data: bytes, where: str) -> dict[str, Any]:
    if len(data) > HARNESS_BYTES and where.startswith("Line"):
        raise InvalidOutput(f"{where}: it is longer than {HARNESS_BYTES // MIB} MiB.")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(f"{where}: it is not JSON: {damage_of(error)}.") from None
    if not isinstance(found, dict):
        raise InvalidOutput(f"{where}: it should be a JSON object.")
    return found


def _line(
    config: TaskConfig,
    uid: str,
    answer: str | None,
    prob: Mapping[str, float] | None = None,
    logprob: float | None = None,
) -> bytes:
    """Return a line of a predictions file; an answer of None becomes a null output."""
    if answer is None:
        return orjson.dumps({"id": uid, "output": None, "unanswered": "unmatched"}) + b"\n"
    told = {} if logprob is None else {"logprob": logprob}
    return (
        orjson.dumps({"id": uid, "output": {config.answer_field: answer}, "prob": prob, **told})
        + b"\n"
    )
