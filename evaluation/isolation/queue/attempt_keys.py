"""The keys of attempts, which name containers and folders, so that `cleanup` finds orphans.

If a submitter's own machine answers, the ids of the attempt's examples are also made here.
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

from evaluation.isolation.inference.exchange import SentExamples
from evaluation.isolation.queue.leases import list_job_models
from evaluation.models import Job

TEMPORARY_PREFIX = "dynabench-run-"
MANUAL_RUN = "hand"  # in place of a run's id, because no row says whether it still runs
MAX_RUN_TIME = timedelta(days=1)  # longer than any run
SECOND_WORKER_DIVISOR = 10


def get_installation_key() -> str:
    """Return this installation's key.

    It distinguishes the installation's containers from those of other installations and of tests.
    """
    database = connection.settings_dict
    message = f"{settings.SECRET_KEY}/{database['HOST']}/{database['PORT']}/{database['NAME']}"
    return hashlib.sha256(message.encode()).hexdigest()[:8]


def build_container_key(job: Job) -> str:
    """Return the key of a claimed job's container, which is unique to this attempt."""
    assert job.lease_token is not None  # a claimed job has a lease
    # Without the dashes of a UUID, which separate the parts of a key.
    job_key = str(job.pk).replace("-", "")
    return f"{get_installation_key()}-{job_key}-{job.lease_token.hex}"


def make_manual_run_key() -> str:
    """Return the key of a container that belongs to no job.

    Cleanup removes the container after MAX_RUN_TIME.
    """
    return f"{get_installation_key()}-{MANUAL_RUN}-{int(time.time())}-{uuid.uuid4().hex[:8]}"


def is_attempt_current(key: str) -> bool:
    """Return whether the attempt with this key still has its lease.

    A key of `make_manual_run_key` counts as current for MAX_RUN_TIME.
    """
    run, attempt = key.split("-")[1:3]  # shards and manual keys have more parts
    if run == MANUAL_RUN:
        return time.time() - int(attempt) < MAX_RUN_TIME.total_seconds()
    # A token is unique among all jobs, so the job's own id needs no look.
    lease_conditions = {
        "state": Job.State.RUNNING,
        "lease_token": uuid.UUID(attempt),
        "lease_until__gte": timezone.now(),
    }
    return any(
        job_model._default_manager.filter(**lease_conditions).exists()
        for job_model in list_job_models()
    )


def choose_tenth(lease_token: uuid.UUID, size: int) -> list[bool]:
    """Return for each example whether it is in the tenth that a second machine also answers.

    The choice is the same at each call. The first machine, which has the lease, cannot predict it.
    """
    seed = salted_hmac("dynabench.second-worker", lease_token.hex, algorithm="sha256").digest()
    # Seeded by the lease and the site's secret: constant, but unpredictable for others.
    drawn_positions = set(
        random.Random(seed).sample(range(size), -(-size // SECOND_WORKER_DIVISOR))
    )
    return [position in drawn_positions for position in range(size)]


def build_sent_examples(lease_token: uuid.UUID, path: Path, size: int = 0) -> SentExamples:
    """Return the examples of an attempt on a submitter's own machine.

    Every call with the same lease token gives the same ids. path: the file of the examples. size:
    the number of examples; needed only if the file is not written and only ids are read.
    """
    key = salted_hmac("dynabench.manage-worker", lease_token.hex, algorithm="sha256").digest()[:16]
    return SentExamples(path, key=key, size=size)
