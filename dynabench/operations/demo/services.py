"""Requesting, stopping and deleting the demo from a page."""

from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from dynabench.operations.demo.community import make_task
from dynabench.operations.demo.forget import delete_demo_task
from dynabench.operations.demo.models import DemoRun
from evaluation.isolation.queue import leases
from tasks.models import SIMULATED_TASK_CODE, Task, TaskMember
from tasks.permissions import Person


def may_manage_demo(user: Person) -> bool:
    """Return whether the person may create and delete the demo.

    Administrators and task owners may.
    """
    if not user.is_authenticated:
        return False
    owned_memberships = TaskMember.objects.select_effective().filter(
        user=user, role=TaskMember.Role.OWNER
    )
    return user.is_superuser or owned_memberships.exists()


def can_offer_demo_to(user: Person) -> bool:
    """Return whether to offer the demo: the person may create it, and it does not exist yet."""
    return may_manage_demo(user) and not Task.objects.filter(code=SIMULATED_TASK_CODE).exists()


@transaction.atomic
def request_demo(actor: User | None) -> DemoRun:
    """Create the task and queue the job that fills it.

    Takes no lock: the task's code is unique. Raises Refused.
    """
    task = make_task(actor)
    run = DemoRun.objects.create(task=task, requested_by=actor)
    log(actor, "demo.requested", task)
    enqueue(run.function, run.pk)
    return run


def stop_demo(run: DemoRun, actor: User) -> None:
    """Stop filling the demo, keeping what it has. Takes no lock.

    The process ends within seconds.
    """
    if leases.cancel_job(run):
        log(actor, "demo.stopped", run.task)


def remove_demo(actor: User) -> None:
    """Delete the demo. Raises Refused while a job fills it, or something else needs it."""
    run = DemoRun.objects.filter(task__code=SIMULATED_TASK_CODE).first()
    if run and not run.is_over:
        raise Refused(_("The demo is still being filled. Stop it first."))
    # All or nothing, files last.
    count = delete_demo_task()
    log(actor, "demo.forgotten", "Demo", examples=count)
