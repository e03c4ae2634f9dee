"""Names of an attempt: of its containers and folders, by which `cleanup` finds those of the dead.

And of its examples, where somebody else's machine answers them.
"""

import hashlib
import random
import time
import uuid
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.crypto import salted_hmac

from evaluation.isolation.inference.exchange import Sent
from evaluation.models import CustomMetric, EvaluationRun, PracticeRun, Submission

TEMPORARY = "dynabench-run-"
BY_HAND = "hand"  # in place of a run's id: no row tells whether it still runs
KINDS = (EvaluationRun, Submission, PracticeRun, CustomMetric)
"""The jobs that have containers."""
LONG = timedelta(days=1)  # longer than any run
TENTH = 10


def installation() -> str:
    """Tells this installation's containers from others', and from tests', on the same engine."""
    database = connection.settings_dict
    message = f"{settings.SECRET_KEY}/{database['HOST']}/{database['PORT']}/{database['NAME']}"
    return hashlib.sha256(message.encode()).hexdigest()[:8]


def key_of(job: EvaluationRun | Submission | PracticeRun | CustomMetric) -> str:
    """The key of a claimed job's container: of this attempt alone, as its lease is."""
    assert job.lease_token is not None
    return f"{installation()}-{job.pk.hex}-{job.lease_token.hex}"


def key_by_hand() -> str:
    """The key of a container that belongs to no run of ours; it may live for LONG."""
    return f"{installation()}-{BY_HAND}-{int(time.time())}-{uuid.uuid4().hex[:8]}"


def is_needed(key: str) -> bool:
    """Whether the attempt of that key has its lease still."""
    _, run, attempt, *_ = key.split("-")
    if run == BY_HAND:
        return time.time() - int(attempt) < LONG.total_seconds()
    leased = {
        "pk": uuid.UUID(run),
        "state": EvaluationRun.State.RUNNING,
        "lease_token": uuid.UUID(attempt),
        "lease_until__gte": timezone.now(),
    }
    return any(kind._default_manager.filter(**leased).exists() for kind in KINDS)


def tenth_of(lease_token: uuid.UUID, size: int) -> list[bool]:
    """Which of so many examples a second machine is asked about as well; the same at each call.

    The first one, whose lease this is, cannot know them.
    """
    seed = salted_hmac("dynabench.second-worker", lease_token.hex, algorithm="sha256").digest()
    drawn = {*random.Random(seed).sample(range(size), -(-size // TENTH))}
    return [place in drawn for place in range(size)]


def sent_to(lease_token: uuid.UUID, path: Path, size: int = 0) -> Sent:
    """The examples of an attempt on somebody's own machine; the same ids at each call."""
    key = salted_hmac("dynabench.manage-worker", lease_token.hex, algorithm="sha256").digest()[:16]
    return Sent(path, key=key, size=size)
