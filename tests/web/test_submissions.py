"""Services of submissions: what is taken, what is refused, what is left when one is withdrawn."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connections
from django.utils import timezone
from django_q.models import OrmQ

from core.accounts.services import get_annotator
from core.data.encryption import decrypt
from core.errors import Refused
from dynabench.people.deletion.services import delete_person, purge_deleted
from dynabench.people.export import export_person
from evaluation.contract import SetRow
from evaluation.isolation.queue import leases
from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import EvaluationRun, EvaluationSet, Submission, Upload
from evaluation.submissions import services as submissions
from evaluation.submissions.cards import ModelCard
from evaluation.submissions.services import find_remaining_quota, submit_model
from evaluation.test_sets.services import create_set, make_version
from tasks.models import TargetModel
from tests.support.factories import TaskFactory, UserFactory

State = Submission.State
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = {"kind": "hub", "source": "org/name", "revision": COMMIT}


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def version(task):
    evaluation_set = create_set(task=task, name="open", actor=None, may_leave=True)
    rows = [
        SetRow(f"u{n}", {"premise": f"Premise {n}.", "hypothesis": "So."}, ("entailment",))
        for n in range(6)
    ]
    return make_version(evaluation_set, rows, None)


def hand_in(task, owner, number=1, **told):
    return submit_model(task=task, owner=owner, name=f"Model {number}", **{**HUB, **told})


def put(submission, state=State.DONE, outcome="ok", **columns):
    Submission.objects.filter(pk=submission.pk).update(state=state, outcome=outcome, **columns)
    submission.refresh_from_db()


def uploaded(owner, data=b"abc"):
    return add_file(owner, "model.zip", len(data), ContentFile(data))


def test_a_model_is_queued_for_its_check(task, alice):
    card = ModelCard(description="Mine.", parameters=5)
    submission = hand_in(task, alice, secret="", card=card)
    assert (submission.state, submission.owner, submission.requested_by) == ("queued", alice, alice)
    assert (submission.description, submission.parameters) == ("Mine.", 5)
    assert not submission.is_published
    assert OrmQ.objects.count() == 1


def test_an_endpoint_needs_a_set_that_may_leave_and_its_secret_is_not_readable(task, alice, bob):
    told = {"kind": "endpoint", "source": "https://example.org", "secret": "s3cret"}
    with pytest.raises(Refused) as refused:
        submit_model(task=task, owner=alice, name="Far", **told)
    assert refused.value.field == "kind"
    create_set(task=task, name="open", actor=None, may_leave=True)
    stored = submit_model(task=task, owner=alice, name="Far", **told).secret
    assert "s3cret" not in stored
    assert decrypt(stored) == "s3cret"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"kind": "target"}, "kind"),
        ({"kind": "magic"}, "kind"),
        ({"kind": "directory"}, "upload"),
        ({"revision": "main"}, "revision"),
        ({"name": "  "}, "name"),
    ],
)
def test_what_is_wrong_names_its_field(task, alice, told, field):
    with pytest.raises(Refused) as refused:
        submit_model(task=task, owner=alice, **{"name": "Model", **HUB, **told})
    assert refused.value.field == field
    assert not Submission.objects.exists()


def test_predictions_are_taken_for_open_sets_of_the_task_only(task, alice, version):
    told = {"kind": "predictions", "upload": uploaded(alice), "evaluation_set": version}
    other = TaskFactory(code="qa")
    one = version.evaluation_set
    for changes, where in (
        ({}, other),
        ({"may_leave": False}, task),
        ({"access": EvaluationSet.Access.HIDDEN}, task),
    ):
        EvaluationSet.objects.filter(pk=one.pk).update(may_leave=True, access="scoring")
        EvaluationSet.objects.filter(pk=one.pk).update(**changes)
        version.evaluation_set.refresh_from_db()
        with pytest.raises(Refused) as refused:
            hand_in(where, alice, **told, source="", revision="")
        assert refused.value.field == "evaluation_set"
    EvaluationSet.objects.filter(pk=one.pk).update(may_leave=True, access="scoring")
    version.evaluation_set.refresh_from_db()
    assert hand_in(task, alice, **told, source="", revision="").evaluation_set == version


def test_a_name_is_taken_while_a_model_of_it_stands(task, alice, bob):
    first = hand_in(task, alice)
    with pytest.raises(Refused) as refused:
        hand_in(task, alice)
    assert refused.value.field == "name"
    hand_in(task, bob)  # others may call theirs the same
    put(first, State.FAILED, "rejected")
    hand_in(task, alice)


def test_an_upload_gives_the_same_submission_again_and_nobody_elses(task, alice, bob):
    upload = uploaded(alice)
    told = {"kind": "directory", "upload": upload, "source": "", "revision": ""}
    first = hand_in(task, alice, **told)
    assert hand_in(task, alice, **told) == first
    with pytest.raises(Refused) as refused:
        hand_in(task, bob, **told)
    assert refused.value.field == "upload"
    assert Submission.objects.count() == 1


def test_the_quota_is_of_a_task_a_person_and_a_day(task, alice, bob):
    for number in range(3):
        hand_in(task, alice, number)
    with pytest.raises(Refused, match=r"\b3\b.*\d\d:\d\d") as refused:
        hand_in(task, alice, 4)
    assert refused.value.code == "quota"
    hand_in(task, bob)
    hand_in(TaskFactory(code="qa"), alice)
    yesterday = timezone.now() - timedelta(hours=25)
    Submission.objects.filter(name="Model 0", owner=alice).update(queued_at=yesterday)
    assert find_remaining_quota(alice, task).left == 1


def test_what_the_platform_failed_and_what_never_began_cost_nothing(task, alice):
    first, second, third = (hand_in(task, alice, number) for number in range(3))
    assert find_remaining_quota(alice, task).left == 0
    put(first, State.FAILED, "infrastructure", attempts=3)
    put(second, State.LOST, "infrastructure", attempts=3)
    submissions.cancel_evaluations(submission=third, actor=alice)
    assert find_remaining_quota(alice, task).left == 3
    again = hand_in(task, alice, 4)
    leases.claim_job(Submission, again.pk)
    submissions.cancel_evaluations(submission=again, actor=alice)
    assert find_remaining_quota(alice, task).left == 2


def test_refused_ones_have_a_cap_of_their_own(task, alice):
    for number in range(10):
        put(hand_in(task, alice, number), State.FAILED, "model_error", attempts=1)
    assert find_remaining_quota(alice, task).left == 0
    with pytest.raises(Refused, match=r"\b10\b") as refused:
        hand_in(task, alice, 11)
    assert refused.value.code == "quota"


def test_an_evaluation_that_was_lost_gives_the_quota_back(task, alice, version):
    submission = hand_in(task, alice)
    put(submission, attempts=1)
    run = EvaluationRun.objects.create(submission=submission, version=version)
    assert find_remaining_quota(alice, task).left == 2
    EvaluationRun.objects.filter(pk=run.pk).update(state=State.LOST, outcome="infrastructure")
    assert find_remaining_quota(alice, task).left == 3


def scored(task, alice, version):
    submission = hand_in(task, alice)
    put(submission, attempts=1)
    EvaluationRun.objects.create(
        submission=submission, version=version, state=State.DONE, outcome="ok"
    )
    return submission


def test_only_a_scored_model_is_published(task, alice, version):
    submission = hand_in(task, alice)
    with pytest.raises(Refused):
        submissions.publish_model(submission=submission, actor=alice)
    assert not Submission.objects.get().is_published
    put(submission)
    EvaluationRun.objects.create(
        submission=submission, version=version, state=State.DONE, outcome="ok"
    )
    submissions.publish_model(submission=submission, actor=alice)
    submission.refresh_from_db()
    assert submission.is_published
    submissions.unpublish_model(submission=submission, actor=alice)
    submission.refresh_from_db()
    assert not submission.is_published


def test_names_are_hidden_for_a_year_at_most(task, alice):
    submission, today = hand_in(task, alice), timezone.now().date()
    for until in (today, today + timedelta(days=400)):
        with pytest.raises(Refused):
            submissions.set_anonymous_until(submission=submission, actor=alice, until=until)
    until = today + timedelta(days=30)
    submissions.set_anonymous_until(submission=submission, actor=alice, until=until)
    assert Submission.objects.get().is_anonymous
    submissions.set_anonymous_until(submission=submission, actor=alice, until=None)
    assert not Submission.objects.get().is_anonymous


def test_an_embargoed_model_is_published_on_its_day_once_it_has_a_score(task, alice, version):
    submission, today = hand_in(task, alice), timezone.now().date()
    with pytest.raises(Refused):
        submissions.set_publish_on(submission=submission, actor=alice, day=today)
    tomorrow = today + timedelta(days=1)
    submissions.set_publish_on(submission=submission, actor=alice, day=tomorrow)
    Submission.objects.update(state=State.DONE)
    assert submissions.publish_due_models() == 0
    with time_machine.travel(timezone.now() + timedelta(days=1), tick=False):
        assert submissions.publish_due_models() == 0  # without a score there is nothing to show
        EvaluationRun.objects.create(
            submission=submission, version=version, state=State.DONE, outcome="ok"
        )
        assert submissions.publish_due_models() == 1
        assert submissions.publish_due_models() == 0
    submission.refresh_from_db()
    assert (submission.is_published, submission.publish_on) == (True, None)
    with pytest.raises(Refused):
        submissions.set_publish_on(submission=submission, actor=alice, day=tomorrow)


def test_cancelling_ends_the_check_and_every_run(task, alice, version):
    submission = hand_in(task, alice)
    worker = leases.claim_job(Submission, submission.pk)
    run = EvaluationRun.objects.create(submission=submission, version=version)
    mine = leases.claim_job(EvaluationRun, run.pk)
    assert submissions.cancel_evaluations(submission=submission, actor=alice) == 2
    assert submissions.cancel_evaluations(submission=submission, actor=alice) == 0
    for job in (worker, mine):
        with pytest.raises(leases.LeaseLost):
            leases.finish_job(job)
    assert Submission.objects.get().outcome == "cancelled"


def test_withdrawing_leaves_a_tombstone_and_no_file(
    task, alice, version, django_capture_on_commit_callbacks
):
    submission = scored(task, alice, version)
    upload = uploaded(alice)
    submission.file.save("model.tar", ContentFile(b"weights"))
    run = submission.runs.get()
    run.predictions.save("p", ContentFile(b"answers"))
    Submission.objects.filter(pk=submission.pk).update(
        upload=upload, secret="x", description="Mine", paper_url="https://a.b", is_published=True
    )
    names = [submission.file.name, run.predictions.name, upload.pieces.get().file.name]
    waiting = EvaluationRun.objects.create(submission=submission, version=version, number=2)
    with django_capture_on_commit_callbacks(execute=True):
        submissions.withdraw_model(submission=submission, actor=alice)
    submission.refresh_from_db()
    assert submission.withdrawn_at
    assert submission.is_published  # a link to it says what became of it
    told = [submission.name, submission.source, submission.secret, submission.description]
    assert told == ["withdrawn", "", "", ""]
    assert not submission.file
    assert not Upload.objects.exists()
    assert not any(default_storage.exists(name) for name in names)
    waiting.refresh_from_db()
    assert waiting.state == State.CANCELLED
    with pytest.raises(Refused):
        submissions.withdraw_model(submission=submission, actor=alice)
    with pytest.raises(Refused):
        submissions.update_card(submission=submission, actor=alice, card=ModelCard("Back"))
    assert Submission.objects.get().description == ""


def test_a_card_is_replaced_as_a_whole(task, alice):
    submission = hand_in(task, alice, card=ModelCard(license="MIT", description="Old"))
    submissions.update_card(submission=submission, actor=alice, card=ModelCard(description="New"))
    submission.refresh_from_db()
    assert (submission.description, submission.license) == ("New", "")
    assert json.dumps(vars(ModelCard()))  # plain values, as forms and scripts give them


@pytest.mark.django_db(transaction=True)
def test_twenty_tabs_on_one_quota():
    """The same as in tests/concurrency, on the database that a small installation has."""
    task, owner = TaskFactory(code="nli"), UserFactory()
    barrier = threading.Barrier(20)

    def attempt(number):
        barrier.wait()
        try:
            return hand_in(task, owner, number)
        except Refused:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(attempt, range(20)))
    assert sum(result is not None for result in results) == Submission.objects.count() == 3


def test_who_leaves_takes_their_models_along(
    task, alice, bob, version, django_capture_on_commit_callbacks
):
    mine, theirs = scored(task, alice, version), hand_in(task, bob)
    mine.file.save("model.tar", ContentFile(b"weights"))
    piece = uploaded(alice).pieces.get().file.name
    told = json.loads("".join(export_person(alice, get_annotator(alice))))
    assert [one["name"] for one in told["models"]] == ["Model 1"]
    assert told["uploads"][0]["file_name"] == "model.zip"
    with django_capture_on_commit_callbacks(execute=True):
        delete_person(user=alice)
    mine.refresh_from_db()
    assert (mine.name, mine.owner, bool(mine.withdrawn_at)) == ("withdrawn", None, True)
    assert not default_storage.exists(f"submissions/{mine.pk}/model.tar")
    assert not default_storage.exists(piece)
    theirs.refresh_from_db()
    assert theirs.withdrawn_at is None
    Submission.objects.filter(pk=theirs.pk).update(owner=None)  # as an administrator's deletion
    target = Submission.objects.create(
        task=task, kind="target", name="t", target=TargetModel.objects.create(task=task, name="t")
    )
    purge_deleted()
    theirs.refresh_from_db()
    target.refresh_from_db()
    assert theirs.withdrawn_at
    assert target.withdrawn_at is None
