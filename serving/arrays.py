"""Convert the encodings of a batch to the input arrays of a model."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .codecs import Logits, ModelInput, PictureInput
from .tokens import Filling, ModelTokenizer

Array = NDArray[Any]
Row = TypeVar("Row")
NO_ROW = -1


def build_arrays(batch: Sequence[ModelInput], model_tokenizer: ModelTokenizer) -> dict[str, Array]:
    """Return the model's input arrays for a batch, by name."""
    sizes = [len(encoding) for encoding in batch]
    max_size = max(sizes)
    is_token = np.arange(max_size) < np.array(sizes)[:, None]
    if model_tokenizer.filling == "left":
        is_token = is_token[:, ::-1]
    arrays: dict[str, Array] = {
        "input_ids": np.full(is_token.shape, model_tokenizer.padding_id),
        "attention_mask": is_token.astype(np.int64),
        "token_type_ids": np.zeros(is_token.shape, np.int64),
    }
    for row, encoding in enumerate(batch):
        arrays["input_ids"][row, is_token[row]] = encoding.ids
        arrays["token_type_ids"][row, is_token[row]] = encoding.type_ids
    if model_tokenizer.is_packed:
        arrays |= pack_rows(sizes)
    pixels = [piece.pixels for piece in batch if isinstance(piece, PictureInput)]
    if pixels:
        arrays["pixel_values"] = np.stack(pixels)
    return {name: arrays[name] for name in model_tokenizer.inputs}


def run_in_parts(
    batch: Sequence[ModelInput],
    model_tokenizer: ModelTokenizer,
    run: Callable[[Sequence[ModelInput]], Iterable[Row]],
) -> list[Row]:
    """Return the logits of each encoding, in order.

    run: a function that returns the logits of encodings that may share a batch.
    """
    logits: dict[int, Row] = {}
    for indices in split_batch([len(encoding) for encoding in batch], model_tokenizer.filling):
        rows = run([batch[index] for index in indices])
        logits |= zip(indices, rows, strict=True)
    return [logits[index] for index in range(len(batch))]


def split_batch(sizes: Sequence[int], filling: Filling) -> list[list[int]]:
    """Return groups of indices of the rows that may share a batch.

    filling: with `alone`, each row is a group; with `equal`, the rows of each size form a group.
    Otherwise, all rows form one group.
    """
    indices = list(range(len(sizes)))
    if filling == "alone":
        return [[index] for index in indices]
    if filling != "equal":
        return [indices]
    indices_by_size: dict[int, list[int]] = {}
    for index in indices:
        indices_by_size.setdefault(sizes[index], []).append(index)
    return list(indices_by_size.values())


def pack_rows(sizes: Sequence[int]) -> dict[str, Array]:
    """Arrange the tokens of a batch on lines as wide as its longest row.

    Short rows share a line. Returns `places` [tokens], indices into batch x longest; `spots`
    [tokens], indices into lines x longest; and `owners` [lines, longest], the row of each token on
    the lines, or NO_ROW. Rows are placed by first fit, the longest first, as in Krell et al. 2021
    (arXiv 2107.02027), section 3.
    """
    width = max(sizes)
    free_tokens: list[int] = []  # left on each line
    starts = [0] * len(sizes)
    # First fit fills lines better when long rows come first.
    longest_first = sorted(range(len(sizes)), key=lambda row: -sizes[row])
    for row in longest_first:
        line = _find_first_fit(free_tokens, sizes[row])
        if line == len(free_tokens):
            free_tokens.append(width)
        starts[row] = (line + 1) * width - free_tokens[line]
        free_tokens[line] -= sizes[row]
    # The spots of each row are consecutive, and rows follow each other as in the batch.
    spots = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, sizes, strict=True)])
    rows = np.repeat(np.arange(len(sizes)), sizes)
    owners = np.full(len(free_tokens) * width, NO_ROW)
    owners[spots] = rows
    first_tokens = np.cumsum(sizes) - sizes
    places = np.arange(len(rows)) + (np.arange(len(sizes)) * width - first_tokens)[rows]
    return {"places": places, "spots": spots, "owners": owners.reshape(-1, width)}


def _find_first_fit(free_tokens: Sequence[int], size: int) -> int:
    """Return the index of the first line with room for a row, or the index of a new line."""
    for line, free_count in enumerate(free_tokens):
        if free_count >= size:
            return line
    return len(free_tokens)


def cut_padding(logits: Logits, batch: Sequence[ModelInput], filling: Filling) -> list[Logits]:
    """Return the logits of each encoding, without the columns of padding."""
    if logits.ndim == 2:
        return list(logits)
    width = logits.shape[-1]
    starts = [width - len(encoding) if filling == "left" else 0 for encoding in batch]
    return [
        row[:, start : start + len(encoding)]
        for row, start, encoding in zip(logits, starts, batch, strict=True)
    ]
