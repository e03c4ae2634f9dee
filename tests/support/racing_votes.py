"""Votes that are cast at the same moment."""

import pytest
from django.db.models import Count, Q

from annotation.models import Example
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from validation.consensus.consensus import Policy, Vote, count_votes_still_needed, decide_by_votes
from validation.models import Consensus, QueueItem, RoundPolicy, Validation

LABELS = ("entailment", "neutral", "contradiction")

POLICIES = (Policy("n-equal", 2), Policy("strict", of=3), Policy("at-least", 4, 7))


@pytest.fixture
def round():
    made = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=made)
    return made


def examples(round, authors, count):
    context = round.contexts.get()
    return Example.objects.bulk_create(
        Example(
            round=round,
            context=context,
            annotator=authors[number % len(authors)],
            inputs={"hypothesis": str(number), "label": "neutral"},
            digest=str(number),
            outcome="fooled",
        )
        for number in range(count)
    )


def check_all():
    """Everything stored follows from the votes, and every place in the queue is accounted for."""
    policy = Policy(**RoundPolicy.objects.get().policy)
    rows = {row.example_id: row for row in Consensus.objects.all()}
    votes: dict[int, list[Vote]] = {}
    for vote in Validation.objects.all():
        votes.setdefault(vote.example_id, []).append(vote.vote)
    assert votes.keys() <= rows.keys()
    for example in Example.objects.prefetch_related("owner_decisions"):
        cast, row = votes.get(example.pk, []), rows.get(example.pk)
        owner = next((d.vote for d in example.owner_decisions.all() if not d.withdrawn_at), None)
        if row is None:
            assert not cast
            assert owner is None
            continue
        decision = decide_by_votes(cast, policy, owner=owner)
        found = (row.state, row.label or None, row.verdict or None, row.votes, row.still_needed)
        needed = count_votes_still_needed(cast, policy, owner=owner)
        assert found == (decision.state, decision.label, decision.verdict, len(cast), needed)
    taken = Count("example__judge_leases", filter=Q(example__judge_leases__takes_place=True))
    for item in QueueItem.objects.annotate(taken=taken):
        assert item.free == item.still_needed - item.taken
        row = rows.get(item.pk)
        assert item.still_needed == (
            row.still_needed if row else count_votes_still_needed([], policy)
        )
