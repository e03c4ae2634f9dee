"""Many tabs submit at the same instant: exactly as many models as are allowed."""

from io import BytesIO

import pytest

from core.errors import Refused
from evaluation.isolation.uploads.chunked import add_piece, begin_upload
from evaluation.models import Submission
from evaluation.submissions import services as submissions
from evaluation.submissions.services import submit_model
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def task():
    return TaskFactory(code="nli")


@pytest.fixture
def owner():
    return UserFactory()


def hand_in(task, owner, name, **told):
    told = told or {"kind": "hub", "source": "org/name", "revision": COMMIT}
    try:
        return submit_model(task=task, owner=owner, name=name, **told)
    except Refused as refused:
        return str(refused)


@pytest.mark.parametrize("repeat", range(3))
def test_twenty_tabs_on_one_quota(task, owner, at_once, repeat):
    results = at_once(lambda number: hand_in(task, owner, f"Model {number}"), range(20))
    assert Submission.objects.count() == 3
    assert sum(isinstance(result, Submission) for result in results) == 3
    assert sum(isinstance(result, str) for result in results) == 17


def test_refusals_under_way_do_not_pass_their_cap(task, owner, at_once):
    def fail(number):
        found = hand_in(task, owner, f"Model {number}")
        if isinstance(found, Submission):
            Submission.objects.filter(pk=found.pk).update(
                state="failed", outcome="model_error", attempts=1
            )
        return found

    for start in range(0, 40, 20):
        at_once(fail, range(start, start + 20))
    assert 3 <= Submission.objects.count() <= 10


def test_a_double_click_hands_in_once(task, owner, at_once):
    upload = begin_upload(owner, "model.zip", 3)
    add_piece(upload, 0, BytesIO(b"abc"))
    told = {"kind": "directory", "upload": upload}
    results = at_once(lambda _: hand_in(task, owner, "Model", **told), range(8))
    assert len({result.pk for result in results}) == 1
    assert Submission.objects.count() == 1


def test_a_model_is_withdrawn_once(task, owner, at_once):
    submission = hand_in(task, owner, "Model")

    def withdraw(_):
        try:
            submissions.withdraw_model(submission=submission, actor=owner)
            return True
        except Refused:
            return False

    assert sum(at_once(withdraw, range(8))) == 1
