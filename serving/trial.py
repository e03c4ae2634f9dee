"""Find out by trial how rows can share a batch without a change to their logits.

Which side to pad, and whether at all, depends on the architecture's code, on ids in two files and
on attention windows. So a few short texts, and one longer than the model reads, are first run one
by one. Then they are run together, with one way of filling after another, until the logits agree.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from .arrays import build_arrays, cut_padding, run_in_parts
from .codecs import Codec, Logits, ModelInput, choose_codec
from .errors import BadRequestError, MisconfiguredError, get_first_line
from .spec import ModelFolder
from .tokens import Filling, ModelTokenizer

if TYPE_CHECKING:
    import torch

LOGIT_TOLERANCE = 1e-3  # of logits, which are of the size of 1 to 10
TRIAL_WORD_COUNTS = (2, 5, 11)  # vocabulary entries in the short texts
MAX_OPERATIONS = 10**11
"""The limit on parameters times tokens of the longest row, a second or two on one core."""
MIN_LONG_ROW_TOKENS, MAX_LONG_ROW_TOKENS = 16, 1024  # tokens of the longest row
RunFunction = Callable[[Sequence[ModelInput]], Sequence[Logits]]


@dataclass(frozen=True)
class Trial:
    """Rows to try out, with the logits that each row gets by itself.

    batches: groups of indices of rows to run together.
    """

    rows: Sequence[ModelInput]
    solo_logits: Sequence[Logits]
    batches: Sequence[Sequence[int]]

    def is_passed_by(self, run: RunFunction) -> bool:
        """Return whether every row gets the same logits in a batch as by itself.

        False if `run` fails.
        """
        for indices in self.batches:
            try:
                batch_logits = run([self.rows[index] for index in indices])
            except Exception:  # whatever the code of an architecture raises that it does not fit
                return False
            solo_logits = [self.solo_logits[index] for index in indices]
            if not all(map(_is_close, batch_logits, solo_logits)):
                return False
        return True


def build_torch_run(
    logits_module: "torch.nn.Module", model_tokenizer: ModelTokenizer
) -> RunFunction:
    """Return a function that runs a module on encodings, in parts that may share a batch."""
    import torch

    def run_rows(rows: Sequence[ModelInput]) -> Sequence[Logits]:
        arrays = build_arrays(rows, model_tokenizer)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        with torch.inference_mode():
            output = logits_module(**tensors)
        return cut_padding(output.float().numpy(), rows, model_tokenizer.filling)

    return lambda batch: run_in_parts(batch, model_tokenizer, run_rows)


def run_trial(
    name: str,
    logits_module: "torch.nn.Module",
    model_tokenizer: ModelTokenizer,
    folder: ModelFolder,
) -> Trial:
    """Return rows to try out, with the logits that each row gets by itself.

    Raises MisconfiguredError, which says what to change.
    """
    _check_weights(name, logits_module)
    _check_vocabulary(name, logits_module, model_tokenizer)
    limit = min(folder.max_length or model_tokenizer.token_limit, model_tokenizer.token_limit)
    rows = _build_trial_texts(
        folder, model_tokenizer, limit, min(limit, _compute_max_row_tokens(logits_module))
    )
    if len(rows) < 2:
        raise MisconfiguredError(
            f"{name}: {limit} tokens are too few for its shortest input. Write a greater "
            '"max_length" in dynabench.json, or model_max_length in tokenizer_config.json.'
        )
    run = build_torch_run(logits_module, model_tokenizer)
    solo_logits = [_run_alone(name, run, row) for row in rows]
    *short, half, long = range(len(rows))
    return Trial(rows, solo_logits, ([*short, 0], [long, half, 0]))


def choose_filling(
    name: str, logits_module: "torch.nn.Module", model_tokenizer: ModelTokenizer, trial: Trial
) -> ModelTokenizer:
    """Return the tokenizer with the fastest filling that agrees with the trial.

    Raises MisconfiguredError if none agrees.
    """
    fillings: Sequence[Filling] = get_args(Filling)
    # The quickest first.
    if logits_module.is_stateful:  # it attends by the length of a batch
        fillings = fillings[2:]
    for filling in fillings:
        filled_tokenizer = replace(model_tokenizer, filling=filling)
        if trial.is_passed_by(build_torch_run(logits_module, filled_tokenizer)):
            return filled_tokenizer
    raise MisconfiguredError(
        f"{name}: asked the same text twice, the model answers differently, so no score would mean "
        "anything. Make its answers repeatable: no dropout, sampling or random hashing when it "
        "answers."
    )


def _is_close(first: Logits, second: Logits) -> bool:
    if first.shape != second.shape:
        return False
    return np.allclose(first, second, rtol=LOGIT_TOLERANCE, atol=LOGIT_TOLERANCE)


def _check_weights(name: str, logits_module: "torch.nn.Module") -> None:
    for parameter_name, weight in logits_module.named_parameters():
        if not weight.isfinite().all():
            raise MisconfiguredError(
                f"{name}: the weights {parameter_name.removeprefix('model.')} contain NaN or "
                "infinite numbers, so the model cannot answer. Training diverged, or a number "
                "was too large for float16. Train again with a lower learning rate or in "
                "float32, and save the model."
            )


def _check_vocabulary(
    name: str, logits_module: "torch.nn.Module", model_tokenizer: ModelTokenizer
) -> None:
    """Raise MisconfiguredError if a word has an id without a row in the embeddings.

    Special tokens may have such an id: some models have them only for padding, and never read them.
    """
    special_ids = {id for id, token in model_tokenizer.tokenizer.get_added_tokens_decoder().items()}
    ids = set(model_tokenizer.tokenizer.get_vocab().values()) - special_ids
    rows = logits_module.model.get_input_embeddings().weight.shape[0]
    if ids and max(ids) >= rows:
        raise MisconfiguredError(
            f"{name}: the tokenizer has ids up to {max(ids)}, but the model has {rows} rows of "
            "embeddings. Save the tokenizer that it was trained with, or call "
            "model.resize_token_embeddings(len(tokenizer)) before the training."
        )


def _compute_max_row_tokens(logits_module: "torch.nn.Module") -> int:
    """Return how many tokens the longest row may have, so that the trial takes limited time."""
    embedding_ids = {
        id(weight) for weight in logits_module.model.get_input_embeddings().parameters()
    }
    weights = [weight for weight in logits_module.parameters() if id(weight) not in embedding_ids]
    max_tokens = MAX_OPERATIONS // max(1, sum(weight.numel() for weight in weights))
    return int(min(max(max_tokens, MIN_LONG_ROW_TOKENS), MAX_LONG_ROW_TOKENS))


def _run_alone(name: str, run: RunFunction, row: ModelInput) -> Logits:
    try:
        (logits,) = run([row])
    except Exception as error:  # whatever the code of an architecture raises
        raise MisconfiguredError(
            f"{name}: it fails on a text of {len(row)} tokens: {type(error).__name__}: "
            f"{get_first_line(error)} If shorter texts "
            'work, it has fewer positions than its tokenizer says: write "max_length" in '
            "dynabench.json, or model_max_length in tokenizer_config.json. Otherwise save model "
            "and tokenizer again; model(**tokenizer(text)) must work."
        ) from error
    if not np.isfinite(logits).all():
        raise MisconfiguredError(
            f"{name}: its answer to a text of {len(row)} tokens is NaN or infinite. Train it again "
            "with a lower learning rate or in float32, and try model(**tokenizer(text)) before "
            "you save it."
        )
    return logits


def _build_trial_texts(
    folder: ModelFolder, model_tokenizer: ModelTokenizer, limit: int, max_tokens: int
) -> list[ModelInput]:
    """Return encodings of a few short texts, and of texts with half of and all `max_tokens` tokens.

    Texts that do not fit are omitted.
    """
    # The same texts at each start, so that a model is always judged alike.
    rng = random.Random(0)
    special_ids = {*model_tokenizer.tokenizer.get_added_tokens_decoder()}
    # Sorted, so that the same draws give the same texts.
    ids = sorted(set(model_tokenizer.tokenizer.get_vocab().values()))
    words = [id for id in ids if id not in special_ids] or ids

    def build_text(count: int) -> str:
        return model_tokenizer.tokenizer.decode(rng.choices(words, k=count)) or "a"

    rows: list[ModelInput] = []
    sizes = [(count, limit) for count in TRIAL_WORD_COUNTS]
    sizes += [(max_tokens, max_tokens // 2), (2 * max_tokens, max_tokens)]
    for count, row_limit in sizes:
        codec = choose_codec(folder, model_tokenizer.tokenizer, row_limit)
        with suppress(BadRequestError):
            rows.append(
                codec.encode(_build_inputs(codec, folder, build_text(count), build_text(1)))[0]
            )
    return rows


def _build_inputs(
    codec: Codec, folder: ModelFolder, long_text: str, short_text: str
) -> dict[str, str]:
    """Return the fields of one example. Only the field that is truncated gets the long text."""
    return {
        name: long_text if name == codec.truncated_field else short_text for name in folder.fields
    }
