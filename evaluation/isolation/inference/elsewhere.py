"""Convert the logs of other evaluators to the lines of a predictions file. Pure functions.

Logs are recognised by their content: lines of lm-evaluation-harness (`--log_samples`) and Inspect's
`.eval` logs. Any other file is taken as a predictions file. Ids are those of the release.
"""

import json
import math
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from core.files.damage import describe_damage
from core.text.words import order_labels_by_names
from evaluation.contract import MIB, MIN_LOGPROB, InvalidOutput
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.uploads import eval_logs
from evaluation.task_shape import get_labels
from tasks.config.schema import TaskConfig
from tasks.line_files import CHUNK_BYTES, FileError, iter_plain_lines
from tasks.targets.endpoints.answer_reader import read_label, split_thoughts

LINE_BYTES = Limits.line_bytes
HARNESS_BYTES = 16 * MIB  # for a line with a prompt for each choice


def iterate_answer_lines(config: TaskConfig, path: Path) -> Iterator[bytes]:
    """Yield the lines of a predictions file, converting the logs of other evaluators.

    Yields one line for each line or sample of the file. Raises InvalidOutput, which names the line
    or sample and how to correct it, and ArchiveRefused.
    """
    if eval_logs.is_zip(path):
        yield from _convert_inspect_log(config, path)
    elif is_harness_log(path):
        yield from _convert_harness_log(config, path)
    else:
        yield from read_lines(path)


def read_lines(path: Path, max_bytes: int = LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a text file as UTF-8 without a byte order mark, ending with LF.

    Also reads UTF-16 and files with CRLF or CR. A line longer than `max_bytes` is yielded in
    parts, which the caller then refuses one by one. Raises InvalidOutput.
    """
    with path.open("rb") as file:
        lines = iter_plain_lines(iter(lambda: file.read(CHUNK_BYTES), b""), max_bytes + 2)
        try:
            yield next(lines, b"").removeprefix(BOM_UTF8)
            yield from lines
        except FileError as error:
            raise InvalidOutput(str(error)) from None


def is_harness_log(path: Path) -> bool:
    """Return whether the first non-empty line is a sample logged by lm-evaluation-harness."""
    try:
        first_line = next(filter(bytes.strip, read_lines(path, HARNESS_BYTES)), b"")
        # Not orjson: the harness writes NaN for missing values, which strict JSON lacks.
        first_sample = json.loads(first_line)
    except (ValueError, RecursionError, InvalidOutput):
        return False
    return isinstance(first_sample, dict) and {"doc", "filtered_resps"} <= first_sample.keys()


def _convert_harness_log(config: TaskConfig, path: Path) -> Iterator[bytes]:
    filters = set()  # the harness logs each sample once for each of its filters
    for number, line in enumerate(read_lines(path, HARNESS_BYTES), 1):
        if not line.strip():
            continue
        location = f"Line {number}"
        row = _parse_object(line, location)
        doc, responses = row.get("doc"), row.get("filtered_resps")
        if not isinstance(doc, Mapping) or not isinstance(responses, list) or not responses:
            raise InvalidOutput(f'{location}: a logged sample has "doc" and "filtered_resps".')
        filters.add(str(row.get("filter", "none")))
        if len(filters) > 1:
            names = ", ".join(sorted(filters))
            raise InvalidOutput(
                f"{location}: there are several filters ({names}). Keep one of them."
            )
        uid = doc.get("uid")
        if not isinstance(uid, str):
            raise InvalidOutput(
                f'{location}: "doc" has no "uid". '
                "Evaluate with the task that comes with the release."
            )
        yield _make_line(config, uid, *_read_chosen_answer(config, doc, responses, location))


def _read_chosen_answer(
    config: TaskConfig, doc: Mapping[str, Any], responses: Sequence[Any], location: str
) -> tuple[str | None, dict[str, float] | None, float | None]:
    """Return the answer that the harness scored, its probabilities and its log-likelihood.

    Probabilities and log-likelihood are None unless the sample was multiple choice. The answer is
    None if the model generated a text that contains no answer. Raises InvalidOutput.
    """
    choices = doc.get("choices")
    if choices is None:
        if not isinstance(responses[0], str):
            raise InvalidOutput(
                f'{location}: "filtered_resps" should hold the text that was written.'
            )
        return _find_answer(config, responses[0]), None, None
    labels = get_labels(config) or ()
    ordered_labels = None
    if isinstance(choices, list):
        ordered_labels = order_labels_by_names(choices, labels)
    if ordered_labels is None:
        raise InvalidOutput(
            f"{location}: the choices are not the task's labels: {', '.join(labels)}."
        )
    try:
        logprobs = [float(response[0]) for response in responses]
        if len(logprobs) != len(ordered_labels) or not all(map(math.isfinite, logprobs)):
            raise ValueError
    except (TypeError, ValueError, IndexError, KeyError):
        raise InvalidOutput(
            f'{location}: "filtered_resps" should hold the logarithm of how likely each choice is.'
        ) from None
    best_position = max(range(len(logprobs)), key=lambda position: logprobs[position])
    # Divided by the largest before `exp`, because all could otherwise become 0.
    likelihoods = [math.exp(log - logprobs[best_position]) for log in logprobs]
    probabilities = {
        name: likelihood / sum(likelihoods)
        for name, likelihood in zip(ordered_labels, likelihoods, strict=True)
    }
    return (
        ordered_labels[best_position],
        probabilities,
        min(max(logprobs[best_position], MIN_LOGPROB), 0.0),
    )


def _find_answer(config: TaskConfig, text: str) -> str | None:
    """Return the answer in a generated text.

    None if it contains no label of the task or, if answers are free, no text.
    """
    labels, answer_text = get_labels(config), split_thoughts(text).text
    if labels is None:
        return answer_text or None
    reading = read_label(answer_text, labels, config.answer_field)
    if reading is None:
        return None
    return reading.label


def _convert_inspect_log(config: TaskConfig, path: Path) -> Iterator[bytes]:
    for name, data in eval_logs.read_samples(path):
        location = f"Sample {name}"
        row = _parse_object(data, location)
        if row.get("epoch", 1) != 1:  # a set has one answer per example
            raise InvalidOutput(f"{location}: it is of a further epoch. Run with --epochs 1.")
        if row.get("error"):
            raise InvalidOutput(
                f"{location}: it ended with an error. Retry it: inspect eval-retry."
            )
        scores = row.get("scores")
        if not isinstance(scores, Mapping) or not scores:
            raise InvalidOutput(
                f"{location}: it has no score. Evaluate with the task that comes with the release."
            )
        score = next(iter(scores.values()))  # the release's own task has only one scorer
        answer = None
        if isinstance(score, Mapping) and isinstance(text := score.get("answer"), str):
            answer = _find_answer(config, text)
        yield _make_line(config, str(row.get("id")), answer)


def _parse_object(data: bytes, location: str) -> dict[str, Any]:
    # Lines that are too long are read in parts; samples of an archive have their own limit.
    if len(data) > HARNESS_BYTES and location.startswith("Line"):
        raise InvalidOutput(f"{location}: it is longer than {HARNESS_BYTES // MIB} MiB.")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidOutput(f"{location}: it is not JSON: {describe_damage(error)}.") from None
    if not isinstance(value, dict):
        raise InvalidOutput(f"{location}: it should be a JSON object.")
    return value


def _make_line(
    config: TaskConfig,
    uid: str,
    answer: str | None,
    prob: Mapping[str, float] | None = None,
    logprob: float | None = None,
) -> bytes:
    """Return a line of a predictions file; an answer of None becomes a null output."""
    if answer is None:
        return orjson.dumps({"id": uid, "output": None, "unanswered": "unmatched"}) + b"\n"
    output = {config.answer_field: answer}
    line: dict[str, Any] = {"id": uid, "output": output, "prob": prob}
    if logprob is not None:
        line["logprob"] = logprob
    return orjson.dumps(line) + b"\n"
