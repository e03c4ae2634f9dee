"""Answers to the questions of `evaluation` about programs in images."""

from collections.abc import Set

from django.db.models import Exists, OuterRef, Q

from dynabench.adversaries.models import AdversaryImage
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.questions import build_kept_uploads_condition, list_program_digests


@build_kept_uploads_condition.answer
def _() -> Q:
    return Q(Exists(AdversaryImage.objects.filter(upload=OuterRef("pk"))))


@list_program_digests.answer
def _(*, is_needed: bool) -> Set[str]:
    images = AdversaryImage.objects.exclude(digest="")
    condition = Q(state__in=UNFINISHED_STATES) | Q(runs__state__in=UNFINISHED_STATES)
    needed_digests = set(images.filter(condition).values_list("digest", flat=True))
    if is_needed:
        return needed_digests
    return set(images.values_list("digest", flat=True)) - needed_digests
