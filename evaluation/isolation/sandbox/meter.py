"""Measure the tokens, price and latency of a run at an endpoint. Pure."""

import threading
from array import array
from collections.abc import Callable
from dataclasses import replace

from evaluation.contract import Ending, Outcome, Usage
from evaluation.isolation.sandbox.limits import LimitExceeded
from evaluation.isolation.sandbox.usage import Latency, compute_latency
from evaluation.scoring.measured import count_seconds
from tasks.targets.endpoints.base import Usage as Tokens
from tasks.targets.endpoints.base import build_misconfigured_error

MILLION = 1_000_000


class Meter:
    """The tokens, cost and latency of one run.

    Any thread may call `record_answer`, only one `pay_for_tokens`.
    price_in, price_out: per million tokens. pay: called with the amount due; returns whether money
    is left under the cap.
    """

    def __init__(
        self,
        price_in: float = 0.0,
        price_out: float = 0.0,
        pay: Callable[[float], bool] = lambda cost: True,
    ) -> None:
        self._prices, self._pay = (price_in, price_out), pay
        self._lock = threading.Lock()
        self._tokens: list[int] | None = None
        self._seconds = array("d")
        self._paid_cost = 0.0

    @property
    def is_paid(self) -> bool:
        """Whether tokens have a price."""
        return any(self._prices)

    def record_answer(self, tokens: Tokens | None, seconds: float | None = None) -> None:
        """Count the tokens of one answer. seconds: its duration, if it had a call of its own.

        Raises EndpointError(misconfigured) if tokens have a price but the server does not count
        them.
        """
        # A usage of 0 tokens means that the server does not count them.
        is_counted = tokens is not None and tokens.tokens_in + tokens.tokens_out > 0
        if self.is_paid and not is_counted:
            raise build_misconfigured_error(
                "The server does not say how many tokens an answer took (`usage`), so its price "
                "is not known and no cap can be held. Submit it without prices."
            )
        with self._lock:
            if seconds is not None:
                # To the millisecond: an endpoint's calls vary by more, and equal times are counted.
                self._seconds.append(round(seconds, 3))
            if tokens is not None and is_counted:
                earlier_tokens = self._tokens or [0, 0]
                self._tokens = [
                    earlier_tokens[0] + tokens.tokens_in,
                    earlier_tokens[1] + tokens.tokens_out,
                ]

    def pay_for_tokens(self) -> None:
        """Pay for the tokens counted since the last call.

        Raises LimitExceeded if the cap is reached.
        """
        with self._lock:  # not during payment, which is a query while other threads record answers
            unpaid_cost = self.compute_cost() - self._paid_cost
            self._paid_cost += unpaid_cost
        if self.is_paid and not self._pay(unpaid_cost):
            raise LimitExceeded(
                Ending(
                    Outcome.OVER_BUDGET,
                    sentence="The cap on what its evaluations may cost is reached.",
                    limit="the cost that its owner allows",
                    measured=f"{self.compute_cost():.4g} in this evaluation",
                )
            )

    def compute_cost(self) -> float:
        """Return the cost of all tokens so far."""
        tokens = self._tokens or (0, 0)
        return sum(n * price for n, price in zip(tokens, self._prices, strict=True)) / MILLION

    def add_to_usage(self, usage: Usage) -> Usage:
        """Return the usage with tokens, cost and latency added."""
        call_latency = Latency(usage.latency_seconds, usage.latency_p95_seconds)
        measurements = usage.measurements
        if self._seconds:
            call_latency = compute_latency(self._seconds)
            measurements = {**(measurements or {}), "single_seconds": count_seconds(self._seconds)}
        tokens_in, tokens_out = self._tokens or (None, None)
        cost = None
        if self._tokens and self.is_paid:
            cost = self.compute_cost()
        return replace(
            usage,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=cost,
            latency_seconds=call_latency.median,
            latency_p95_seconds=call_latency.p95,
            measurements=measurements,
        )
