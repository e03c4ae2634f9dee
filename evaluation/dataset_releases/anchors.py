"""Which rows serve as anchors of a ruler, and so stay secret."""

from django.db.models import Exists, OuterRef, Q

from evaluation.models import EvaluationSet, EvaluationSetVersion, RulerAnchor, RulerLink
from tasks.models import Round


def has_serving_anchors(evaluation_set: EvaluationSet) -> bool:
    """Return whether rows of the set are anchors of a ruler that isn't retired."""
    return _serve(Q(version__evaluation_set=evaluation_set.pk))


def holds_serving_anchors(round: Round) -> bool:
    """Return whether rows that the round's release holds back are anchors of a serving ruler."""
    return _serve(Q(version__evaluation_set__held_of=round.pk))


def count_expected_numbers(version: EvaluationSetVersion) -> int:
    """Return how many numbers a ruler shows that depend on a model's answers to this set.

    0 unless the set has anchors: one for each linked set, and their mean. One query.
    """
    anchors = RulerAnchor.objects.filter(
        version__evaluation_set=version.evaluation_set_id, ruler=OuterRef("ruler")
    )
    links = RulerLink.objects.filter(
        Exists(anchors), ruler__task=version.evaluation_set.task_id, ruler__retired_at=None
    )
    link_count = links.count()
    return link_count + 1 if link_count else 0


def _serve(condition: Q) -> bool:
    return RulerAnchor.objects.filter(condition, ruler__retired_at=None).exists()
