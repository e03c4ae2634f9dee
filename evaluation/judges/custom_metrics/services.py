"""Write custom metrics: owners propose them, an operator decides, they are retired or run again."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.proposal_services import check_decision, decision_values, is_over
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from core.periodic import each_sweep
from evaluation.isolation.queue.leases import queue_again
from evaluation.judges.custom_metrics.selectors import find_unscored_runs
from evaluation.models import CustomMetric
from tasks.config.schema import CUSTOM_PATTERN, CUSTOM_PREFIX
from tasks.mails import build_decision_text, mail_administrators, mail_person
from tasks.models import Task

MOST_BYTES = 20_000
MOST_WAITING = 5
"""The most proposed versions of a task at once."""
Review, State = CustomMetric.Review, CustomMetric.State


def check_source(source: str) -> str:
    """Return a metric's source with Unix line endings. Raises Invalid."""
    text = re.sub(r"\r\n?", "\n", source).strip("\n") + "\n"
    if len(text.encode()) > MOST_BYTES:
        message = _("The file has more than %(most)d bytes.") % {"most": MOST_BYTES}
        raise Invalid(message, field="source")
    if not text.strip() or "\0" in text:
        raise Invalid(_("Paste the text of a Python file."), field="source")
    return text


@transaction.atomic
def propose_metric(
    *, task: Task, actor: User, name: str, about: str, higher_is_better: bool, source: str
) -> CustomMetric:
    """Store a new version of a metric, start its trial and email the administrators.

    An undecided version of the same name is retired. Takes no lock: the version number is unique.
    Raises Refused.
    """
    if not CUSTOM_PATTERN.fullmatch(CUSTOM_PREFIX + name):
        message = _("A name has up to 40 small letters a-z, digits and hyphens, a letter first.")
        raise Invalid(message, field="name")
    text = check_source(source)
    digest = hashlib.sha256(text.encode()).hexdigest()
    versions = task.custom_metrics.filter(name=name)
    metric_columns = {"digest": digest, "about": about, "higher_is_better": higher_is_better}
    # A double click proposes once.
    if versions.filter(**metric_columns, review__in=[Review.PROPOSED, Review.APPROVED]).exists():
        raise Refused(_("This version is here already."))
    # Each waiting version takes time in the sandbox, and an administrator's.
    waiting_count = task.custom_metrics.filter(review=Review.PROPOSED).exclude(name=name).count()
    if waiting_count >= MOST_WAITING:
        message = _("%(number)d metrics of this task wait for a decision. Wait for one of them.")
        raise Refused(message % {"number": waiting_count}, code="quota")
    # Conditional: a version that is decided at this moment keeps its decision.
    versions.filter(review=Review.PROPOSED).update(review=Review.RETIRED)
    number = (versions.aggregate(last=Max("number"))["last"] or 0) + 1
    try:
        with transaction.atomic():
            metric = CustomMetric.objects.create(
                task=task,
                name=name,
                number=number,
                source=text,
                requested_by=actor,
                **metric_columns,
            )
    except IntegrityError:
        raise Refused(_("Somebody proposed a version a moment ago. Look at it first.")) from None
    log(actor, "metric.proposed", metric, digest=digest)
    enqueue(metric.function, metric.pk)
    page = settings.SITE_URL + make_page_url(metric)

    def write() -> tuple[str, str]:
        subject = _("A metric is proposed: %(metric)s") % {"metric": metric}
        return subject, build_decision_text(about, page)

    mail_administrators(write)
    return metric


def make_page_url(metric: CustomMetric) -> str:
    """Return the URL of a version's page."""
    return reverse("evaluation:metric", args=[metric.task.code, metric.name, metric.number])


@transaction.atomic
def decide_metric(*, metric: CustomMetric, actor: User, approve: bool, reason: str) -> None:
    """Approve or refuse a version, and email its owner.

    An approved version scores stored answers. The version approved before is retired and keeps its
    numbers. Takes no lock: a single update decides, and `metric_one_approved` lets only one of two
    simultaneous approvals succeed. Raises Refused.
    """
    check_decision(may_decide=actor.is_superuser, approve=approve, reason=reason, code="metric")
    proposed_versions = CustomMetric.objects.filter(pk=metric.pk, review=Review.PROPOSED)
    decision_columns = decision_values(actor, reason)
    if approve:
        sibling_versions = CustomMetric.objects.filter(task=metric.task_id, name=metric.name)
        tried_versions = proposed_versions.filter(state=State.DONE, trial__failure="")
        # Somebody else may have decided since the page was read; the update below finds that out.
        if not tried_versions.exists() and proposed_versions.exists():
            raise Refused(_("Only a version whose trial succeeded is approved."), code="trial")
        # First, since `metric_one_approved` allows one. Undone with the transaction if refused.
        sibling_versions.filter(review=Review.APPROVED).update(review=Review.RETIRED)
        count = _approve(tried_versions, decision_columns)
    else:
        count = proposed_versions.update(review=Review.REFUSED, **decision_columns)
    if not count:
        raise is_over()
    metric.refresh_from_db()
    log(actor, f"metric.{metric.review}", metric, digest=metric.digest, reason=reason)
    if metric.requested_by:

        def write() -> tuple[str, str]:
            subject = _("%(metric)s was approved") if approve else _("%(metric)s was declined")
            text = f"{reason}\n\n{settings.SITE_URL}{make_page_url(metric)}\n".lstrip()
            return subject % {"metric": metric}, text

        mail_person(metric.requested_by, write)


def _approve(tried_versions: QuerySet[CustomMetric], decision_columns: Mapping[str, Any]) -> int:
    """Approve and queue the version if it is still in `tried_versions`.

    Return the number of changed rows. Raises Refused if another version was approved at the same
    time.
    """
    try:
        with transaction.atomic():
            return queue_again(tried_versions, review=Review.APPROVED, **decision_columns)
    except IntegrityError:
        raise Refused(_("Another version was approved a moment ago. Look again.")) from None


@transaction.atomic
def retire_metric(*, metric: CustomMetric, actor: User) -> None:
    """Remove a version from the leaderboard, or withdraw a proposal. Its numbers are kept.

    Takes no lock: a single update decides. Raises Refused.
    """
    retirable = CustomMetric.objects.filter(
        pk=metric.pk, review__in=[Review.PROPOSED, Review.APPROVED]
    )
    if not retirable.update(review=Review.RETIRED):
        raise Refused(_("This version is neither proposed nor approved."))
    log(actor, "metric.retired", metric)


@transaction.atomic
def run_again(*, metric: CustomMetric, actor: User) -> None:
    """Repeat the trial of a proposed version, or score the runs on which an approved one failed.

    Takes no lock: a single update decides. Raises Refused.
    """
    repeatable_versions = CustomMetric.objects.filter(
        pk=metric.pk, review__in=[Review.PROPOSED, Review.APPROVED]
    )
    if not queue_again(repeatable_versions):
        raise Refused(_("It is being run now, or it is neither proposed nor approved."))
    # Where it failed it runs again; its good numbers stay.
    metric.outcomes.exclude(failure="").delete()
    log(actor, "metric.run_again", metric)


@each_sweep(why="An approved metric scores each new run.")
def request_custom_scores() -> int:
    """Queue the approved metrics that have runs to score; return how many. Called by the sweep."""
    queued_count = 0
    for metric in CustomMetric.objects.filter(review=Review.APPROVED, state=State.DONE):
        if find_unscored_runs(metric).exists():
            queued_count += queue_again(CustomMetric.objects.filter(pk=metric.pk, state=State.DONE))
    return queued_count
