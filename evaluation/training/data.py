"""Prepare the rows of a training run: checks, token ids with their targets, batches, scores."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from tokenizers import Encoding

from evaluation.contract import SetRow
from evaluation.scoring.metrics import make_metric
from evaluation.seeds import Row
from serving.codecs import Answer, Codec, Logits
from serving.errors import BadRequestError
from serving.spec import FIELDS_BY_KIND, SPAN

BATCH_WINDOWS = 32
POOL_BATCHES = 16  # batches sorted by length together, so that each needs little padding


class TrainingError(ValueError):
    """Raised for rows that a model cannot be trained on."""


@dataclass(frozen=True)
class TrainingItem:
    """A training example: token ids and the target of each output, (label,) or (start, end)."""

    encoding: Encoding
    target: tuple[int, ...]


def check_rows(rows: Sequence[Row], *, kind: str, labels: Sequence[str] | None) -> None:
    """Raise TrainingError, which names the row and field, unless every row can be trained on."""
    if kind not in FIELDS_BY_KIND:
        raise TrainingError(f"kind {kind!r} is none of {', '.join(FIELDS_BY_KIND)}.")
    texts = (*FIELDS_BY_KIND[kind], "answer" if kind == SPAN else "label")
    for number, row in enumerate(rows, start=1):
        for field in texts:
            if not isinstance(row.get(field), str) or not row[field].strip():
                raise TrainingError(f"row {number}: {field} is missing or empty.")
        if labels and row["label"] not in labels:
            raise TrainingError(
                f"row {number}: label {row['label']!r} is none of {', '.join(labels)}."
            )
        if kind == SPAN and not _has_valid_answer(row):
            raise TrainingError(
                f"row {number}: the passage does not have the answer {row['answer']!r} at "
                f"answer_start {row.get('answer_start')!r} (counted in characters from 0)."
            )


def _has_valid_answer(row: Row) -> bool:
    start = row.get("answer_start")
    return isinstance(start, int) and bool(row["passage"].startswith(row["answer"], start))


def draw_items(
    rows: Sequence[Row], codec: Codec, *, window: int, rng: random.Random
) -> list[TrainingItem]:
    """Return the items of one epoch, in which each row occurs as often as its weight says.

    A span's window is drawn at random. Raises TrainingError for a row that does not fit into the
    model's tokens.
    """
    items = []
    for row in rows:
        weight = row.get("weight", 1.0)
        # A weight of 2.3 means twice, and a third time with probability 0.3.
        repetitions = int(weight) + (rng.random() < weight % 1)
        for _ in range(repetitions):
            try:
                items.append(_make_item(row, codec, window, rng))
            except BadRequestError as error:
                raise TrainingError(f"{error} The row: {row}") from error
    return items


def _make_item(row: Row, codec: Codec, window: int, rng: random.Random) -> TrainingItem:
    if codec.labels is None:
        return _make_span_item(row, codec, window, rng)
    return TrainingItem(encode_row(row, codec)[0], (codec.labels.index(row["label"]),))


def encode_row(row: Row, codec: Codec) -> list[Encoding]:
    """Return the encodings of a row of texts. Raises BadRequestError."""
    return cast("list[Encoding]", codec.encode(row))


def _make_span_item(row: Row, codec: Codec, window: int, rng: random.Random) -> TrainingItem:
    """Return the passage's tokens with the answer span.

    A long passage is cut to a randomly drawn window around the answer. Raises TrainingError if the
    answer does not fit into the model's tokens.
    """
    start, end = row["answer_start"], row["answer_start"] + len(row["answer"])
    passage = row["passage"]
    offsets = codec.tokenizer.encode(passage, add_special_tokens=False).offsets
    if window and len(offsets) > window:
        answer_tokens = [
            n for n, (left, right) in enumerate(offsets) if left < end and right > start
        ]
        # The window is drawn again in each epoch, but always contains the whole answer.
        low = max(0, answer_tokens[-1] + 1 - window)
        high = max(low, min(answer_tokens[0], len(offsets) - window))
        first_token = rng.randint(low, high)
        # Positions of the answer are in characters, the window is in tokens.
        cut_chars = offsets[first_token][0]
        passage = passage[cut_chars : offsets[min(first_token + window, len(offsets)) - 1][1]]
        start, end = start - cut_chars, end - cut_chars
    for encoding in encode_row({**row, "passage": passage}, codec):
        span = find_span(encoding, start, end)
        if span:
            return TrainingItem(encoding, span)
    raise TrainingError(
        f"the answer {row['answer']!r} does not fit into {codec.max_length} tokens."
    )


def find_span(encoding: Encoding, start: int, end: int) -> tuple[int, int] | None:
    """Return (first, last) token indices of the passage's characters start:end.

    None unless the encoding contains all of them.
    """
    tokens = []
    for number, sequence in enumerate(encoding.sequence_ids):
        left, right = encoding.offsets[number]
        if sequence == 1 and left < end and right > start:  # 0 is the question, 1 the passage
            tokens.append(number)
    if not tokens:
        return None
    first_token, last_token = tokens[0], tokens[-1]
    if encoding.offsets[first_token][0] > start or encoding.offsets[last_token][1] < end:
        return None
    return first_token, last_token


def draw_batches(
    items: Sequence[TrainingItem], size: int, rng: random.Random
) -> Iterator[list[TrainingItem]]:
    """Return an iterator over batches of items, which contains each item once.

    The items of a batch have similar lengths; batches come in random order.
    """
    shuffled_items = rng.sample(items, len(items))
    batches = []
    # Sorted within a pool only, so that the order of batches stays random.
    for start in range(0, len(shuffled_items), size * POOL_BATCHES):
        pool = sorted(
            shuffled_items[start : start + size * POOL_BATCHES], key=lambda item: len(item.encoding)
        )
        batches += [pool[number : number + size] for number in range(0, len(pool), size)]
    rng.shuffle(batches)
    return iter(batches)


def run_sorted(
    windows: Sequence[Sequence[Encoding]],
    run: Callable[[list[Encoding]], Sequence[Logits]],
) -> list[list[Logits]]:
    """Return the logits of each row's windows, in order.

    The windows are passed to `run` in batches of similar length.
    """
    window_indices: list[tuple[int, int]] = []
    for row, row_windows in enumerate(windows):
        window_indices += [(row, window) for window in range(len(row_windows))]
    window_indices.sort(key=lambda place: len(windows[place[0]][place[1]]))  # little padding
    logits_by_position: dict[tuple[int, int], Logits] = {}
    for start in range(0, len(window_indices), BATCH_WINDOWS):
        chunk = window_indices[start : start + BATCH_WINDOWS]
        logits = run([windows[row][window] for row, window in chunk])
        logits_by_position.update(zip(chunk, logits, strict=True))
    logits_by_row: list[list[Logits]] = [[] for _ in windows]
    for row, window in sorted(logits_by_position):
        logits_by_row[row].append(logits_by_position[row, window])
    return logits_by_row


def score_answers(rows: Sequence[Row], answers: Sequence[Answer], *, kind: str) -> dict[str, float]:
    """Return scores from 0 to 1 of the answers.

    accuracy and macro_f1 for labels; f1 (SQuAD's) and exact_match for spans.
    """
    field, names = "label", {"accuracy": "accuracy", "macro_f1": "macro_f1"}
    if kind == SPAN:
        field, names = "answer", {"f1": "squad_f1", "exact_match": "exact_match"}
    outputs = [answer.output[field] for answer in answers]
    right_answers = [row[field] for row in rows]
    labels = sorted(set(outputs + right_answers))
    scores = {}
    for name, metric_name in names.items():
        metric = make_metric(metric_name, labels)
        statistics = []
        for output, right in zip(outputs, right_answers, strict=True):
            statistics.append(metric.compute_statistic(output, SetRow("", {}, (right,))))
        scores[name] = float(metric.compute_value(metric.compute_vectors(statistics).sum(axis=0)))
    return scores
