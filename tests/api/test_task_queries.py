"""How many queries the API needs for tasks, rounds and contexts: as many with few rows as many."""

import pytest

from tasks.models import ContextBatch, TaskMember
from tests.support.factories import UserFactory, scripted_target
from tests.support.query_counts import check, count, fill

ADDRESSES = {
    "API tasks": "tasks/",
    "API task": "tasks/nli/",
    "API config": "tasks/nli/config/",
    "API targets": "tasks/nli/targets/",
    "API rounds": "tasks/nli/rounds/",
    "API round": "tasks/nli/rounds/1/",
    "API contexts": "tasks/nli/rounds/1/contexts/",
    "API context batches": "tasks/nli/rounds/1/context-batches/",
    "API members": "tasks/nli/members/",
    "API target models": "tasks/nli/target-models/",
    "API statistics": "tasks/nli/statistics/",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_query_count(address, as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")

    def add(rows, first):
        fill(rows, nli, alice, first)
        for number in range(first, rows):
            ContextBatch.objects.create(round=nli, file_name=f"{number}.jsonl")
            TaskMember.objects.create(task=nli.task, user=UserFactory(), role="viewer")
            for round in nli.task.rounds.all():
                scripted_target(round, name=f"target-{number}-{round.number}")
                round.parents.set(nli.task.rounds.exclude(pk=round.pk))

    url = f"/api/v1/{ADDRESSES[address]}"
    add(1, 0)
    few = count(as_alice, url)
    add(6, 1)
    assert count(as_alice, url) == few
    check(address, few)
