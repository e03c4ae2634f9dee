"""Each lock of withdrawing and releasing, with the race that it prevents."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from annotation.models import Example
from annotation.moderation import withdraw_example
from core.accounts.models import Annotator, LogEntry
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import ReleaseRefused, request_release
from evaluation.dataset_releases.undo_services import UndoRefused, note_download, undo_release
from evaluation.jobs import build_dataset
from evaluation.models import Dataset
from evaluation.training.services import TrainingRefused, request_training
from tasks.models import Round
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.races import races, wait_for
from tests.support.training_data import asked_release
from validation.decisions.bulk_services import Action, ActionRequest, apply_action
from validation.models import OwnerDecision

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


@pytest.fixture
def example():
    round = RoundFactory(task=TaskFactory(code="nli"))
    return Example.objects.create(
        round=round,
        context=ContextFactory(round=round),
        annotator=Annotator.objects.create(),
        inputs={"hypothesis": "It rains.", "label": "neutral"},
        digest="1",
        outcome="not_fooled",
    )


def test_an_example_is_withdrawn_once(example, at_once):
    """Lock: the example; without it several of them find it standing, and the log has several."""
    for _ in REPEATS:
        at_once(lambda n: withdraw_example(example=example, actor=None, reason=str(n)), range(6))
        assert LogEntry.objects.filter(action="example.withdrawn").count() == 1
        LogEntry.objects.all().delete()
        Example.objects.update(retracted_at=None)


def test_two_owners_release_at_once(example, at_once):
    """Lock: the round; without it the second fails with an error of the database."""
    Round.objects.update(state="closed")

    def ask(_):
        try:
            return request_release(round=example.round, options=Options(), actor=None).version
        except ReleaseRefused:
            return None

    for _ in REPEATS:
        assert sorted(at_once(ask, range(4)), key=str) == [1, None, None, None]
        Dataset.objects.all().delete()


def test_two_versions_are_published_at_once(example, at_once):
    """Lock: the round; without it both find it closed, and the second cannot release it again."""
    for _ in REPEATS:
        Round.objects.update(state="closed")
        versions = [asked_release(example.round, rung=False).pk for _ in range(2)]
        at_once(build_dataset, versions)
        assert [*Dataset.objects.values_list("state", flat=True)] == ["done"] * 2
        Dataset.objects.all().delete()


def test_nothing_is_decided_in_a_round_that_is_released_meanwhile(example):
    """Lock: the round, in `apply_action`; without it the round is still closed for who decides."""
    Round.objects.update(state="closed")
    task, actor, wish = example.round.task, UserFactory(), ActionRequest(Action.REJECT, reason="?")

    def decide():
        try:
            return apply_action(task=task, examples=[example.pk], actor=actor, request=wish)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Round.objects.update(state="released")
            done = pool.submit(decide)
            wait_for(1)
        assert [left.code for left in done.result().left] == ["released"]
    assert not OwnerDecision.objects.exists()


def test_a_release_is_downloaded_or_undone_and_never_both(example, at_once):
    """Lock: the dataset; without it an undone release has been downloaded."""

    def act(n):
        try:
            if n:
                return note_download(Dataset.objects.get())
            undo_release(round=example.round, actor=None)
        except (UndoRefused, Dataset.DoesNotExist):
            return False
        return True

    for _ in REPEATS:
        Round.objects.update(state="closed")
        dataset = asked_release(example.round, rung=False)
        build_dataset(dataset.pk)
        is_undone, *were_downloaded = at_once(act, range(4))
        assert is_undone is not any(were_downloaded)
        assert Dataset.objects.exists() is not is_undone
        assert Round.objects.get().state == ("closed" if is_undone else "released")
        Dataset.objects.all().delete()


def test_a_download_waits_for_an_undoing_and_finds_nothing(example):
    """Lock: the dataset; a download that has read the row before must not send its file."""
    Round.objects.update(state="closed")
    build_dataset(asked_release(example.round, rung=False).pk)
    known = Dataset.objects.get()

    def download():
        try:
            return note_download(known)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            undo_release(round=example.round, actor=None)
            noted = pool.submit(download)
            wait_for(1)
        assert not noted.result()


def test_no_training_is_asked_for_of_a_release_that_is_undone(example):
    """Lock: the task; without it a training takes the release that goes."""
    Round.objects.update(state="closed")
    build_dataset(asked_release(example.round, rung=False).pk)

    def train():
        try:
            weights = {"round1": 1.0}
            return request_training(task=example.round.task, actor=None, weights=weights)
        except TrainingRefused:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            undo_release(round=example.round, actor=None)
            asked = pool.submit(train)
            wait_for(1)
        assert asked.result() is None
