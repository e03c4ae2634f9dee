"""Read what harmful content the people of a campaign were shown, and the cells of its task."""

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Count, F, Q

from annotation.models import Assignment, Report
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.selectors import build_round_filter
from dynabench.studies.rules.coverage import TaskCell, list_cells
from dynabench.studies.rules.exposure import count_exposure
from tasks.models import Context
from validation.models import Validation


def count_harm(campaign: Campaign, example_ids: Sequence[int]) -> dict[int, int]:
    """Return how much harmful content each of the campaign's people was shown, by annotator.

    example_ids: what these people wrote in the campaign. Three queries.
    """
    shown: dict[int, set[int]] = defaultdict(set)
    assignments = Assignment.objects.filter(
        build_round_filter(campaign, "round"),
        annotator__places__campaign=campaign,
        # What a person read before, or for another campaign, is no part of this study.
        assigned_at__gte=F("annotator__places__began_at"),
    )
    for annotator_id, context_id in assignments.values_list("annotator", "context"):
        shown[annotator_id].add(context_id)
    reports = Report.objects.filter(
        build_round_filter(campaign, "context__round"), reason=Report.Reason.HARMFUL
    )
    harmful = set(reports.values_list("context", flat=True))
    flagged = dict(
        Validation.objects.filter(
            example__in=example_ids,
            example__target_outputs__isnull=False,
            flag_reason=Validation.FlagReason.HARMFUL,
        )
        .values_list("example__annotator")
        # Of an example that several judges flag, there is one answer.
        .annotate(n=Count("example", distinct=True))
        .order_by()
    )
    is_warned = campaign.task.config.content_warning is not None
    return {
        annotator_id: count_exposure(
            shown[annotator_id], harmful, flagged.get(annotator_id, 0), is_warned=is_warned
        )
        for annotator_id in {*shown, *flagged}
    }


def read_cells(campaign: Campaign) -> frozenset[TaskCell]:
    """Return the cells of the campaign's task: topics of the texts in use, and challenges."""
    texts = Context.objects.filter(
        Q(is_retired=False), build_round_filter(campaign, "round")
    ).values_list("tag", "digest")
    topics = {tag or digest for tag, digest in texts}
    return list_cells(topics, campaign.task.config.challenges)
