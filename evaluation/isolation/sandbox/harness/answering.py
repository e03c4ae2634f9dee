"""Turn lines of examples into lines of answers."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from serving.backends import Backend
from serving.codecs import Codec, Logits
from serving.errors import BadRequestError, ServingError

from .batches import Example, count_fitting_pieces, make_batches
from .loading import Model


def read_examples(lines: Iterable[bytes], codec: Codec) -> Iterator[Example]:
    """Yield the readable examples with the sizes of their encodings.

    Examples that the model cannot read are skipped and reported on stderr. Encodings are discarded
    and made again for each batch, because storing all of them would exhaust memory. Raises
    BadRequestError, which names the line.
    """
    for number, line in enumerate(lines, 1):
        row = json.loads(line)
        example_id, texts = _read_fields(row, codec.fields, number)
        try:
            sizes = [len(encoding) for encoding in codec.encode(_build_row(codec, texts))]
        except BadRequestError as error:
            print(f"Line {number} is not answered: {error}", file=sys.stderr)
        else:
            yield Example(max(sizes), len(sizes), texts, example_id, row.get("batch", 0))


def iterate_all_answers(lines: Iterable[bytes], model: Model) -> Iterator[bytes]:
    """Yield the answers to all examples, in the fastest order.

    Raises the exceptions of `read_examples` and `answer_batches`.
    """
    examples = list(read_examples(lines, model.codec))
    yield from answer_batches(examples, model.codec, model.backend, workers=model.workers)


def stream_answers(lines: Iterable[bytes], model: Model) -> Iterator[bytes]:
    """Yield the answer to each example as soon as it arrives.

    The output is null if the model cannot read the example. Raises the errors of
    `iterate_all_answers`.
    """
    for line in lines:
        declined_line = json.dumps({"id": json.loads(line)["id"], "output": None}) + "\n"
        yield b"".join(iterate_all_answers([line], model)) or declined_line.encode()


def answer_batches(
    examples: Sequence[Example], codec: Codec, backend: Backend, *, workers: int
) -> Iterator[bytes]:
    """Yield the answers to one batch after another, one line per answer.

    workers: the number of threads that compute them. Raises ServingError if the model fails on a
    batch.
    """
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(
                lambda batch: _answer_batch(batch, codec, backend), make_batches(examples)
            )
        finally:  # the reader may have stopped; do not wait for work that has not started
            pool.shutdown(wait=False, cancel_futures=True)


def _answer_batch(batch: Sequence[Example], codec: Codec, backend: Backend) -> bytes:
    """Return the answers to a batch as lines. Raises ServingError."""
    rows = [_build_row(codec, example.texts) for example in batch]
    encodings_by_row = [codec.encode(row) for row in rows]
    flat_encodings = list(chain.from_iterable(encodings_by_row))
    pieces_per_call = count_fitting_pieces(
        batch[0].size
    )  # a single long example may have more pieces
    logits: list[Logits] = []
    try:
        for start in range(0, len(flat_encodings), pieces_per_call):
            logits += backend.run(flat_encodings[start : start + pieces_per_call])
    except Exception as error:  # any error that a model's configuration may cause
        batch_description = f"{len(batch)} examples of up to {batch[0].size} tokens"
        raise ServingError(
            f"The model failed on {batch_description}: {type(error).__name__}: {error}"
        ) from error
    # Flat like the encodings: each example takes as many as it has pieces.
    remaining_logits = iter(logits)
    lines = []
    for example, row, encodings in zip(batch, rows, encodings_by_row, strict=True):
        answer = codec.decode(row, encodings, [next(remaining_logits) for _ in encodings])
        lines.append(
            json.dumps({"id": example.id, "output": answer.output, "prob": answer.prob}) + "\n"
        )
    return "".join(lines).encode()


def _build_row(codec: Codec, texts: Sequence[str]) -> dict[str, str]:
    return dict(zip(codec.fields, texts, strict=True))


def _read_fields(example: Any, fields: Sequence[str], number: int) -> tuple[str, tuple[str, ...]]:
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
