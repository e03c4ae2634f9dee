"""Read rulers: which serves, which sets it takes anchors from, and which models lack answers."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Ruler,
    RulerLink,
    Submission,
)
from evaluation.runs.selectors import filter_counting_runs, find_accepted_models
from evaluation.runs.services import choose_suites
from evaluation.test_sets.items import MAX_ITEMS
from evaluation.test_sets.selectors import read_input_rows, select_newest_versions
from tasks.models import Task

Access, Source = EvaluationSet.Access, EvaluationSet.Source
Suite = EvaluationRun.Suite
IS_SOURCE = Q(evaluation_set__source__in=(Source.CONTROL, Source.HELD))
"""The condition for versions of sets that give anchors."""


@dataclass(frozen=True)
class LackingModel:
    """A model that isn't on the ruler yet. missing: the names of the sets that it must answer.

    can_request: whether runs can be requested. Otherwise the set's inputs may not leave this site,
    or the model has no files any more, or its evaluation has failed or is waiting.
    """

    model: Submission
    missing: Sequence[str]
    can_request: bool


@dataclass(frozen=True)
class LinkState:
    """A set, and whether scores on it can be expected.

    model_count: how many models on the ruler have run it. link: None before it is linked.
    """

    version: EvaluationSetVersion
    model_count: int
    link: RulerLink | None

    @property
    def is_linked(self) -> bool:
        """Return whether scores on the set are expected from the anchors."""
        return self.link is not None and self.link.item_error is not None


def find_ruler(task: Task) -> Ruler | None:
    """Return the task's ruler that isn't retired, also if its anchors are not chosen yet."""
    return task.rulers.filter(retired_at=None).first()


def select_source_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """Select the newest versions of the sets that give anchors, in a fixed order.

    Hidden sets are left out: what people see of a ruler would tell of them.
    """
    versions = select_newest_versions(task).filter(IS_SOURCE, size__lte=MAX_ITEMS)
    versions = versions.exclude(evaluation_set__access=Access.HIDDEN)
    return versions.order_by("evaluation_set__name")


def select_anchor_versions(ruler: Ruler) -> QuerySet[EvaluationSetVersion]:
    """Select the newest versions of the sets from which the ruler has its anchors."""
    sets = ruler.anchors.values("version__evaluation_set")
    versions = select_newest_versions(ruler.task).filter(evaluation_set__in=sets)
    return versions.order_by("evaluation_set__name")


def select_link_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """Select the newest versions of the sets on which scores are expected: rounds and uploads.

    Hidden sets are left out for the same reason.
    """
    versions = select_newest_versions(task).exclude(IS_SOURCE).filter(size__lte=MAX_ITEMS)
    versions = versions.exclude(evaluation_set__access=Access.HIDDEN)
    return versions.order_by("made_at", "pk")


def find_complete_models(versions: Collection[EvaluationSetVersion]) -> list[UUID]:
    """Return the ids of the models with a counting run on each of these versions. One query."""
    runs = EvaluationRun.objects.filter(
        version__in=versions, suite=Suite.PLAIN, submission__withdrawn_at=None
    ).exclude(predictions="")
    # The default order would be part of the grouping.
    counts = filter_counting_runs(runs).order_by().values("submission")
    counts = counts.annotate(n=Count("version", distinct=True)).filter(n=len(versions))
    return list(counts.values_list("submission", flat=True))


def list_links(ruler: Ruler) -> list[LinkState]:
    """Return the state of each set on which scores can be expected. Three queries."""
    versions = list(select_link_versions(ruler.task))
    links = {link.version_id: link for link in ruler.links.defer("fit")}
    # Only models on the ruler can teach what the anchors say about a set.
    runs = EvaluationRun.objects.filter(
        version__in=versions,
        suite=Suite.PLAIN,
        submission__in=ruler.standings.values("submission"),
    )
    counts = filter_counting_runs(runs).order_by().values_list("version")
    model_counts = dict(counts.annotate(n=Count("submission", distinct=True)))
    return [
        LinkState(version, model_counts.get(version.pk, 0), links.get(version.pk))
        for version in versions
    ]


def list_lacking_models(ruler: Ruler) -> list[LackingModel]:
    """Return the accepted models that have no answers to the anchors. Four queries."""
    versions = list(select_anchor_versions(ruler))
    models = find_accepted_models(ruler.task).exclude(pk__in=ruler.standings.values("submission"))
    runs = EvaluationRun.objects.filter(
        version__in=versions, suite=Suite.PLAIN, submission__in=models.values("pk")
    )
    requested, answered = defaultdict(set), defaultdict(set)
    for model_id, version_id, outcome in runs.values_list("submission", "version", "outcome"):
        requested[model_id].add(version_id)
        # A run that waits or failed needs no second request, but its answers are still missing.
        if outcome == "ok":
            answered[model_id].add(version_id)
    lacking = []
    for model in models.order_by("name", "pk"):
        missing = [version for version in versions if version.pk not in answered[model.pk]]
        # Without its files nothing can run any more.
        can_request = not model.emptied_at and any(
            version.pk not in requested[model.pk] and choose_suites(model, version)
            for version in missing
        )
        names = [version.evaluation_set.name for version in missing]
        lacking.append(LackingModel(model, names, can_request))
    return lacking


def list_withdrawn_anchors(ruler: Ruler) -> list[str]:
    """Return the uids of anchors that the newest versions of their sets no longer have.

    No new model can be placed without them. Reads the inputs of these sets.
    """
    pinned = set(ruler.anchors.values_list("version", flat=True))
    uids: dict[int, set[str]] = {}
    # A set without a newer version still has all of its rows, so its file isn't opened.
    for version in select_anchor_versions(ruler):
        if version.pk not in pinned:
            rows = {row["uid"] for row in read_input_rows(version)}
            uids[version.evaluation_set_id] = rows
    if not uids:
        return []
    anchors = ruler.anchors.filter(version__evaluation_set__in=uids)
    pairs = anchors.values_list("version__evaluation_set", "uid")
    return [uid for set_id, uid in pairs if uid not in uids[set_id]]
