"""How many queries the API needs for models and data: as many with few rows as with many."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluation.isolation.uploads.chunked import add_file, begin_upload
from evaluation.models import EvaluationRun, Score, Submission
from tasks.models import TaskMember
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import UserFactory
from tests.support.query_counts import check, count
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401

ADDRESSES = {
    "API models": "tasks/nli/models/",
    "API model": "models/{first}/",
    "API my models": "me/models/",
    "API runs": "models/{first}/runs/",
    "API scores": "models/{first}/scores/",
    "API quota": "tasks/nli/quota/",
    "API check inputs": "tasks/nli/check-inputs/",
    "API evaluation sets": "tasks/nli/evaluation-sets/",
    "API evaluation set": "tasks/nli/evaluation-sets/set-0/",
}


def add_models(task, owner, rows, first):
    """Sets, and published models that ran on each of them and wait to run again."""
    TaskMember.objects.get_or_create(task=task, user=owner, role="owner")
    for number in range(first, rows):
        set_version(task, f"set-{number}", may_leave=True)
        accepted_model(task, owner, name=f"m{number}", is_published=True)
    for submission in Submission.objects.filter(task=task):
        for one in task.evaluation_sets.prefetch_related("versions"):
            version = one.versions.all()[0]
            told = {"submission": submission, "version": version, "suite": "plain"}
            if not EvaluationRun.objects.filter(**told).exists():
                now = timezone.now()
                run = queued_run(**told, state="done", outcome="ok", started_at=now,
                                 finished_at=now)  # fmt: skip
                Score.objects.create(run=run, metric="accuracy", value=0.5, n=6)
                queued_run(**told, number=2)


@pytest.mark.parametrize("address", ADDRESSES)
def test_query_count(address, as_alice, alice, nli, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    add_models(nli.task, alice, 1, 0)
    url = f"/api/v1/{ADDRESSES[address]}".format(first=Submission.objects.get().pk)
    few = count(as_alice, url)
    add_models(nli.task, alice, 6, 1)
    assert count(as_alice, url) == few
    check(address, few)


@pytest.mark.parametrize(
    ("address", "url"),
    [("API datasets", "tasks/nli/datasets/"), ("API releases", "tasks/nli/rounds/1/datasets/")],
)
def test_query_count_of_datasets(address, url, client, closed):
    owner, url = UserFactory(), f"/api/v1/{url}"
    TaskMember.objects.create(task=closed.task, user=owner, role="owner")
    client.force_login(owner)
    options = released(closed).options
    few = count(client, url)
    for version in (2, 3):
        made = closed.datasets.create(version=version, state="done", options=options)
        made.files.create(name=f"a-{version}", size=1, sha256="0")
    assert count(client, url) == few
    check(address, few)


def test_query_count_of_uploads(as_alice, alice, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    begin_upload(alice, "a", 10)
    few = count(as_alice, "/api/v1/uploads/")
    for _ in range(3):
        add_file(alice, "a", 2, ContentFile(b"ab"))
    assert count(as_alice, "/api/v1/uploads/") == few
    check("API uploads", few)
