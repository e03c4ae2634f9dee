"""From lines of examples to lines of answers."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from serving.backends import Backend
from serving.codecs import Codec, Logits
from serving.errors import BadRequestError, ServingError

from .batches import Example, make_batches, pieces_at_once
from .loading import Model


def read_examples(lines: Iterable[bytes], codec: Codec) -> Iterator[Example]:
    """Yield the examples with the sizes of their encodings. Skips those that the model cannot read.

    Skipped examples are reported on stderr. Encodings are discarded and made again for each batch,
    because storing all of them would exhaust memory. Raises BadRequestError, which names the line.
    """
    for number, line in enumerate(lines, 1):
        row = json.loads(line)
        id, texts = _fields(row, codec.fields, number)
        try:
            sizes = [len(encoding) for encoding in codec.encode(_row(codec, texts))]
        except BadRequestError as error:
            print(f"Line {number} is not answered: {error}", file=sys.stderr)
        else:
            yield Example(max(sizes), len(sizes), texts, id, row.get("batch", 0))


def all_answers(lines: Iterable[bytes], model: Model) -> Iterator[bytes]:
    """Yield the answers to all examples, in the fastest order.

    Raises what `read_examples` and `answer_batches` raise.
    """
    examples = list(read_examples(lines, model.codec))
    yield from answer_batches(examples, model.codec, model.backend, workers=model.workers)


def each_answer(lines: Iterable[bytes], model: Model) -> Iterator[bytes]:
    """Yield the answer to each example as soon as it arrives; a null output if it is unreadable.

    Raises as `all_answers`.
    """
    for line in lines:
        declined = json.dumps({"id": json.loads(line)["id"], "output": None}) + "\n"
        yield b"".join(all_answers([line], model)) or declined.encode()


def answer_batches(
    examples: Sequence[Example], codec: Codec, backend: Backend, *, workers: int
) -> Iterator[bytes]:
    """Yield the answers of one batch after another, a line each, computed by `workers` threads.

    Raises ServingError if the model fails on a batch.
    """
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(
                lambda batch: _answered(batch, codec, backend), make_batches(examples)
            )
        finally:  # whoever reads may have stopped: what has not begun is not worth the wait
            pool.shutdown(wait=False, cancel_futures=True)


def _answered(batch: Sequence[Example], codec: Codec, backend: Backend) -> bytes:
    """Return the answers to a batch as lines. Raises ServingError."""
    rows = [_row(codec, example.texts) for example in batch]
    encodings_of_rows = [codec.encode(row) for row in rows]
    flat_encodings = list(chain.from_iterable(encodings_of_rows))
    step = pieces_at_once(batch[0].size)  # a long example alone may have more pieces than that
    logits: list[Logits] = []
    try:
        for start in range(0, len(flat_encodings), step):
            logits += backend.run(flat_encodings[start : start + step])
    except Exception as error:  # whatever a model's configuration may lead to
        size = f"{len(batch)} examples of up to {batch[0].size} tokens"
        raise ServingError(
            f"The model failed on {size}: {type(error).__name__}: {error}"
        ) from error
    # Flat, as the encodings: each example takes as many as it has pieces.
    remaining_logits = iter(logits)
    lines = []
    for example, row, encodings in zip(batch, rows, encodings_of_rows, strict=True):
        answer = codec.decode(row, encodings, [next(remaining_logits) for _ in encodings])
        lines.append(
            json.dumps({"id": example.id, "output": answer.output, "prob": answer.prob}) + "\n"
        )
    return "".join(lines).encode()


def _row(codec: Codec, texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(codec.fields, texts, strict=True))


def _fields(example: Any, fields: Sequence[str], number: int) -> tuple[str, tuple[str, ...]]:
    """Return an example's id and the texts of the model's fields. Raises BadRequestError."""
    inputs = example["inputs"]
    for field in fields:
        if not isinstance(inputs.get(field), str):
            problem = "is missing"
            if field in inputs:
                problem = "is no text"
            input_names = ", ".join(sorted(inputs)) or "none"
            raise BadRequestError(
                f"Line {number} of the examples: the field {field!r} {problem}. "
                f"It has: {input_names}."
            )
    return example["id"], tuple(inputs[field] for field in fields)
