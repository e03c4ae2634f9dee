"""Choose the next token, and compute the log probabilities of tokens. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Sampling:
    """The sampling parameters of one answer.

    temperature: 0 takes the likeliest token (greedy). top_p: draw only from the likeliest tokens
    that together have this probability. seed: makes draws repeatable. stop: texts that end the
    answer and are not part of it. logprobs: how many of the likeliest tokens are reported for each
    token; None for no report. choices: the possible answers; empty if the answer is free.
    is_end_ignored: whether the model's end token is ignored, for benchmarks of speed.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    choices: tuple[str, ...] = ()
    is_end_ignored: bool = False


def choose_token(logits: Logits, sampling: Sampling, rng: np.random.Generator) -> int:
    """Return the next token, chosen by its logits [vocabulary]. Draws one number unless greedy."""
    if sampling.temperature == 0:
        return int(logits.argmax())
    # The greatest is subtracted so that no power overflows.
    scaled = (logits - logits.max()).astype(np.float64) / sampling.temperature
    likelihoods = np.exp(scaled)
    tokens = np.arange(len(likelihoods))
    # The fewest tokens that together reach top_p, the one that passes it among them.
    if sampling.top_p < 1:
        tokens = np.argsort(-likelihoods, kind="stable")
        sums = likelihoods[tokens].cumsum()
        tokens = tokens[: np.searchsorted(sums, sampling.top_p * sums[-1]) + 1]
    sums = likelihoods[tokens].cumsum()
    position = np.searchsorted(sums, rng.random() * sums[-1], side="right")
    return int(tokens[min(position, len(tokens) - 1)])


def mask_other_tokens(logits: Logits, tokens: Collection[int]) -> Logits:
    """Return the logits with all but these tokens masked, so that only these can be chosen."""
    masked_logits = np.full_like(logits, -np.inf)
    token_indices = list(tokens)
    masked_logits[token_indices] = logits[token_indices]
    return masked_logits


def compute_log_probabilities(logits: Logits) -> NDArray[np.float64]:
    """Return the natural logarithm of the softmax along the last axis."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    sums: Any = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    logarithms: NDArray[np.float64] = shifted - sums
    return logarithms


def find_likeliest_tokens(logarithms: NDArray[np.float64], count: int) -> list[tuple[int, float]]:
    """Return the `count` likeliest tokens at one position with their log probabilities, best first.

    logarithms [vocabulary]: the log probabilities.
    """
    if not count:
        return []
    # Partition first: sorting a whole vocabulary takes far longer.
    top_tokens = np.argpartition(-logarithms, count - 1)[:count]
    return [(int(n), float(logarithms[n])) for n in top_tokens[np.argsort(-logarithms[top_tokens])]]
