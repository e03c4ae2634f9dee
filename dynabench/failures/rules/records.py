"""Tries against a model, and what a search among them finds. No numpy, which few requests need."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from validation.rates.rates import Rate, Undefined

FAMILY_LEVEL = 0.05
"""The probability that any slice is called clear if there is none, and that an interval misses."""


@dataclass(frozen=True, slots=True)
class Try:
    """A text that people wrote against a model.

    words: its words. values: what is declared of it by name, such as its label.
    """

    key: Hashable
    author: Hashable
    words: frozenset[str]
    is_error: bool
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slice:
    """A group of similar tries.

    words: those that set it apart, in order; empty for a declared value. name, value: the declared
    value; "" for a group of words. error_rate, rest_rate: shares of errors in the second half of
    the authors, in the slice and elsewhere; the interval is corrected for the number of slices.
    p_value: the probability of a difference as clear as this, in any slice, without a weak spot.
    examples: keys of its errors in the second half, the most typical first.
    """

    words: tuple[str, ...]
    name: str
    value: str
    error_rate: Rate | Undefined
    rest_rate: Rate | Undefined
    p_value: float
    examples: tuple[Hashable, ...]

    @property
    def is_clear(self) -> bool:
        """Return whether chance explains the difference in fewer than 5 % of searches."""
        return self.p_value < FAMILY_LEVEL


@dataclass(frozen=True, slots=True)
class SliceSearch:
    """The result of a search. reason: why nothing was searched, or "".

    tries, errors: counts of both halves, without near copies.
    """

    slices: tuple[Slice, ...]
    tries: int
    errors: int
    reason: str = ""
