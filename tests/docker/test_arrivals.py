"""Images that are submitted: asked five examples, kept, and run only as they were checked."""

import json
from contextlib import closing

import pytest
from django.core.files.base import ContentFile

from evaluation.contract import BASE_IMAGE
from evaluation.heartbeat import skip_beat
from evaluation.isolation.queue.attempt_keys import get_installation_key, make_manual_run_key
from evaluation.isolation.queue.cleanup import remove_all_containers, remove_leftovers
from evaluation.isolation.sandbox.containers import (
    NAME_PREFIX,
    SANDBOX_LABEL,
    list_own_containers,
)
from evaluation.isolation.sandbox.engine import connect_to_engine
from evaluation.isolation.sandbox.images import has_image
from evaluation.isolation.uploads.chunked import add_file
from evaluation.jobs import check_submission
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.endpoints import CannotFetch
from evaluation.runs.runners import open_model
from evaluation.submissions.services import submit_model
from tests.support.factories import TaskFactory, UserFactory
from tests.support.made_sets import make_set

pytestmark = pytest.mark.django_db
ANSWERING = """
import json
for line in open("/input/examples.jsonl"):
    print(json.dumps({"id": json.loads(line)["id"], "output": {"label": "LABEL"}}))
"""


@pytest.fixture
def hand_in(bench, settings, tmp_path):
    """Submit and check an image that always gives the same answer; the engine has it no more."""
    settings.MEDIA_ROOT = tmp_path / "media"
    task, owner = TaskFactory(code="nli"), UserFactory()

    def hand_in(label: str, *instructions: str) -> Submission:
        command = json.dumps(["python3", "-c", ANSWERING.replace("LABEL", label)])
        id = bench.build_image(*instructions, "ENTRYPOINT []", f"CMD {command}")
        data = saved(id)
        upload = add_file(owner, "image.tar", len(data), ContentFile(data))
        submission = submit_model(
            task=task, owner=owner, kind="image", name=f"Always {label}", upload=upload
        )
        check_submission(submission.pk)
        submission.refresh_from_db()
        assert not list_own_containers(get_installation_key())
        return submission

    return hand_in


def saved(id: str) -> bytes:
    with closing(connect_to_engine()) as client:
        data = b"".join(client.images.get(id).save())
        client.images.remove(id, force=True)
    return data


def test_an_image_is_checked_and_comes_back_by_its_id(hand_in):
    submission = hand_in("neutral")
    assert (submission.state, submission.error) == (Submission.State.DONE, "")
    assert submission.digest.startswith("sha256:")
    with closing(connect_to_engine()) as client:
        client.images.remove(submission.digest, force=True)
    with open_model(submission, submission, skip_beat) as (model, _):
        assert model.image == submission.digest
        assert has_image(model.image)


def test_another_image_than_was_checked_is_not_run(hand_in):
    submission, other = hand_in("neutral"), hand_in("contradiction")
    submission.file = other.file
    with closing(connect_to_engine()) as client:
        client.images.remove(submission.digest, force=True)
    with pytest.raises(CannotFetch), open_model(submission, submission, skip_beat):
        pass


def test_an_image_whose_answers_do_not_fit_is_refused(hand_in):
    submission = hand_in("perhaps")
    assert (submission.state, submission.outcome) == (Submission.State.FAILED, "invalid_output")
    assert submission.error.count('"perhaps" is not one of the labels') == 1  # of all five
    assert "lines 2, 3, 4, 5" in submission.error


def test_an_image_with_a_volume_is_refused(hand_in):
    submission = hand_in("neutral", "VOLUME /data")
    assert submission.outcome == "rejected"
    assert "/data" in submission.error


def test_a_site_that_stops_leaves_no_container(bench):
    """Its workers were killed a moment ago, and their leases last on."""
    key = make_manual_run_key()
    with closing(connect_to_engine()) as client:
        client.containers.run(
            BASE_IMAGE,
            ["sleep", "60"],
            name=NAME_PREFIX + key,
            labels={SANDBOX_LABEL: key},
            detach=True,
        )
    remove_leftovers()
    assert [each.key for each in list_own_containers(get_installation_key())] == [key]
    assert remove_all_containers() == 1
    assert not list_own_containers(get_installation_key())


def test_images_leave_the_engine_when_nothing_of_them_is_under_way(hand_in, bench):
    accepted, refused = hand_in("neutral"), hand_in("perhaps")
    run = EvaluationRun.objects.create(submission=accepted, version=make_set(accepted.task, "a"))
    remove_leftovers()
    assert has_image(accepted.digest)
    assert not has_image(refused.digest)
    EvaluationRun.objects.filter(pk=run.pk).update(state="done")
    with closing(connect_to_engine()) as client:
        client.images.get(accepted.digest).tag(f"dynabench-kept:{bench.token}")
        remove_leftovers()
        assert has_image(accepted.digest)  # by a name it is the operator's too
        client.images.remove(f"dynabench-kept:{bench.token}", noprune=True)
    remove_leftovers()
    assert not has_image(accepted.digest)
    with open_model(accepted, accepted, skip_beat) as (model, _):
        assert has_image(model.image)
