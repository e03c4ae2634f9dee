"""Delete the files of models that have not been used for long. Results are kept."""

from datetime import timedelta

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from core.periodic import register_daily_tidying
from evaluation.kinds import list_kind_names
from evaluation.models import EvaluationRun, PracticeRun, Submission

State = Submission.State


@register_daily_tidying(why="Files of unused models are kept for KEEP_MODELS_DAYS.")
def empty_old_models(max_rows: int) -> int:
    """Delete the files of up to `max_rows` models unused for KEEP_MODELS_DAYS; return how many.

    With 0 days nothing is deleted. Models that adapters are based on keep their files, and so do
    predictions, because people compare them. Takes no lock: each model is changed by a conditional
    update. A run requested at the same moment ends with "The model's files have been deleted."
    """
    if not settings.KEEP_MODELS_DAYS:
        return 0
    oldest_time = timezone.now() - timedelta(days=settings.KEEP_MODELS_DAYS)
    recent = Q(finished_at=None) | Q(finished_at__gte=oldest_time)
    recently_used = Q(submission=OuterRef("pk")) & recent
    bases = Submission.objects.exclude(base="").filter(withdrawn_at=None).values_list("base")
    base_ids = {base for (base,) in bases.distinct()}
    answer_file_kinds = list_kind_names(lambda kind: kind.is_file_of_answers)
    idle_models = Submission.objects.filter(
        ~Exists(EvaluationRun.objects.filter(recently_used)),
        ~Exists(PracticeRun.objects.filter(recently_used)),
        state=State.DONE,
        finished_at__lt=oldest_time,
    ).exclude(Q(file="") | Q(kind__in=answer_file_kinds))
    emptied_count = 0
    for submission in idle_models.order_by("finished_at")[:max_rows]:
        if str(submission.pk) not in base_ids:
            emptied_count += _delete_file(submission)
    return emptied_count


def _delete_file(submission: Submission) -> int:
    """Delete a model's file; return 1, or 0 if the file has changed in the meantime."""
    name = str(submission.file.name)
    with transaction.atomic():
        # On condition of the file's name, because the model may be withdrawn at this moment.
        unchanged_row = Submission.objects.filter(pk=submission.pk, file=name)
        emptied_count = unchanged_row.update(file="", emptied_at=timezone.now())
        if emptied_count:
            transaction.on_commit(lambda: default_storage.delete(name))
    return emptied_count
