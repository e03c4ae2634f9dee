"""Machines of others that take and end leases at the same instant."""

from io import BytesIO

import pytest
from django.core.files.base import ContentFile

from core.errors import Refused
from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import EvaluationRun, HandedAnswers, OwnWorker
from evaluation.submissions.own_workers.selectors import find_leased_run
from evaluation.submissions.own_workers.services import add_worker, lease_run, submit_answers
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_is_leased_and_handed_in_once(at_once, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    task, user = TaskFactory(code="nli"), UserFactory()

    def add(number):
        try:
            return add_worker(task=task, user=user, takes_sealed=True, actor=user)
        except Refused as refused:
            return refused.code

    said = at_once(add, range(3))
    assert said.count("exists") == 2
    worker = OwnWorker.objects.get()
    model = accepted_model(task, user)
    model.file.save("model.tar", ContentFile(b"weights"))
    run = queued_run(model, set_version(task, may_leave=True))
    leases = at_once(lambda number: lease_run(workers=[worker], key=""), range(4))
    (held,) = filter(None, leases)
    assert held.pk == run.pk
    files = [add_file(user, f"{n}.jsonl", 2, BytesIO(b"{}")) for n in range(3)]
    ending = {"outcome": "ok", "sentence": "", "usage": {}}

    def end(file):
        mine = find_leased_run(user, held.lease_token)
        if mine is None:
            return "gone"
        try:
            submit_answers(run=mine, user=user, upload=file.pk, runner="docker", ending=ending)
        except Refused as refused:
            return refused.code
        return "taken"

    said = at_once(end, files)
    assert said.count("taken") == HandedAnswers.objects.count() == 1
    run.refresh_from_db()
    assert run.state == EvaluationRun.State.QUEUED
