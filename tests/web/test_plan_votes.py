"""manage.py plan_votes: how many examples people must judge, from what a task has."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from core.accounts.services import get_annotator
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def task():
    return TaskFactory(code="nli")


@pytest.fixture
def with_examples(task):
    """Return the number of examples that the task has."""
    round = RoundFactory(task=task)
    annotator = get_annotator(UserFactory())
    context = ContextFactory(round=round, fields={"premise": "The mill burned down."})
    rows = [
        Example(
            round=round,
            context=context,
            annotator=annotator,
            inputs={"hypothesis": f"Fire {place}."},
            digest=f"{place:032}",
            outcome=Example.Outcome.NOT_FOOLED,
            config_number=1,
        )
        for place in range(400)
    ]
    return len(Example.objects.bulk_create(rows))


def plan(*arguments):
    out = StringIO()
    call_command("plan_votes", *arguments, stdout=out)
    return out.getvalue()


def test_a_judge_saves_votes_and_a_better_one_more(with_examples):
    plans = [
        json.loads(plan("nli", "--width", "0.15", "--correlation", correlation, "--json"))
        for correlation in ("0", "0.6", "0.9")
    ]
    assert {row["examples"] for row in plans} == {with_examples}
    assert plans[0]["with_judge"] == plans[0]["without_judge"]
    assert plans[2]["with_judge"] < plans[1]["with_judge"] < plans[1]["without_judge"]
    # No votes yet, so the share that needs most is planned for.
    assert plans[0]["expected_share"] == 0.5


def test_a_width_that_all_examples_cannot_give_has_no_plan(with_examples):
    assert json.loads(plan("nli", "--width", "0.01", "--json"))["with_judge"] is None
    assert len(plan("nli", "--round", "1", "--width", "0.01").splitlines()) == 13


@pytest.mark.parametrize(
    "arguments",
    [
        ("nli", "--width", "0"),
        ("nli", "--width", "0.1", "--correlation", "2"),
        ("nli", "--width", "0.1"),
        ("none", "--width", "0.1"),
    ],
)
def test_what_cannot_be_planned_is_refused(task, arguments):
    RoundFactory(task=task)
    with pytest.raises(CommandError):
        plan(*arguments)
