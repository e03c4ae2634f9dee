"""The only module that knows the queue library."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.monitor import save_task
from django_q.signing import BadSignature, SignedPackage
from django_q.tasks import async_task

LONG = "long"
"""The key of messages that wait until no other message does."""
APART = "practice"
"""The key of messages that processes of their own take."""
MOVED = {"dynabench.demo.jobs.fill": "dynabench.operations.demo.jobs.fill"}
"""Functions that messages of the former release name, and where they are now."""
logger = logging.getLogger(__name__)
_is_silent = False


@contextmanager
def silence() -> Iterator[None]:
    """Send no messages from this process within the context, because it runs its jobs itself."""
    global _is_silent
    _is_silent = True
    try:
        yield
    finally:
        _is_silent = False


def enqueue(function: str, *ids: int | UUID) -> None:
    """Have a worker call a function, given as dotted path, with row ids.

    A rollback of the current transaction also removes the message. A message may arrive twice,
    late or never: `function` first claims its row (`leases.claim` of
    `evaluation.isolation.queue`), and `leases.sweep` sends it again for rows that nobody claimed.
    """
    if not _is_silent:
        async_task(function, *ids, cluster=_key(function))


def _key(function: str) -> str | None:
    if function == settings.PRACTICE_JOB:
        return APART
    return LONG if function in settings.LONG_JOBS else None


def is_empty() -> bool:
    """Return whether no message waits for a worker.

    Messages for separate processes do not count.
    """
    return not OrmQ.objects.exclude(key=APART).exists()


def take_message(*, is_apart: bool = False) -> str | None:
    """Return and remove the oldest message, long jobs last; None without one.

    Messages are not acknowledged. is_apart: take only messages for separate processes.
    """
    waiting_messages = OrmQ.objects.filter(lock__lte=timezone.now())
    waiting_messages = (
        waiting_messages.filter(key=APART) if is_apart else waiting_messages.exclude(key=APART)
    )
    waiting_messages = waiting_messages.annotate(is_long=Q(key=LONG)).order_by("is_long", "pk")
    # Several in one read, as other workers take the first ones at the same moment.
    for pk, package in waiting_messages.values_list("pk", "payload")[:10]:
        if OrmQ.objects.filter(pk=pk).delete()[0]:  # else another worker was faster
            return str(package)
    return None


def answer(package: str) -> None:
    """Run a message's function. The result is logged, and stored for the admin."""
    try:
        task = SignedPackage.loads(package)
    except BadSignature:
        logger.error("A message was signed with another SECRET_KEY: it is thrown away")
        return
    name = f"{task['func']}{tuple(map(str, task['args']))}"
    try:
        # Messages outlive an upgrade, and old code may still be sending them.
        function = import_string(MOVED.get(task["func"], task["func"]))
        result, success = function(*task["args"], **task["kwargs"]), True
        logger.info("Done: %s", name)
    # Logged only: the message is gone, and a sweep rings again for a row that waits.
    except Exception:
        result, success = traceback.format_exc(), False
        logger.exception("Failed: %s", name)
    ended = {"result": result, "success": success, "stopped": timezone.now()}
    save_task(task | ended, get_broker())
