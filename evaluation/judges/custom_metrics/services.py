"""Write custom metrics: owners propose and retire them, an operator decides. Also rerun them."""

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
from core.accounts.proposal_services import (
    build_decided_error,
    build_decision_values,
    check_decision,
)
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from core.periodic import register_sweep
from evaluation.isolation.queue.leases import requeue_jobs
from evaluation.judges.custom_metrics.selectors import find_unscored_runs
from evaluation.models import CustomMetric
from tasks.config.schema import CUSTOM_PATTERN, CUSTOM_PREFIX
from tasks.mails import build_decision_text, mail_administrators, mail_person
from tasks.models import Task

MAX_BYTES = 20_000
MAX_WAITING_METRICS = 5
"""The maximum number of proposed versions of a task at the same time."""
Review, State = CustomMetric.Review, CustomMetric.State


def clean_source(source: str) -> str:
    """Return a metric's source with Unix line endings. Raises Invalid if empty or too long."""
    text = re.sub(r"\r\n?", "\n", source).strip("\n") + "\n"
    if len(text.encode()) > MAX_BYTES:
        message = _("The file exceeds %(most)d kB. Shorten it.") % {"most": MAX_BYTES // 1000}
        raise Invalid(message, field="source")
    if not text.strip() or "\0" in text:
        raise Invalid(_("Paste the code of a Python file."), field="source")
    return text


@transaction.atomic
def propose_metric(
    *, task: Task, actor: User, name: str, about: str, higher_is_better: bool, source: str
) -> CustomMetric:
    """Store a new version of a metric, start its trial and email the administrators.

    An undecided version of the same name is retired. Takes no lock: the version number is unique.
    Raises Refused or Invalid.
    """
    if not CUSTOM_PATTERN.fullmatch(CUSTOM_PREFIX + name):
        message = _(
            "Use up to 40 characters: lowercase letters a-z, numbers and hyphens, starting "
            "with a letter."
        )
        raise Invalid(message, field="name")
    text = clean_source(source)
    digest = hashlib.sha256(text.encode()).hexdigest()
    versions = task.custom_metrics.filter(name=name)
    metric_columns = {"digest": digest, "about": about, "higher_is_better": higher_is_better}
    # A double click proposes only one version.
    if versions.filter(**metric_columns, review__in=[Review.PROPOSED, Review.APPROVED]).exists():
        raise Refused(_("This version already exists. Propose the metric again."))
    # Each waiting version takes time in the sandbox and of an administrator.
    waiting_count = task.custom_metrics.filter(review=Review.PROPOSED).exclude(name=name).count()
    if waiting_count >= MAX_WAITING_METRICS:
        message = _(
            "%(number)d metrics of this task are waiting for a decision. Wait until one is decided."
        )
        raise Refused(message % {"number": waiting_count}, code="quota")
    # Conditional, so that a version that was decided just now keeps its decision.
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
        raise Refused(
            _("Someone else has just proposed a version. Check that version first.")
        ) from None
    log(actor, "metric.proposed", metric, digest=digest)
    enqueue(metric.function, metric.pk)
    page = settings.SITE_URL + make_page_url(metric)

    def write_mail() -> tuple[str, str]:
        subject = _("New metric to review: %(metric)s") % {"metric": metric}
        return subject, build_decision_text(about, page)

    mail_administrators(write_mail)
    return metric


def make_page_url(metric: CustomMetric) -> str:
    """Return the URL of a version's page."""
    return reverse("evaluation:metric", args=[metric.task.code, metric.name, metric.number])


@transaction.atomic
def decide_metric(*, metric: CustomMetric, actor: User, approve: bool, reason: str) -> None:
    """Approve or refuse a version, and email the person who proposed it.

    An approved version scores stored answers. The version approved before is retired and keeps its
    numbers. Takes no lock: a single update decides, and `metric_one_approved` lets only one of two
    simultaneous approvals succeed. Raises Refused.
    """
    check_decision(may_decide=actor.is_superuser, approve=approve, reason=reason, code="metric")
    proposed_versions = CustomMetric.objects.filter(pk=metric.pk, review=Review.PROPOSED)
    decision_columns = build_decision_values(actor, reason)
    if approve:
        sibling_versions = CustomMetric.objects.filter(task=metric.task_id, name=metric.name)
        tried_versions = proposed_versions.filter(state=State.DONE, trial__failure="")
        # Somebody else may have decided since the page was read; the update below finds that out.
        if not tried_versions.exists() and proposed_versions.exists():
            raise Refused(_("You can only approve a version whose trial succeeded."), code="trial")
        # First, because `metric_one_approved` allows one. The transaction undoes it if refused.
        sibling_versions.filter(review=Review.APPROVED).update(review=Review.RETIRED)
        count = _approve(tried_versions, decision_columns)
    else:
        count = proposed_versions.update(review=Review.REFUSED, **decision_columns)
    if not count:
        raise build_decided_error()
    metric.refresh_from_db()
    log(actor, f"metric.{metric.review}", metric, digest=metric.digest, reason=reason)
    if metric.requested_by:

        def write_mail() -> tuple[str, str]:
            subject = _("%(metric)s was approved") if approve else _("%(metric)s was declined")
            text = f"{reason}\n\n{settings.SITE_URL}{make_page_url(metric)}\n".lstrip()
            return subject % {"metric": metric}, text

        mail_person(metric.requested_by, write_mail)


def _approve(tried_versions: QuerySet[CustomMetric], decision_columns: Mapping[str, Any]) -> int:
    """Approve and queue the version if it is still in `tried_versions`.

    Return the number of changed rows. Raises Refused if another version was approved at the same
    time.
    """
    try:
        with transaction.atomic():
            return requeue_jobs(tried_versions, review=Review.APPROVED, **decision_columns)
    except IntegrityError:
        raise Refused(
            _("Another version has just been approved. Check that version first.")
        ) from None


@transaction.atomic
def retire_metric(*, metric: CustomMetric, actor: User) -> None:
    """Remove a version from the leaderboard, or withdraw a proposal. Its numbers are kept.

    Takes no lock: a single update decides. Raises Refused.
    """
    retirable_versions = CustomMetric.objects.filter(
        pk=metric.pk, review__in=[Review.PROPOSED, Review.APPROVED]
    )
    if not retirable_versions.update(review=Review.RETIRED):
        raise Refused(_("Choose a version that is proposed or approved."))
    log(actor, "metric.retired", metric)


@transaction.atomic
def rerun_metric(*, metric: CustomMetric, actor: User) -> None:
    """Repeat the trial of a proposed version, or score the runs on which an approved one failed.

    Takes no lock: a single update decides. Raises Refused.
    """
    repeatable_versions = CustomMetric.objects.filter(
        pk=metric.pk, review__in=[Review.PROPOSED, Review.APPROVED]
    )
    if not requeue_jobs(repeatable_versions):
        raise Refused(
            _(
                "You can't run this version now. Wait until it finishes, or choose a proposed "
                "or approved version."
            )
        )
    # It runs again where it failed; its good numbers stay.
    metric.outcomes.exclude(failure="").delete()
    log(actor, "metric.run_again", metric)


@register_sweep(why="An approved metric scores each new run.")
def request_custom_scores() -> int:
    """Queue the approved metrics that have runs to score; return how many. Called by the sweep."""
    queued_count = 0
    for metric in CustomMetric.objects.filter(review=Review.APPROVED, state=State.DONE):
        if find_unscored_runs(metric).exists():
            queued_count += requeue_jobs(
                CustomMetric.objects.filter(pk=metric.pk, state=State.DONE)
            )
    return queued_count
