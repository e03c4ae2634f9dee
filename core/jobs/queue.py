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

LONG_QUEUE = "long"
"""The key of messages that wait until there are no others."""
SLICE_QUEUE = "slices"
"""The key of messages of long jobs in slices, which take turns with other long jobs."""
LONG_KEYS = (LONG_QUEUE, SLICE_QUEUE)
SHORT_QUEUE = "short"
"""What a process takes that is free for short jobs; these have django-q2's default key."""
PRACTICE_QUEUE = "practice"
"""The key of messages that only separate practice processes take."""
NEW_FUNCTION_NAMES = {"dynabench.demo.jobs.fill": "dynabench.operations.demo.jobs.fill"}
"""The new paths of functions that messages from the previous release name."""
logger = logging.getLogger(__name__)
_is_silent = False
# The key of this process's last long job. So a new process begins with a slice.
_last_long_key = LONG_QUEUE


@contextmanager
def silence_queue() -> Iterator[None]:
    """Suppress the messages of this process within the context, if it runs its jobs itself."""
    global _is_silent
    _is_silent = True
    try:
        yield
    finally:
        _is_silent = False


def enqueue(function: str, *ids: int | UUID) -> None:
    """Have a worker call a function with row ids. function: its dotted path.

    If the current transaction is rolled back, the message is not sent. Within `silence_queue` this
    does nothing.

    A message may arrive twice, late or never. So `function` first claims its row (`leases.claim` of
    `evaluation.isolation.queue`), and `leases.sweep` sends it again for rows that nobody claimed.
    """
    if not _is_silent:
        async_task(function, *ids, cluster=_choose_queue(function))


def _choose_queue(function: str) -> str | None:
    if function == settings.PRACTICE_JOB:
        return PRACTICE_QUEUE
    if function in settings.SLICED_JOBS:
        return SLICE_QUEUE
    return LONG_QUEUE if function in settings.LONG_JOBS else None


def is_queue_empty() -> bool:
    """Return whether no message is waiting for a worker.

    Messages for separate practice processes do not count.
    """
    return not OrmQ.objects.exclude(key=PRACTICE_QUEUE).exists()


def take_message(queue: str | None = None) -> str | None:
    """Remove the oldest message and return it, long jobs last; None if there is none.

    After a long job, a process first takes one of the other kind: in slices, or in one piece. Else
    each slice would wait for all evaluations, which can take hours.

    Also returns None if other workers take the oldest ten first. Messages are not acknowledged, so
    one is lost if its process dies.

    queue: SHORT_QUEUE or PRACTICE_QUEUE, to take nothing else. None: both short and long jobs.
    """
    global _last_long_key
    waiting_messages = OrmQ.objects.filter(lock__lte=timezone.now())
    if queue == PRACTICE_QUEUE:
        waiting_messages = waiting_messages.filter(key=PRACTICE_QUEUE)
    elif queue == SHORT_QUEUE:
        waiting_messages = waiting_messages.exclude(key__in=(PRACTICE_QUEUE, *LONG_KEYS))
    else:
        waiting_messages = waiting_messages.exclude(key=PRACTICE_QUEUE)
    waiting_messages = waiting_messages.annotate(
        is_long=Q(key__in=LONG_KEYS), had_last_turn=Q(key=_last_long_key)
    ).order_by("is_long", "had_last_turn", "pk")
    # Several in one read, as other workers take the first ones at the same moment.
    for pk, key, package in waiting_messages.values_list("pk", "key", "payload")[:10]:
        # The database deletes a row once, so this is the claim.
        if OrmQ.objects.filter(pk=pk).delete()[0]:  # else another worker was faster
            if key in LONG_KEYS:
                _last_long_key = key
            return str(package)
    return None


def run_message(package: str) -> None:
    """Run a message's function. Log the result and store it for the admin.

    Errors of the function are logged, not raised. A message signed with another SECRET_KEY is
    dropped.
    """
    try:
        task = SignedPackage.loads(package)
    except BadSignature:
        logger.error("A message was signed with another SECRET_KEY: it is thrown away")
        return
    name = f"{task['func']}{tuple(map(str, task['args']))}"
    try:
        # Messages outlive an upgrade, and old code may still be sending them.
        function = import_string(NEW_FUNCTION_NAMES.get(task["func"], task["func"]))
        result, success = function(*task["args"], **task["kwargs"]), True
        logger.info("Done: %s", name)
    # Logged only: the message is gone, and a sweep rings again for a row that waits.
    except Exception:
        result, success = traceback.format_exc(), False
        logger.exception("Failed: %s", name)
    ending_values = {"result": result, "success": success, "stopped": timezone.now()}
    save_task(task | ending_values, get_broker())
