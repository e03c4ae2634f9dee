"""People who evaluate on machines of their own."""

from datetime import timedelta

from django.utils import timezone

from evaluation.models import EvaluationRun, OwnWorker
from evaluation.submissions.own_workers.selectors import make_host_name
from tests.support.evaluations import accepted_model, queued_run
from tests.support.factories import UserFactory


def fill_own_workers(task, version, number):
    """Somebody who may, whose machines hold one run and have answered another one."""
    user = UserFactory(email=f"w{number}@example.com")
    OwnWorker.objects.create(task=task, user=user, heard_at=timezone.now())
    model = accepted_model(task, user, f"model-{number}")
    now = timezone.now()
    lease = {"state": "running", "lease_token": model.pk, "lease_until": now, "started_at": now}
    EvaluationRun.objects.filter(pk=queued_run(model, version).pk).update(
        host=make_host_name(user, "dyna_held"), **lease
    )
    done = queued_run(model, version, number=2, outcome="invalid_output", state="failed")
    done.handed.create(
        user=user, token="dyna_done", lease_token=model.pk, runner="docker", compared=40,
        ending={"outcome": "ok"}, differed=7, handed_at=now - timedelta(hours=number),
    )  # fmt: skip
