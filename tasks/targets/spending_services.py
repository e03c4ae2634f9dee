"""Count the usage of models per round and day, and enforce the budgets of their targets."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F, Q, QuerySet, Sum

from core.days import get_today
from tasks.models import ModelUse, Round, TargetModel, Task
from tasks.targets.circuit_breaker.breaker import TargetNotAsked
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction, Usage, sum_usages

MILLION = 1_000_000
BUDGET_OPTIONS = ["requests_a_day", "requests_a_round", "tokens_a_day", "tokens_a_round"]


class Payer(NamedTuple):
    """The account that a call is charged to: a target, in a round or outside all rounds."""

    target: TargetModel
    round_id: int | None = None


class SpentError(TargetNotAsked):
    """Raised if a target is not called because its budget of calls or tokens is used up."""


def check_budget(payer: Payer) -> None:
    """Raise SpentError if a budget in the target's options is used up. Takes no lock.

    Concurrent calls may exceed it by one each. Without a budget, nothing is queried.
    """
    for error in find_spent_targets([payer.target], payer.round_id).values():
        raise error


def find_spent_targets(
    targets: Iterable[TargetModel], round_id: int | None = None
) -> dict[int, SpentError]:
    """Return the reason why a target may not be called, by target id.

    Targets that may be called are left out. round_id: the round of the call; None outside all
    rounds.
    """
    options_by_target = {}
    for target in targets:
        if not target.options.keys().isdisjoint(BUDGET_OPTIONS):
            options_by_target[target.pk] = target.options
    # Most targets have no budget, and then nothing is read.
    if not options_by_target:
        return {}
    # Days are counted in UTC, as the rows are.
    now = datetime.now(UTC)
    today, round_condition = Q(day=now.date()), Q(round=round_id, round__isnull=False)
    tokens = F("tokens_in") + F("tokens_out")
    usage_rows = (
        ModelUse.objects.filter(target__in=options_by_target)
        .values("target")
        .annotate(
            requests_a_day=Sum("requests", filter=today, default=0),
            requests_a_round=Sum("requests", filter=round_condition, default=0),
            tokens_a_day=Sum(tokens, filter=today, default=0),
            tokens_a_round=Sum(tokens, filter=round_condition, default=0),
        )
    )
    sums: dict[Any, Any] = {row["target"]: row for row in usage_rows}
    errors = {}
    for pk, options in options_by_target.items():
        for name in BUDGET_OPTIONS:  # of several the last one is named: tokens before requests
            if name in options and sums.get(pk, {}).get(name, 0) >= options[name]:
                errors[pk] = _build_spent_error(name, now)
    return errors


def _build_spent_error(name: str, now: datetime) -> SpentError:
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    # Only days begin anew: a round's budget does not come back, however long one waits.
    wait = None
    if name.endswith("day"):
        wait = (midnight - now).total_seconds()
    return SpentError(f"Its {name} is used up.", "busy", is_permanent=True, retry_after=wait)


def note_uses(payers: Iterable[Payer], usages: Iterable[Usage | None]) -> None:
    """Count the usages of calls, each with one update and no lock.

    A usage of None is not counted.
    """
    for payer, usage in zip(payers, usages, strict=True):
        if usage:
            _note_use(payer, usage)


def _note_use(payer: Payer, usage: Usage) -> None:
    row_key: dict[str, Any] = {"target": payer.target, "round_id": payer.round_id}
    # The unique row of the day, whoever creates it.
    row, _ = ModelUse.objects.get_or_create(**row_key, day=get_today())
    # Added in the database, so that calls that end at the same moment are all counted.
    ModelUse.objects.filter(pk=row.pk).update(
        requests=F("requests") + usage.requests,
        tokens_in=F("tokens_in") + usage.tokens_in,
        tokens_out=F("tokens_out") + usage.tokens_out,
        cost=F("cost") + compute_price(payer.target, usage),
    )


def compute_price(target: TargetModel, usage: Usage) -> float:
    """Return the price of calls in whole money, by the prices in the target's options."""
    price_in, price_out = target.options.get("price_in", 0), target.options.get("price_out", 0)
    # Prices are those of a million tokens, as servers publish them.
    return float(usage.tokens_in * price_in + usage.tokens_out * price_out) / MILLION


class MeteredEndpoint:
    """A wrapper of a target's endpoint that checks the budgets and counts each call."""

    def __init__(self, endpoint: Endpoint, payer: Payer) -> None:
        self._endpoint, self._payer, self._thread_id = endpoint, payer, threading.get_ident()
        self.info = endpoint.info

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        """Return the endpoint's predictions. May also raise SpentError.

        Writes the usage to the database, so do not call it in a transaction.
        """
        usage = None
        try:
            check_budget(self._payer)
            predictions = self._endpoint.predict(batch, deadline_seconds=deadline_seconds)
            usage = sum_usages(prediction.usage for prediction in predictions)
        except EndpointError as error:
            usage = error.usage
            raise
        finally:
            note_uses([self._payer], [usage])
            # Django opens a connection for each thread, and closes only those of requests.
            if threading.get_ident() != self._thread_id:  # a thread of a runner's, which ends soon
                connection.close()
        return predictions


def sum_uses_in_round(round: Round) -> list[dict[str, Any]]:
    """Return the usage in a round by target: name, requests, tokens_in, tokens_out, cost."""
    return _sum_by_target(round.model_uses.all())


def sum_uses_outside(task: Task) -> list[dict[str, Any]]:
    """Return the usage by target outside all rounds, for battles, evaluations, judges, tests."""
    return _sum_by_target(ModelUse.objects.filter(target__task=task, round=None))


def _sum_by_target(uses: QuerySet[ModelUse]) -> list[dict[str, Any]]:
    sums = {f"{name}_": Sum(name) for name in ("requests", "tokens_in", "tokens_out", "cost")}
    rows = uses.values(name=F("target__name")).order_by("name").annotate(**sums)
    return [{name.rstrip("_"): value for name, value in row.items()} for row in rows]
