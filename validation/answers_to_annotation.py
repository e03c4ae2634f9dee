"""Validation's answers to what annotation asks (`annotation.questions`)."""

from django.db.models import Count, Q, QuerySet

from annotation import questions
from annotation.models import Example
from annotation.questions import Votes
from tasks.models import Round
from validation.models import Consensus


@questions.build_verified_condition.answer
def build_verified_condition() -> Q:
    """Return the condition that consensus verifies an example."""
    return Q(consensus__is_verified=True)


@questions.build_catch_condition.answer
def build_catch_condition() -> Q:
    """Return the condition that consensus makes an example a validated model error."""
    return Q(consensus__is_validated_error=True)


@questions.build_decided_condition.answer
def build_decided_condition() -> Q:
    """Return the condition that an example has a consensus, or can't get one any more."""
    return Q(consensus__state__in=[Consensus.State.DECIDED, Consensus.State.NO_CONSENSUS])


@questions.build_judged_condition.answer
def build_judged_condition() -> Q:
    """Return the condition that an example has votes."""
    return Q(validations__isnull=False)


@questions.build_sent_back_condition.answer
def build_sent_back_condition() -> Q:
    """Return the condition that an example was sent back to its author."""
    return Q(consensus__is_sent_back=True)


@questions.build_gold_condition.answer
def build_gold_condition() -> Q:
    """Return the condition that an example is a gold item."""
    return Q(gold__isnull=False)


@questions.select_catches_between.answer
def select_catches_between(
    examples: QuerySet[Example], round: Round, first: int, last: int
) -> QuerySet[Example]:
    """Return the catches from `first` to `last`, in the order of the index `consensus_errors`."""
    # Both tables get the limits, because PostgreSQL may scan either of them.
    catches = examples.filter(consensus__round=round, consensus__pk__gte=first, pk__gte=first)
    return catches.filter(consensus__pk__lte=last, pk__lte=last).order_by("consensus__pk")


@questions.get_return_reason.answer
def find_reason_of_return(example_id: int) -> str:
    """Return the reason that the reviewer gave in the current decision. One query."""
    overridden_examples = Example.objects.filter(
        pk=example_id,
        retracted_at__isnull=True,
        consensus__is_sent_back=True,
        owner_decisions__withdrawn_at__isnull=True,
    )
    return overridden_examples.values_list("owner_decisions__reason", flat=True).first() or ""


@questions.count_votes.answer
def count_votes_on(example: Example) -> Votes:
    """Return the number of votes, the consensus and the votes that the round's policy needs."""
    rows = Example.objects.filter(pk=example.pk).annotate(given=Count("validations"))
    votes_row = rows.values_list(
        "given",
        "consensus__state",
        "consensus__still_needed",
        "consensus__is_verified",
        "consensus__is_validated_error",
        "round__round_policy__policy__needed",
    )
    return Votes(*votes_row.get())


@questions.build_empty_votes.answer
def build_empty_votes(round: Round) -> Votes:
    """Return an empty count with the votes that the round's policy needs."""
    policy_row = getattr(round, "round_policy", None)
    return Votes(needed=policy_row.policy["needed"] if policy_row else None)


@questions.get_votes_relation.answer
def get_votes_relation() -> str:
    """Return the lookup path of the round's policy, for `select_related`."""
    return "round_policy"
