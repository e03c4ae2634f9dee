"""Queue jobs that compute vectors of verified errors in English, to compare their meanings."""

from functools import partial

from django.core.cache import cache
from django.db.models import QuerySet

from annotation.models import Example
from annotation.rules.near_duplicates import get_written_text, is_comparable
from annotation.vector_services import store_vectors
from core.files.bounded import Bounds, run_bounded
from core.jobs.queue import enqueue
from core.periodic import register_minutely
from dynabench.campaigns.findings.coverage import ENCODER_LANGUAGE
from tasks.models import Task

MAX_TEXTS = 500
"""The maximum number of texts per job."""
VECTOR_BOUNDS = Bounds(
    seconds=300, memory_bytes=4 * 2**30
)  # addresses that torch reserves, not memory
ENQUEUE_INTERVAL_SECONDS = 300
"""How many seconds pass before another job is enqueued for the same task."""


@register_minutely(
    counts="tasks with new text vectors",
    why="Study findings compare new texts by these vectors.",
)
def enqueue_vector_jobs() -> int:
    """Enqueue a job for each task in English that has had a study and has texts without vectors.

    Each task gets a job at most every ENQUEUE_INTERVAL_SECONDS. Return the number of jobs: 0 if the
    encoder is not installed.
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
            task.config.language == ENCODER_LANGUAGE
            and _select_without_vector(task, digest).exists()
        )
        # `add` succeeds once in a while, so that a minute does not enqueue what already waits.
        if is_waiting and cache.add(f"campaigns:vectors:{task.pk}", True, ENQUEUE_INTERVAL_SECONDS):
            enqueue("dynabench.campaigns.findings.vector_jobs.make_vectors", task.pk)
            job_count += 1
    return job_count


def make_vectors(task_id: int) -> None:
    """Compute vectors for the task's newest MAX_TEXTS texts that have none from this encoder.

    Idempotent.
    """
    from evaluation.training.sentences import compute_encoder_digest, embed_texts

    task, digest = Task.objects.get(pk=task_id), compute_encoder_digest()
    rows = _select_without_vector(task, digest).order_by("-pk")[:MAX_TEXTS]
    texts = {example.pk: get_written_text(task.config, example.inputs) for example in rows}
    # An empty vector says that the encoder has looked at a text too short to compare.
    vectors = dict.fromkeys(texts, b"")
    comparable_texts = {pk: text for pk, text in texts.items() if is_comparable(text)}
    if comparable_texts:
        new_vectors = run_bounded(
            partial(embed_texts, list(comparable_texts.values())), VECTOR_BOUNDS
        )
        vectors |= dict(zip(comparable_texts, new_vectors, strict=True))
    store_vectors(encoder=digest, vectors=vectors)


def _select_without_vector(task: Task, digest: str) -> QuerySet[Example]:
    """Return the task's verified errors that the encoder has not processed."""
    rows = Example.objects.filter(round__task=task, consensus__is_validated_error=True)
    return rows.exclude(digest="").exclude(text_vector__encoder=digest)
