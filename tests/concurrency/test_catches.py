"""Workers that look for first catches at the same time, and authors with two windows."""

import pytest

from annotation.models import Example
from core.accounts.services import get_annotator
from dynabench.catches.models import FirstCatch, SharedCatch
from dynabench.catches.services import share_catch, store_first_catches
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from tests.support.races import races
from tests.support.releases import judge

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


@pytest.fixture
def round(db):
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(3, round=round)
    return round


def catch(round, number):
    example = write(round, UserFactory(), number, label="neutral")
    Example.objects.filter(pk=example.pk).update(goal="neutral", challenge=f"challenge-{number}")
    voters = [get_annotator(UserFactory()) for _ in range(3)]
    judge(Example.objects.get(pk=example.pk), voters, "neutral")
    return Example.objects.select_related("round__task", "annotator").get(pk=example.pk)


def test_a_slice_has_one_first_catch(at_once, round):
    """No lock: the constraint `first_catch_once`, in `store_first_catches`."""
    for number in REPEATS:
        catch(round, number)
        at_once(lambda _worker: store_first_catches(), range(4))
        assert FirstCatch.objects.filter(value=f"challenge-{number}").count() == 1


def test_two_clicks_share_a_catch_once(at_once, round):
    """No lock: the primary key, in `share_catch`."""
    for number in REPEATS:
        example = catch(round, number)

        def share(_click, example=example):
            return share_catch(annotator=example.annotator, example=example).pk

        assert set(at_once(share, range(4))) == {example.pk}
        assert SharedCatch.objects.filter(example=example).count() == 1
