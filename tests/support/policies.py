"""Deciding a round by another policy, as its owners do."""

from dataclasses import asdict

from tasks.models import Round
from validation.consensus.consensus import Policy
from validation.decisions.services import derive_round
from validation.models import RoundPolicy


def rederive(*, round: Round, policy: Policy) -> int:
    """Decide the whole round by the policy; returns how many examples changed."""
    RoundPolicy.objects.update_or_create(round=round, defaults={"policy": asdict(policy)})
    return derive_round(round=round)
