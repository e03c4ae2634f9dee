"""The owner is told of examples that none of the task's judges may judge."""

import pytest

from annotation.models import Example, ShownExample
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from validation.judging.services import fill_queue
from validation.judging.short_of_judges import compute_shortage
from validation.models import Skip, Validation


@pytest.fixture
def judges(nli):
    """Three members who may judge a task that only members see; three votes decide."""
    nli.task.is_visible = False
    nli.task.save()
    people = UserFactory.create_batch(3)
    for person in people:
        TaskMember.objects.create(task=nli.task, user=person, role="judge")
    return [person.annotator for person in people]


def written(nli, author, digest):
    return Example.objects.create(
        round=nli,
        context=nli.contexts.first(),
        annotator=author,
        inputs={"hypothesis": digest, "label": "neutral"},
        digest=digest,
        outcome="fooled",
    )


def test_what_judges_wrote_judged_skipped_or_saw_needs_others(client, nli, judges, alice):
    one, two, _ = judges
    written(nli, UserFactory().annotator, "by somebody else")
    assert compute_shortage(nli) == (0, 0)  # it is not in the queue yet
    fill_queue(round=nli)
    assert compute_shortage(nli) == (0, 0)
    example = written(nli, one, "by a judge")
    fill_queue(round=nli)
    assert compute_shortage(nli) == (1, 1)
    ShownExample.objects.create(example=example, annotator=two, way="role")
    Skip.objects.create(example=example, validator=two)
    assert compute_shortage(nli) == (1, 2)
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client.force_login(alice)
    assert client.get("/own/nli/").context["shortage"] == (1, 2)
    assert "1" in client.get("/own/nli/rounds/1/close/").context["effect"]
    Validation.objects.create(example=example, validator=judges[2], author=one, label="neutral")
    assert compute_shortage(nli).judge_count == 3
    TaskMember.objects.filter(user=alice).update(is_blind=True)
    assert compute_shortage(nli).judge_count == 2
    nli.task.is_visible = True
    assert compute_shortage(nli) == (0, 0)
