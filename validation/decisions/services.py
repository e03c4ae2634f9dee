"""Writes of decisions: a round's policy, and owners' decisions. Locks: docs/locking.md."""

from collections.abc import Collection
from dataclasses import asdict

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from tasks.models import Round
from validation.consensus.consensus import Policy, Vote
from validation.decisions.consensus_rows import (
    derive_consensus_of_all,
    get_policy,
    get_round_policy,
    lock_example,
)
from validation.decisions.second_opinion import store_fitted_model
from validation.models import OwnerDecision, RoundPolicy

# Few enough that votes on these examples wait only briefly.
CHUNK_EXAMPLES = 500
MAX_EXAMPLES_AT_ONCE = 5_000
"""The most examples that are recounted within a request; a worker recounts larger rounds."""


class RoundReleased(Refused):
    """Raised when decisions of a released round would change."""

    code = "released"


class NoDecision(Refused):
    """Raised when an owner cannot decide the example, or there is no decision to withdraw."""

    code = "no_decision"


def change_policy(*, round: Round, owner: User, policy: Policy) -> None:
    """Set the round's policy for new votes; `derive_round` recounts the earlier ones.

    No lock: a vote reads the policy under its example's lock.
    """
    with transaction.atomic():
        # With the sample of the task's file, about which this change says nothing.
        get_round_policy(round)
        RoundPolicy.objects.filter(round=round).update(policy=asdict(policy))
        log(owner, "policy.changed", round, **asdict(policy))


def apply_policy(*, round: Round, owner: User, policy: Policy) -> int | None:
    """Change the policy and recount; return how many examples changed.

    None if the round is large, so that a worker recounts. Takes the locks of `derive_round`. Raises
    RoundReleased.
    """
    # Datasets are published with these decisions.
    if round.state == Round.State.RELEASED:
        raise RoundReleased("This round is released. What was decided in it stays.")
    change_policy(round=round, owner=owner, policy=policy)
    # A large round would take too long for a request.
    if Example.objects.filter(round=round).count() > MAX_EXAMPLES_AT_ONCE:
        enqueue("validation.decisions.services.count_again", round.pk)
        return None
    return derive_round(round=round)


def count_again(round: int) -> None:
    """Recount a large round in a worker. Can safely run twice."""
    derive_round(round=Round.objects.select_related("task").get(pk=round))


def derive_round(*, round: Round) -> int:
    """Recount all votes of the round by its policy; return how many examples changed.

    Locks the examples, a few hundred at a time and in the order of their ids. Each batch reads the
    policy again, so the last of two owners' changes wins. Run it again after a crash. For a
    dawid-skene policy, the model is fitted first.
    """
    # Before any lock, as fitting reads all votes of the round.
    if get_policy(round).rule == "dawid-skene":
        store_fitted_model(round=round)
    changed_count, last_id = 0, 0
    while True:
        with transaction.atomic():
            # Continues after the last id, so that each chunk costs the same.
            rows = Example.objects.filter(round=round, pk__gt=last_id).select_related("round__task")
            # In the order of ids, so that two runs over a round cannot deadlock.
            locked_examples = list(
                rows.select_for_update(of=("self",), no_key=True).order_by("pk")[:CHUNK_EXAMPLES]
            )
            if not locked_examples:
                return changed_count
            changed_count += derive_consensus_of_all(locked_examples)
            last_id = locked_examples[-1].pk


def override_consensus(
    *, example: Example, owner: User, choice: Vote, reason: str = ""
) -> OwnerDecision:
    """Store an owner's decision that overrides all votes; withdraw an earlier one.

    Locks the example. Raises NoDecision if the example is withdrawn.
    """
    with transaction.atomic():
        locked_example = lock_example(example)
        if locked_example.retracted_at is not None:
            raise NoDecision(_("This example has already been withdrawn."))
        # The earlier decision stays as history; a constraint allows only one current decision.
        locked_example.owner_decisions.filter(withdrawn_at__isnull=True).update(
            withdrawn_at=timezone.now()
        )
        decision = OwnerDecision.objects.create(
            example=locked_example,
            owner=owner,
            label=choice.label or "",
            verdict=choice.verdict or "",
            reason=reason,
        )
        derive_consensus_of_all([locked_example])
        log(owner, "consensus.overridden", locked_example, choice=choice.label or choice.verdict)
    return decision


def withdraw_override(*, example: Example, owner: User) -> None:
    """Withdraw an owner's decision, so that the votes decide again.

    Locks the example. Raises NoDecision.
    """
    with transaction.atomic():
        locked_example = lock_example(example)
        latest_decision = locked_example.owner_decisions.filter(withdrawn_at__isnull=True)
        # The lock orders decisions; without a current one, there is nothing to withdraw.
        if not latest_decision.update(withdrawn_at=timezone.now()):
            raise NoDecision(_("No owner has decided this example yet."))
        derive_consensus_of_all([locked_example])
        log(owner, "consensus.override_withdrawn", locked_example)


@transaction.atomic
def delete_votes(*, example: int, validators: Collection[int]) -> int:
    """Delete the votes of these people on an example, and recount; return how many were deleted.

    Use it for votes that these people were not allowed to cast. Examples of a released round are
    not changed. Locks the example.
    """
    votes = Example.objects.select_related("round__task")
    locked_example = lock_example(votes.get(pk=example))
    # Released examples do not change.
    if locked_example.round.state == Round.State.RELEASED:
        return 0
    # Imported votes are history, even where they name one of these people.
    deleted_count, _rows = locked_example.validations.filter(
        validator__in=validators, is_imported=False
    ).delete()
    if deleted_count:
        derive_consensus_of_all([locked_example])
        log(None, "votes.taken-back", locked_example, n=deleted_count)
    return deleted_count
