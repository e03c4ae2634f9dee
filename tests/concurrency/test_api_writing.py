"""The same request, sent by several connections at once, writes once."""

from functools import partial

import pytest
from rest_framework.test import APIClient

from annotation.context_picking.services import assign
from annotation.models import Attempt, Example
from core.accounts.services import get_annotator
from core.accounts.tokens import create_token
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.judging import write
from validation.judging.services import lease_next
from validation.models import Validation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def round():
    made = RoundFactory(task=TaskFactory(code="nli"))
    made.task.config_text += "\nprograms: {judge: true}\n"
    made.task.save(update_fields=["config_text"])
    ContextFactory.create_batch(20, round=made)
    return made


@pytest.fixture
def program():
    """Somebody, and their token's key."""
    user = UserFactory()
    return user, create_token(user=user, name="tool", scopes=["annotate"], days=1)[1]


def post(url, body, key, once):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_IDEMPOTENCY_KEY=once)
    response = client.post(url, body)
    return response.status_code, response.json().get("error", {}).get("code")


def test_one_key_stores_one_example(round, program, at_once):
    """Constraint: one answer to a key, and one attempt."""
    scripted_target(round, output={"label": "entailment"})
    user, key = program
    for number in range(10):
        assignment = assign(annotator=get_annotator(user), round=round, is_fresh=True)
        url = f"/api/v1/assignments/{assignment.pk}/examples/"
        body = {"inputs": {"hypothesis": f"Nobody saw number {number * 7919} that day."}}
        answers = at_once(partial(post, url, body, key), [f"key-{number}"] * 4)
        assert set(answers) <= {(201, None), (409, "in_progress")}
        assert (201, None) in answers
        assert Attempt.objects.count() == Example.objects.count() == number + 1


def test_one_key_stores_one_vote(round, program, at_once):
    user, key = program
    for number in range(10):
        write(round, UserFactory(), number)
        lease = lease_next(validator=get_annotator(user), task=round.task)
        url = f"/api/v1/examples/{lease.example.uuid}/validations/"
        vote = {"vote": "label:neutral"}
        answers = at_once(partial(post, url, vote, key), [f"key-{number}"] * 4)
        assert set(answers) <= {(201, None), (409, "in_progress")}
        assert Validation.objects.count() == number + 1
