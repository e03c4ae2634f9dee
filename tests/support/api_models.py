"""Submitted models, and who may see them by the API."""

import pytest

from evaluation.models import Score, Submission
from tasks.models import TaskMember
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory, UserFactory

COMMIT = "0123456789abcdef0123456789abcdef01234567"

State = Submission.State

ROLES = ("owner", "task owner", "editor", "reviewer", "viewer", "another", "stranger")

INSIDE = ("owner", "task owner", "editor")

TASK_OWNERS = INSIDE[1:]


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def scored(submission, version, value=0.625, **told):
    columns = {"state": State.DONE, "outcome": "ok", "log": "Loading weights", **told}
    run = queued_run(submission, version, usage={"examples_per_second": 51.25}, **columns)
    Score.objects.create(run=run, metric="accuracy", value=value, low=0.1, high=0.9, n=6)
    return run


@pytest.fixture
def model(task, alice):
    """Alice's model, scored on a set whose inputs may leave and on a hidden one."""
    submission = accepted_model(
        task, alice, name="Secret name", source="org/name", revision=COMMIT, outcome="ok",
        digest="d" * 64, description="Made of *seeds*.", paper_url="https://paper.example",
    )  # fmt: skip
    scored(submission, set_version(task, "open", may_leave=True))
    scored(submission, set_version(task, "sealed", access="hidden"), 0.375)
    return submission


def url_of(submission, rest=""):
    return f"/api/v1/models/{submission.pk}/{rest}"


@pytest.fixture
def visit_as(api_of, model):
    """A client of somebody with this role."""

    def visit(role):
        if role in ("owner", "stranger"):
            return api_of(model.owner if role == "owner" else None)
        user = UserFactory()
        if role != "another":
            name = "owner" if role == "task owner" else role
            TaskMember.objects.create(task=model.task, user=user, role=name)
        return api_of(user)

    return visit
