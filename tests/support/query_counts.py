"""Counting queries, against the numbers in `query_counts.json`."""

import json
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Example
from core.accounts.services import get_annotator
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory
from tests.support.judging import answered, write
from tests.support.policies import rederive
from tests.support.snapshots import UPDATES
from validation.consensus.consensus import Policy, Vote
from validation.decisions.services import override_consensus, withdraw_override
from validation.models import Validation

KNOWN = Path(__file__).parents[1] / "query_counts.json"


def count(client, url):
    client.get(url)  # sessions and content types are settled
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = client.get(url)
    assert response.status_code == 200
    return len(queries)


def fill(rows, nli, alice, first=0):
    context = nli.contexts.first()
    for number in range(first, rows):
        Example.objects.create(
            round=nli,
            context=context,
            annotator=get_annotator(alice),
            inputs={"hypothesis": str(number)},
            digest=str(number),
            outcome="fooled",
        )
        ContextFactory(round=nli)
        RoundFactory(task=TaskFactory(code=f"more-{number}", config_text=nli.task.config_text))
        RoundFactory(task=nli.task, number=number + 2, state="closed")


def fill_review(rows, round, people, first=0):
    """Judged examples, each with answers, one vote against two, and two decisions."""
    for number in range(first, rows):
        example = write(round, people[number % 2], number)
        answered(example)
        for voter, label in zip(people[2:], ("neutral", "neutral", "entailment"), strict=True):
            Validation.objects.create(example=example, validator=get_annotator(voter), label=label)
        for _ in range(2):
            override_consensus(example=example, owner=people[0], choice=Vote(label="entailment"))
        withdraw_override(example=example, owner=people[0])
    rederive(round=round, policy=Policy("plurality", of=3))


def check(page, found):
    known = json.loads(KNOWN.read_text())
    if UPDATES:
        known[page] = found
        KNOWN.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    hint = f"{page} makes {found} queries. If each is needed, run ./test --update queries."
    assert known.get(page) == found, hint
