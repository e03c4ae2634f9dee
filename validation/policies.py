"""Writes about how a round is decided. Locks: docs/locking.md."""

from dataclasses import asdict

from django.db import transaction

from annotation.models import Example
from dynabench.accounts.models import User
from dynabench.accounts.services import log
from tasks.models import Round
from validation.consensus import Policy
from validation.derive import derive_all, policy_of
from validation.models import Judging
from validation.second_opinion import fit

CHUNK = 500


def change_policy(*, round: Round, owner: User, policy: Policy) -> None:
    """Votes are counted by the policy from now on; `derive_round` counts again what is there.

    No lock: a vote reads the policy under its example's lock.
    """
    with transaction.atomic():
        Judging.objects.update_or_create(round=round, defaults={"policy": asdict(policy)})
        log(owner, "policy.changed", round, **asdict(policy))


def derive_round(*, round: Round) -> int:
    """Count all votes of the round again by its policy; returns how many examples changed.

    Locks the examples, some hundred at a time and in the order of their ids. Each hundred reads the
    policy anew, so of two owners the last one's holds in the end. Run again after a crash. Where
    the policy is dawid-skene, its model is fitted first.
    """
    if policy_of(round).rule == "dawid-skene":
        fit(round=round)
    changed, last = 0, 0
    while True:
        with transaction.atomic():
            rows = Example.objects.filter(round=round, pk__gt=last).select_related("round__task")
            locked = list(rows.select_for_update(of=("self",), no_key=True).order_by("pk")[:CHUNK])
            if not locked:
                return changed
            changed += derive_all(locked)
            last = locked[-1].pk
