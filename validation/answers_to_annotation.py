"""Validation's answers to what annotation asks (`annotation.questions`)."""

from django.db.models import Count, Q, QuerySet

from annotation import questions
from annotation.models import Example
from annotation.questions import Votes
from tasks.models import Round


@questions.are_verified.answer
def are_verified() -> Q:
    """Return the condition that consensus verifies an example."""
    return Q(consensus__is_verified=True)


@questions.are_catches.answer
def are_catches() -> Q:
    """Return the condition that consensus makes an example a validated model error."""
    return Q(consensus__is_validated_error=True)


@questions.are_judged.answer
def are_judged() -> Q:
    """Return the condition that an example has votes."""
    return Q(validations__isnull=False)


@questions.are_sent_back.answer
def are_sent_back() -> Q:
    """Return the condition that an example was sent back to its author."""
    return Q(consensus__is_sent_back=True)


@questions.are_gold.answer
def are_gold() -> Q:
    """Return the condition that an example is a gold item."""
    return Q(gold__isnull=False)


@questions.select_catches_between.answer
def catches_between(
    examples: QuerySet[Example], round: Round, first: int, last: int
) -> QuerySet[Example]:
    """Return the catches from `first` to `last`, in the order of the index `consensus_errors`."""
    # The ends are given for both tables, as PostgreSQL may walk through either.
    catches = examples.filter(consensus__round=round, consensus__pk__gte=first, pk__gte=first)
    return catches.filter(consensus__pk__lte=last, pk__lte=last).order_by("consensus__pk")


@questions.get_return_reason.answer
def reason_of_return(example_id: int) -> str:
    """Return the reason that the reviewer gave in the current decision. One query."""
    overridden_examples = Example.objects.filter(
        pk=example_id,
        retracted_at__isnull=True,
        consensus__is_sent_back=True,
        owner_decisions__withdrawn_at__isnull=True,
    )
    return overridden_examples.values_list("owner_decisions__reason", flat=True).first() or ""


@questions.count_votes.answer
def votes_on(example: Example) -> Votes:
    """Return the number of votes, the consensus and the votes that the round's policy needs."""
    rows = Example.objects.filter(pk=example.pk).annotate(given=Count("validations"))
    numbers = rows.values_list(
        "given",
        "consensus__state",
        "consensus__still_needed",
        "consensus__is_verified",
        "consensus__is_validated_error",
        "round__round_policy__policy__needed",
    )
    return Votes(*numbers.get())


@questions.build_empty_votes.answer
def no_votes_yet(round: Round) -> Votes:
    """Return an empty count with the votes that the round's policy needs."""
    stored = getattr(round, "round_policy", None)
    return Votes(needed=stored.policy["needed"] if stored else None)


@questions.get_votes_relation.answer
def joined_for_votes() -> str:
    """Return the lookup path of the round's policy, for `select_related`."""
    return "round_policy"
