"""Writes about how a round is decided. Locks: docs/locking.md."""

from dataclasses import asdict

from django.db import transaction

from annotation.models import Example
from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from dynabench.lib.queue import enqueue
from tasks.models import Round
from validation.decisions.consensus_rows import derive_all, policy_of
from validation.decisions.second_opinion import fit
from validation.models import Judging
from validation.rules.consensus import Policy

CHUNK = 500
AT_ONCE = 5_000
"""Up to so many examples are counted again while the owner waits; more by a worker."""


class RoundReleased(Refused):
    """What was decided is published."""

    code = "released"


def change_policy(*, round: Round, owner: User, policy: Policy) -> None:
    """Votes are counted by the policy from now on; `derive_round` counts again what is there.

    No lock: a vote reads the policy under its example's lock.
    """
    with transaction.atomic():
        Judging.objects.update_or_create(round=round, defaults={"policy": asdict(policy)})
        log(owner, "policy.changed", round, **asdict(policy))


def apply_policy(*, round: Round, owner: User, policy: Policy) -> int | None:
    """Change the policy and count again; returns how many examples changed.

    None: the round is large, so a worker counts. Locks as `derive_round`. Raises RoundReleased.
    """
    if round.state == Round.State.RELEASED:
        raise RoundReleased("This round is released. What was decided in it stays.")
    change_policy(round=round, owner=owner, policy=policy)
    if Example.objects.filter(round=round).count() > AT_ONCE:
        enqueue("validation.decisions.policies.count_again", round.pk)
        return None
    return derive_round(round=round)


def count_again(round: int) -> None:
    """What a worker does for a large round; twice does no harm."""
    derive_round(round=Round.objects.select_related("task").get(pk=round))


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
