"""Nobody but operators reads where things lie on this server."""

from uuid import uuid4

import pytest
from django.utils import timezone

from core.files.paths import remove_paths, shorten_source
from evaluation.isolation.queue import leases
from evaluation.models import Submission
from evaluation.runs.services import ensure_target_submissions
from tasks.models import TargetModel, TaskMember
from tests.support.factories import TaskFactory
from tests.support.submissions import submission_of, url_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(settings):
    return settings.HOME


@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_a_targets_page_names_its_folder_alone(as_alice, alice, home, role):
    task = TaskFactory(code="nli")
    TaskMember.objects.create(task=task, user=alice, role=role)
    folder = f"{home}/models/starter-nli-1a2b"
    TargetModel.objects.create(task=task, name="starter", source=folder)
    (entered,) = ensure_target_submissions(task)
    for page in (url_of(entered), f"/api/v1/models/{entered.pk}/"):
        text = as_alice.get(page).text
        assert str(home) not in text
        assert ("starter-nli-1a2b" in text) == (role == "owner")
    reply = as_alice.get("/api/v1/tasks/nli/target-models/")
    if role == "viewer":
        assert reply.status_code == 403
    else:
        assert reply.json()["results"][0]["source"] == folder


def test_what_went_wrong_names_no_folder(as_alice, alice, home):
    task = TaskFactory(code="nli")
    lease = {"lease_token": uuid4(), "lease_until": timezone.now() + leases.LEASE_TIME}
    model = submission_of(task, alice, state=Submission.State.RUNNING, **lease)
    said = f"[Errno 28] No space left on device: '{home}/media/models/7/model.safetensors'"
    leases.fail_job(model, said, log=f'File "{home}/x.py", line 3')
    model.refresh_from_db()
    for text in (model.error, model.log, as_alice.get(url_of(model)).text):
        assert str(home) not in text
    assert "…/model.safetensors" in model.error


def test_places_are_left_out_and_addresses_stay(home):
    assert remove_paths(f"cannot read {home}/a/b.txt, /model/code.py") == (
        "cannot read …/b.txt, /model/code.py"
    )
    stays = "https://example.org/a/b.txt, /api/v1/me/ and /srv/elsewhere/b.txt"
    assert remove_paths(stays) == stays
    assert shorten_source("org/model") == "org/model"
    assert shorten_source(f"{home}/models/nli") == "nli"
