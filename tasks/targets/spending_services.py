"""What calls of models cost: counted a round and day, and held to the budgets of their targets."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, Q, Sum

from tasks.models import ModelUse, Round, RoundTarget, TargetModel
from tasks.targets.endpoints.base import Prediction
from tasks.targets.endpoints.live import LeftAlone

MILLION = 1_000_000


class SpentError(LeftAlone):
    """The target's budget of calls or tokens is used up, so it is not asked."""


def check_budget(target: TargetModel, round_id: int) -> None:
    """Raises SpentError when a budget in the target's options is used up; no lock.

    Calls that run at the same moment may go over it, each by one. Without a budget nothing is read.
    """
    options = target.options
    names = [f"{what}_a_{when}" for what in ("requests", "tokens") for when in ("day", "round")]
    if not any(name in options for name in names):
        return
    now = datetime.now(UTC)
    today, here = Q(day=now.date()), Q(round=round_id)
    used = target.uses.aggregate(
        requests_a_day=Sum("requests", filter=today),
        requests_a_round=Sum("requests", filter=here),
        tokens_a_day=Sum(F("tokens_in") + F("tokens_out"), filter=today),
        tokens_a_round=Sum(F("tokens_in") + F("tokens_out"), filter=here),
    )
    for name in names:
        if name in options and (used[name] or 0) >= options[name]:
            midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
            wait = (midnight - now).total_seconds() if name.endswith("day") else None
            raise SpentError(f"Its {name} is used up.", reason="busy", retry_after=wait)


def note_uses(entries: Iterable[RoundTarget], predictions: Iterable[Prediction]) -> None:
    """Count the calls that told their tokens, each with one update and no lock."""
    for entry, prediction in zip(entries, predictions, strict=True):
        if prediction.usage:
            _note(entry, *prediction.usage)


def _note(entry: RoundTarget, tokens_in: int, tokens_out: int) -> None:
    options = entry.target.options
    price_in, price_out = options.get("price_in", 0), options.get("price_out", 0)
    row, _ = ModelUse.objects.get_or_create(
        target=entry.target, round_id=entry.round_id, day=datetime.now(UTC).date()
    )
    ModelUse.objects.filter(pk=row.pk).update(
        requests=F("requests") + 1,
        tokens_in=F("tokens_in") + tokens_in,
        tokens_out=F("tokens_out") + tokens_out,
        cost=F("cost") + (tokens_in * price_in + tokens_out * price_out) / MILLION,
    )


def used_in(round: Round) -> list[dict[str, Any]]:
    """What the round's calls came to, by target: name, requests, tokens_in, tokens_out, cost."""
    sums = {f"{n}_": Sum(n) for n in ("requests", "tokens_in", "tokens_out", "cost")}
    rows = round.model_uses.values(name=F("target__name")).order_by("name").annotate(**sums)
    return [{name.rstrip("_"): value for name, value in row.items()} for row in rows]
