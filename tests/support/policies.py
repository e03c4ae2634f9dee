"""Deciding a round by another policy, as its owners do."""

from dataclasses import asdict

from tasks.models import Round
from validation.decisions.services import derive_round
from validation.models import RoundPolicy
from validation.rules.consensus import Policy


def rederive(*, round: Round, policy: Policy) -> int:
    """Decide the whole round by the policy; returns how many examples changed."""
    RoundPolicy.objects.update_or_create(round=round, defaults={"policy": asdict(policy)})
    return derive_round(round=round)
