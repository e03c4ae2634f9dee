"""Has queue workers compare what verified errors mean: a vector for each text in English."""

from functools import partial

from django.core.cache import cache
from django.db.models import QuerySet

from annotation.models import Example
from annotation.rules.near_duplicates import is_comparable, written_text
from annotation.vector_services import keep_vectors
from core.files.bounded import Bounds, bounded
from core.jobs.queue import enqueue
from dynabench.campaigns.findings.coverage import LANGUAGE
from tasks.models import Task

SOME = 500
BOUNDS = Bounds(seconds=300, memory_bytes=4 * 2**30)  # addresses that torch reserves, not memory
RINGS_SECONDS = 300


def ask_for_vectors() -> int:
    """Ring for each task that has a study and texts without vectors; returns how many tasks.

    Where the encoder is not installed there are none.
    """
    try:
        from evaluation.training.sentences import encoder_digest

        digest = encoder_digest()
    except (ImportError, FileNotFoundError):
        return 0
    asked = 0
    for task in Task.objects.filter(campaigns__opened_at__isnull=False).distinct():
        waits = task.config.language == LANGUAGE and _without(task, digest).exists()
        if waits and cache.add(f"campaigns:vectors:{task.pk}", True, RINGS_SECONDS):
            enqueue("dynabench.campaigns.findings.vector_jobs.make_vectors", task.pk)
            asked += 1
    return asked


def make_vectors(task_id: int) -> None:
    """Make vectors for the newest texts that have none of this encoder; may be done twice."""
    from evaluation.training.sentences import embed, encoder_digest

    task, digest = Task.objects.get(pk=task_id), encoder_digest()
    rows = _without(task, digest).order_by("-pk")[:SOME]
    texts = {one.pk: written_text(task.config, one.inputs) for one in rows}
    long = {pk: text for pk, text in texts.items() if is_comparable(text)}
    made = bounded(partial(embed, list(long.values())), BOUNDS) if long else []
    vectors = dict.fromkeys(texts, b"") | dict(zip(long, made, strict=True))
    keep_vectors(encoder=digest, vectors=vectors)


def _without(task: Task, digest: str) -> QuerySet[Example]:
    """The verified errors of a task that the encoder has not looked at."""
    rows = Example.objects.filter(round__task=task, consensus__is_validated_error=True)
    return rows.exclude(digest="").exclude(text_vector__encoder=digest)
