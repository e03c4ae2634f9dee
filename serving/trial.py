"""Finds by trying how rows share a batch: each must get the logits that it gets alone.

Which side to fill, and whether at all, depends on the code of an architecture, on ids in two files
and on windows of attention. So a few texts are asked alone and together: short ones, and one longer
than the model reads, in the first way of filling that agrees.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from .arrays import arrays_of, cut_padding, run_in_parts
from .codecs import Codec, Logits, Piece, codec_for
from .errors import BadRequestError, MisconfiguredError, first_words
from .spec import ModelFolder
from .tokens import Fill, Tokens

if TYPE_CHECKING:
    import torch

TOLERANCE = 1e-3  # of logits, which are of the size of 1 to 10
SIZES = (2, 5, 11)  # vocabulary entries in the short texts
WORK = 10**11
"""Parameters times tokens of the longest row: a second or two on one core."""
LEAST_LONG, MOST_LONG = 16, 1024  # tokens of the longest row
Run = Callable[[Sequence[Piece]], Sequence[Logits]]


@dataclass(frozen=True)
class Trial:
    """Trial rows with the logits that each got alone. batches: indices of rows to run together."""

    rows: Sequence[Piece]
    alone: Sequence[Logits]
    batches: Sequence[Sequence[int]]

    def agrees(self, run: Run) -> bool:
        """Return whether every row gets the same logits in a batch as alone; False on failure."""
        for numbers in self.batches:
            try:
                batch_logits = run([self.rows[number] for number in numbers])
            except Exception:  # whatever the code of an architecture raises that it does not fit
                return False
            alone = [self.alone[number] for number in numbers]
            if not all(map(_is_close, batch_logits, alone)):
                return False
        return True


def torch_run(logits: "torch.nn.Module", tokens: Tokens) -> Run:
    """Return a function that runs a module on encodings, in parts that may share a batch."""
    import torch

    def run_rows(rows: Sequence[Piece]) -> Sequence[Logits]:
        arrays = arrays_of(rows, tokens)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        with torch.inference_mode():
            output = logits(**tensors)
        return cut_padding(output.float().numpy(), rows, tokens.fill)

    return lambda batch: run_in_parts(batch, tokens, run_rows)


def try_alone(name: str, logits: "torch.nn.Module", tokens: Tokens, folder: ModelFolder) -> Trial:
    """Run each trial row alone. Raises MisconfiguredError, which says what to change."""
    _check_weights(name, logits)
    _check_vocabulary(name, logits, tokens)
    limit = min(folder.max_length or tokens.limit, tokens.limit)
    rows = _build_trial_texts(folder, tokens, limit, min(limit, _affordable(logits)))
    if len(rows) < 2:
        raise MisconfiguredError(
            f"{name}: {limit} tokens are too few for its shortest input. Write a greater "
            '"max_length" in dynabench.json, or model_max_length in tokenizer_config.json.'
        )
    run = torch_run(logits, tokens)
    alone = [_alone(name, run, row) for row in rows]
    *short, half, long = range(len(rows))
    return Trial(rows, alone, ([*short, 0], [long, half, 0]))


def choose_filling(name: str, logits: "torch.nn.Module", tokens: Tokens, trial: Trial) -> Tokens:
    """Return the tokens with the fastest filling that agrees with the trial.

    Raises MisconfiguredError if none does.
    """
    ways: Sequence[Fill] = get_args(Fill)
    # The quickest first.
    for fill in ways[2:] if logits.is_stateful else ways:  # it attends by the length of a batch
        filled = replace(tokens, fill=fill)
        if trial.agrees(torch_run(logits, filled)):
            return filled
    raise MisconfiguredError(
        f"{name}: asked the same text twice, the model answers differently, so no score would mean "
        "anything. Make its answers repeatable: no dropout, sampling or random hashing when it "
        "answers."
    )


def _is_close(first: Logits, second: Logits) -> bool:
    if first.shape != second.shape:
        return False
    return np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE)


def _check_weights(name: str, logits: "torch.nn.Module") -> None:
    for place, weight in logits.named_parameters():
        if not weight.isfinite().all():
            raise MisconfiguredError(
                f"{name}: the weights {place.removeprefix('model.')} hold numbers that are NaN or "
                "infinite, so it cannot answer. Training diverged, or a number was too large for "
                "float16: train again with a lower learning rate or in float32, and save the model."
            )


def _check_vocabulary(name: str, logits: "torch.nn.Module", tokens: Tokens) -> None:
    """Raise MisconfiguredError if a word has an id without a row in the embeddings.

    Special tokens may have such an id: some models get them only for padding, and never read them.
    """
    special = {id for id, token in tokens.tokenizer.get_added_tokens_decoder().items()}
    ids = set(tokens.tokenizer.get_vocab().values()) - special
    rows = logits.model.get_input_embeddings().weight.shape[0]
    if ids and max(ids) >= rows:
        raise MisconfiguredError(
            f"{name}: the tokenizer has ids up to {max(ids)}, but the model has {rows} rows of "
            "embeddings. Save the tokenizer that it was trained with, or call "
            "model.resize_token_embeddings(len(tokenizer)) before the training."
        )


def _affordable(logits: "torch.nn.Module") -> int:
    """Return the maximum tokens of the longest row, so that the trial takes limited time."""
    embedded = {id(weight) for weight in logits.model.get_input_embeddings().parameters()}
    weights = [weight for weight in logits.parameters() if id(weight) not in embedded]
    most = WORK // max(1, sum(weight.numel() for weight in weights))
    return int(min(max(most, LEAST_LONG), MOST_LONG))


def _alone(name: str, run: Run, row: Piece) -> Logits:
    try:
        (logits,) = run([row])
    except Exception as error:  # whatever the code of an architecture raises
        raise MisconfiguredError(
            f"{name}: it fails on a text of {len(row)} tokens: {type(error).__name__}: "
            f"{first_words(error)} If shorter texts "
            'work, it has fewer positions than its tokenizer says: write "max_length" in '
            "dynabench.json, or model_max_length in tokenizer_config.json. Otherwise save model "
            "and tokenizer again; model(**tokenizer(text)) must work."
        ) from error
    if not np.isfinite(logits).all():
        raise MisconfiguredError(
            f"{name}: its answer to a text of {len(row)} tokens is no number (NaN or infinite). "
            "Train it again with a lower learning rate or in float32, and try "
            "model(**tokenizer(text)) before you save it."
        )
    return logits


def _build_trial_texts(
    folder: ModelFolder, tokens: Tokens, limit: int, longest: int
) -> list[Piece]:
    """Return a few short texts, followed by one of half of `longest` tokens and one of `longest`.

    Texts that do not fit are omitted.
    """
    # The same texts at each start, so that a model is always judged alike.
    chance = random.Random(0)
    special_ids = {*tokens.tokenizer.get_added_tokens_decoder()}
    # Sorted, so that the same draws give the same texts.
    ids = sorted(set(tokens.tokenizer.get_vocab().values()))
    words = [id for id in ids if id not in special_ids] or ids

    def text(count: int) -> str:
        return tokens.tokenizer.decode(chance.choices(words, k=count)) or "a"

    rows: list[Piece] = []
    sizes = [(count, limit) for count in SIZES]
    sizes += [(longest, longest // 2), (2 * longest, longest)]
    for count, most in sizes:
        codec = codec_for(folder, tokens.tokenizer, most)
        with suppress(BadRequestError):
            rows.append(codec.encode(_inputs(codec, folder, text(count), text(1)))[0])
    return rows


def _inputs(codec: Codec, folder: ModelFolder, long_text: str, short_text: str) -> dict[str, str]:
    """Return the fields of one example. The field that is truncated gets the long text."""
    return {name: long_text if name == codec.cut_field else short_text for name in folder.fields}
