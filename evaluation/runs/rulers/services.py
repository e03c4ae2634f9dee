"""Request a ruler, choose its anchors, retire it, and request the runs that it lacks."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Max, Sum
from django.utils import timezone
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.contract import ImpossibleJob, NotNow
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.models import (
    Dataset,
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Ruler,
    RulerAnchor,
    Submission,
)
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.runs.rulers.selectors import (
    find_complete_models,
    find_ruler,
    list_lacking_models,
    select_source_versions,
)
from evaluation.runs.services import request_runs
from evaluation.test_sets.items import MIN_MODELS
from tasks.models import Round, Task

MIN_ANCHORS, MAX_ANCHORS = 10, 500
DEFAULT_ANCHORS = 100


@transaction.atomic
def request_ruler(
    *, task: Task, actor: User, anchors: int = DEFAULT_ANCHORS, seed: int = 1
) -> Ruler:
    """Store a new version of a task's ruler; a worker chooses its anchors. Locks the task.

    anchors: how many, from MIN_ANCHORS to MAX_ANCHORS. seed: draws half of them.

    Raises Refused if a ruler serves, or if there are too few models or examples.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    serving_ruler = find_ruler(task)
    # A ruler whose anchors could not be chosen serves nobody, so the next one replaces it.
    if serving_ruler and serving_ruler.is_over and serving_ruler.state != Ruler.State.DONE:
        _end_service(serving_ruler, actor)
    elif serving_ruler:
        raise Refused(gettext("This task has a ruler. Retire it first."))
    _check_sources(task, anchors)
    # Retired rulers keep their numbers, because papers may cite them.
    newest = task.rulers.aggregate(newest=Max("version"))["newest"] or 0
    ruler = Ruler.objects.create(
        task=task, version=newest + 1, anchor_count=anchors, seed=seed, requested_by=actor
    )
    log(actor, "ruler.requested", ruler, anchors=anchors, seed=seed)
    # Sent when the transaction ends, so the worker finds the row.
    enqueue(ruler.function, ruler.pk)
    return ruler


def _check_sources(task: Task, anchors: int) -> None:
    """Raise Refused if too few examples or models could give anchors."""
    versions = select_source_versions(task)
    item_count = versions.aggregate(n=Sum("size"))["n"] or 0
    if not item_count:
        raise Refused(
            gettext(
                "Anchors come from a control set or from examples that a release holds back. This "
                "task has neither."
            ),
            code="no_items",
        )
    if item_count < anchors:
        message = gettext(
            "The control sets and held-back sets have %(items)d examples. Choose at most as many "
            "anchors, or hold back more."
        )
        raise Refused(message % {"items": item_count}, code="too_few_items", field="anchors")
    # The worker counts again; this only spares owners a job that can't succeed.
    model_count = len(find_complete_models(list(versions)))
    if model_count < MIN_MODELS:
        message = gettext(
            "%(models)d models have answered all control sets and held-back sets. At least "
            "%(least)d must."
        )
        raise Refused(message % {"models": model_count, "least": MIN_MODELS}, code="too_few_models")


@transaction.atomic
def retire_ruler(*, ruler: Ruler, actor: User) -> None:
    """End a ruler's service, which ends the protection of its anchors. Locks the ruler.

    Raises Refused if it is retired already.
    """
    ruler = Ruler.objects.select_for_update(of=("self",)).get(pk=ruler.pk)
    if ruler.retired_at:
        raise Refused(gettext("This ruler is retired already."))
    _end_service(ruler, actor)


def _end_service(ruler: Ruler, actor: User) -> None:
    ruler.retired_at, ruler.retired_by = timezone.now(), actor
    ruler.save(update_fields=["retired_at", "retired_by"])
    log(actor, "ruler.retired", ruler)


def request_anchor_runs(*, ruler: Ruler, actor: User) -> list[EvaluationRun]:
    """Request the runs that models need for the ruler; return the new ones. Takes no lock.

    As `request_runs`, which requests each run once.
    """
    runs: list[EvaluationRun] = []
    # Also sets without anchors: a model that runs here answers the whole task.
    for lacking in list_lacking_models(ruler):
        if lacking.can_request:
            runs += request_runs(submission=lacking.model, actor=actor)
    return runs


def choose_anchors_of(ruler: Ruler) -> None:
    """Choose a claimed ruler's anchors. If this fails, store the reason. Raises LeaseLost."""
    do_job_work(ruler, _choose)


def _choose(ruler: Ruler, heartbeat: Heartbeat) -> None:
    # Late, because it loads numpy, and the pages import this module.
    from evaluation.runs.rulers.fitting import AnchorsRefused, choose_rows

    # Whoever retires a ruler that is still queued doesn't want its anchors.
    if ruler.retired_at:
        raise ImpossibleJob("The ruler was retired before its anchors were chosen.")
    versions = list(select_source_versions(ruler.task))
    try:
        rows, teachers = choose_rows(ruler, versions, heartbeat.beat)
    except AnchorsRefused as error:
        raise ImpossibleJob(str(error)) from error
    with transaction.atomic():
        _lock_sources(versions)
        # A worker that was presumed dead may have stored some.
        ruler.anchors.all().delete()
        RulerAnchor.objects.bulk_create(
            RulerAnchor(ruler=ruler, number=number, version=version, uid=uid)
            for number, (version, uid) in enumerate(rows)
        )
        ruler.teachers.set(Submission.objects.filter(pk__in=teachers))
        leases.finish_job(ruler)


def _lock_sources(versions: Iterable[EvaluationSetVersion]) -> None:
    """Lock the sets and the rounds behind them, so that none is released now.

    Raises NotNow while a release of one is built: it may publish rows that are about to be anchors.
    """
    set_ids = [version.evaluation_set_id for version in versions]
    sets = EvaluationSet.objects.filter(pk__in=set_ids).order_by("pk")
    round_ids = [row.held_of_id for row in sets.select_for_update(of=("self",)) if row.held_of_id]
    # In a fixed order, as everybody who locks several rounds does.
    list(Round.objects.filter(pk__in=round_ids).order_by("pk").select_for_update(of=("self",)))
    building = Dataset.objects.filter(round__in=round_ids, state__in=UNFINISHED_STATES)
    if building.exists():
        raise NotNow("A release is being built.")
