"""Has queue workers compare what verified errors mean: a vector for each text in English."""

from functools import partial

from django.core.cache import cache
from django.db.models import QuerySet

from annotation.models import Example
from annotation.rules.near_duplicates import get_written_text, is_comparable
from annotation.vector_services import keep_vectors
from core.files.bounded import Bounds, bounded
from core.jobs.queue import enqueue
from core.periodic import minutely
from dynabench.campaigns.findings.coverage import LANGUAGE
from tasks.models import Task

MAX_TEXTS = 500
"""Texts of one job."""
BOUNDS = Bounds(seconds=300, memory_bytes=4 * 2**30)  # addresses that torch reserves, not memory
RINGS_SECONDS = 300
"""How long a task is not asked for again."""


@minutely(
    counts="tasks whose texts are compared",
    why="Findings of studies compare new texts by their vectors.",
)
def ask_for_vectors() -> int:
    """Enqueue a job for each task with a study and texts without vectors; return the number.

    0 if the encoder is not installed.
    """
    # The encoder is an optional part, which the web process does not load.
    try:
        from evaluation.training.sentences import compute_encoder_digest

        digest = compute_encoder_digest()
    except (ImportError, FileNotFoundError):
        return 0
    job_count = 0
    for task in Task.objects.filter(campaigns__opened_at__isnull=False).distinct():
        is_waiting = (
            task.config.language == LANGUAGE and _select_without_vector(task, digest).exists()
        )
        # `add` succeeds once in a while, so that a minute does not enqueue what already waits.
        if is_waiting and cache.add(f"campaigns:vectors:{task.pk}", True, RINGS_SECONDS):
            enqueue("dynabench.campaigns.findings.vector_jobs.make_vectors", task.pk)
            job_count += 1
    return job_count


def make_vectors(task_id: int) -> None:
    """Compute vectors for the task's newest texts that have none from this encoder.

    Idempotent.
    """
    from evaluation.training.sentences import compute_encoder_digest, embed_texts

    task, digest = Task.objects.get(pk=task_id), compute_encoder_digest()
    rows = _select_without_vector(task, digest).order_by("-pk")[:MAX_TEXTS]
    texts = {example.pk: get_written_text(task.config, example.inputs) for example in rows}
    # An empty vector says that the encoder has looked at a text too short to compare.
    vectors = dict.fromkeys(texts, b"")
    comparable = {pk: text for pk, text in texts.items() if is_comparable(text)}
    if comparable:
        embedded = bounded(partial(embed_texts, list(comparable.values())), BOUNDS)
        vectors |= dict(zip(comparable, embedded, strict=True))
    keep_vectors(encoder=digest, vectors=vectors)


def _select_without_vector(task: Task, digest: str) -> QuerySet[Example]:
    """Return the task's verified errors that the encoder has not processed."""
    rows = Example.objects.filter(round__task=task, consensus__is_validated_error=True)
    return rows.exclude(digest="").exclude(text_vector__encoder=digest)
