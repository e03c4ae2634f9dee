"""Write submissions: submit, publish and withdraw models, and enforce quotas."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from math import inf
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.counting import lock_counted_person
from core.accounts.erasure_log import record_erasure
from core.accounts.models import CountedPerson, Erasure, User
from core.accounts.services import log
from core.data.encryption import encrypt
from core.days import get_today
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from core.periodic import register_sweep
from core.text.taken_names import check_name
from evaluation.contract import Outcome
from evaluation.isolation.queue import leases
from evaluation.isolation.uploads.allowances import get_max_models_per_day
from evaluation.isolation.uploads.chunked import (
    build_needed_uploads_condition,
    check_upload_complete,
    discard_upload,
)
from evaluation.kinds import KINDS, TARGET_KIND, list_kind_names
from evaluation.models import (
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    Team,
    TeamMember,
    TrainedRows,
    Upload,
)
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.runs.chat.settings import MAX_COST, ChatSettings
from evaluation.runs.short.services import cancel_short_evaluations
from evaluation.submissions.cards import NO_CARD, ModelCard
from evaluation.submissions.checks import build_stored_chat, check_sources
from evaluation.submissions.name_similarity import check_name_is_distinct
from evaluation.submissions.practice import services as practice
from evaluation.submissions.quota import (
    QUOTA_WINDOW,
    Caps,
    Charge,
    Quota,
    QuotaEntry,
    choose_charge,
    compute_quota,
)
from evaluation.submissions.teams.selectors import find_membership
from evaluation.test_sets.submitters import build_person_filter
from tasks.models import Task

State = Submission.State
WITHDRAWN_NAME = "withdrawn"
MAX_TIME_AHEAD = timedelta(days=366)


@transaction.atomic
def submit_model(
    *,
    task: Task,
    owner: User,
    kind: str,
    name: str,
    upload: Upload | None = None,
    source: str = "",
    revision: str = "",
    adapter: str = Submission.Adapter.JSONL,
    evaluation_set: EvaluationSetVersion | None = None,
    secret: str = "",
    chat: ChatSettings | None = None,
    base: str = "",
    gpus: int = 0,
    card: ModelCard = NO_CARD,
    team: Team | None = None,
) -> Submission:
    """Submit a model and queue its check; return the submission.

    If the upload was submitted before, returns that submission. Predictions for another set become
    a file of the model with that name (see `find_files`).

    The kind decides which arguments are needed (`SubmissionKind.find_problem`). source: a hub id,
    an image or an address. secret: the key of a server, stored encrypted. chat: None for the
    default settings. base: the base model of an adapter.

    Locks the owner, their person, then the team, for the quotas. Raises Refused, Invalid and
    UploadRefused.
    """
    name = check_name(name)
    stored_chat = build_stored_chat(task, kind, source, secret, chat)
    # Locked before counting, so that a second tab counts the first one's model.
    person = _lock_submitters(owner, team)
    if task.config.kind == "arena":
        raise Refused(_("Arenas don't accept model submissions."), code="arena")
    # A form that is sent twice, or a client that lost the response, gets its model again.
    if upload and (earlier_submission := _find_earlier_submission(upload, task, owner)):
        return earlier_submission
    submission = Submission(
        task=task, owner=owner, person=person, team=team, requested_by=owner, kind=kind, name=name,
        upload=upload, source=source, revision=revision, adapter=adapter, base=base, gpus=gpus,
        chat=stored_chat, evaluation_set=evaluation_set, secret=encrypt(secret), **vars(card),
    )  # fmt: skip
    _check_submission(submission, owner)
    files = find_files(submission)  # of the same model
    # A further file of an anonymous model must not reveal its name.
    submission.anonymous_until = files.aggregate(until=Max("anonymous_until"))["until"]
    submission.save(force_insert=True)
    log(owner, "submission.handed_in", submission, kind=kind)
    enqueue(submission.function, submission.pk)
    return submission


def _lock_submitters(owner: User, team: Team | None) -> CountedPerson:
    """Lock the owner, their person and the team; return the person whose quota counts.

    Raises Invalid if the owner is no longer in the team.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    person = lock_counted_person(owner)
    if team is None:
        return person
    Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team.pk).first()
    if not find_membership(owner, team):
        raise Invalid(_("You aren't in this team. Choose one of your teams."), field="team")
    return person


def _check_submission(submission: Submission, owner: User) -> None:
    """Raise Invalid or Refused if the submission cannot be accepted as it is."""
    check_sources(submission)
    _check_name(submission)
    check_quota(submission.task, owner, submission.team)


def _find_earlier_submission(upload: Upload, task: Task, owner: User) -> Submission | None:
    """Return the earlier submission of the same upload, or None.

    Raises Invalid if the owner may not use the file, and UploadRefused if it is incomplete.
    """
    if earlier := Submission.objects.filter(upload=upload, owner=owner, task=task).first():
        return earlier
    is_free = (
        Upload.objects.exclude(build_needed_uploads_condition())
        .filter(pk=upload.pk, owner=owner)
        .exists()
    )
    if not is_free or Submission.objects.filter(upload=upload).exists():
        raise Invalid(_("This upload is already in use. Upload the file again."), field="upload")
    check_upload_complete(upload)
    return None


@transaction.atomic
def change_cap(*, submission: Submission, actor: User, most_cost: float) -> None:
    """Change the maximum cost of all evaluations of a chat model together.

    Evaluations that a cap ended may then be repeated. Takes no lock: the last change counts. Raises
    Refused or Invalid.
    """
    if not ChatSettings.from_stored({"model": "", **submission.chat}).is_paid:
        raise Refused(_("You can set a cost cap only for chat models with prices."))
    if not 0 < most_cost <= MAX_COST:
        message = _("Enter a number above 0 and at most %(most)d.") % {"most": MAX_COST}
        raise Invalid(message, field="most_cost")
    _change_model_files(submission, actor, "cap", chat={**submission.chat, "most_cost": most_cost})


@transaction.atomic
def let_others_try(*, submission: Submission, actor: User, is_open: bool) -> None:
    """Set whether people outside the owner's team may try to fool a chat model.

    Takes no lock. Raises Refused.
    """
    if not KINDS[submission.kind].costs_per_call:
        raise Refused(_("You can't choose who can try this model, because it isn't a chat model."))
    _change_model_files(submission, actor, "practice", chat={**submission.chat, "is_open": is_open})


def find_files(submission: Submission) -> QuerySet[Submission]:
    """Return the submissions that make up one model, without withdrawn ones.

    For predictions: the files with the model's name, one for each set. Otherwise the submission.
    """
    active_models = Submission.objects.filter(withdrawn_at=None)
    if not KINDS[submission.kind].is_file_of_answers or submission.owner_id is None:
        return active_models.filter(pk=submission.pk)
    model_files = active_models.filter(
        task=submission.task_id,
        owner=submission.owner_id,
        team=submission.team_id,
        name=submission.name,
    )
    return model_files.filter(kind=submission.kind).order_by("queued_at", "pk")


def _check_name(submission: Submission) -> None:
    """Raise Invalid if the owner, their team or a published model already uses this name."""
    is_own = Q(owner=submission.owner)
    if submission.team:
        is_own |= Q(team=submission.team)
    own_models = Submission.objects.filter(is_own, task=submission.task)
    namesakes = own_models.filter(name=submission.name, withdrawn_at=None)
    if version := submission.evaluation_set:  # with a file for another set, it is the same model
        file_kinds = list_kind_names(lambda kind: kind.is_file_of_answers)
        is_same_model = Q(kind__in=file_kinds, owner=submission.owner, team=submission.team)
        namesakes = namesakes.exclude(~Q(evaluation_set=version), is_same_model)
    if namesakes.filter(state__in=[State.QUEUED, State.RUNNING, State.DONE]).exists():
        message = _(
            "You or your team already have a model with this name. Choose another, for "
            "example with a version number."
        )
        raise Invalid(message, field="name")
    check_name_is_distinct(submission)


def check_quota(task: Task, owner: User, team: Team | None = None) -> None:
    """Raise Refused if the person, or their team, may not submit a model to the task now."""
    max_refused = settings.REFUSED_SUBMISSIONS_PER_DAY
    sentence = _(
        "You've reached today's limit for this task (models: %(most)d, rejected models: "
        "%(refused)d)."
    )
    limits = {"most": get_max_models_per_day(task, owner), "refused": max_refused}
    quotas = [(find_remaining_quota(owner, task), sentence % limits)]
    if team:
        sentence = _(
            "Your team has reached today's limit for this task (models: %(most)d, "
            "rejected models: %(refused)d)."
        )
        limits = {"most": get_max_models_per_day(task, team), "refused": max_refused}
        quotas.append((_find_quota(team, task), sentence % limits))
    for quota, message in quotas:
        if quota.left:
            continue
        if quota.free_at:
            free_at = {"time": f"{quota.free_at:%Y-%m-%d %H:%M}"}
            message += " " + _("You can submit again at %(time)s UTC.") % free_at
        raise Refused(message, code="quota")


def find_remaining_quota(owner: User, task: Task, team: Team | None = None) -> Quota:
    """Return the person's remaining quota for a task.

    With a team, return the tighter of the person's and the team's quota.
    """
    quota = _find_quota(owner, task)
    if team:
        quota = min(quota, _find_quota(team, task), key=_build_quota_sort_key)
    return quota


def _build_quota_sort_key(quota: Quota) -> tuple[int, float]:
    """Return a sort key that puts the tighter quota first; if equal, the one that is free later."""
    if quota.free_at is None:  # used up, without a date when it will be free
        return quota.left, -inf
    return quota.left, -quota.free_at.timestamp()


def _find_quota(submitter: User | Team, task: Task) -> Quota:
    """Return the remaining quota of a team, or of a person with all their accounts."""
    now = timezone.now()
    if isinstance(submitter, Team):
        submitters = Q(team=submitter)
    else:
        submitters = build_person_filter(submitter)
    rows = Submission.objects.filter(submitters, task=task, queued_at__gt=now - QUOTA_WINDOW)
    caps = Caps(get_max_models_per_day(task, submitter), settings.REFUSED_SUBMISSIONS_PER_DAY)
    return compute_quota(_iterate_quota_entries(rows.prefetch_related("runs")), caps, now)


def _iterate_quota_entries(rows: Iterable[Submission]) -> Iterable[QuotaEntry]:
    """Yield each submission's quota entry. Further files of a model are free unless refused."""
    models = set()
    for row in rows:
        # A perturbed run also fails without a plain one, which may be the model's fault.
        plain_runs = (run for run in row.runs.all() if run.suite == EvaluationRun.Suite.PLAIN)
        run_states = [(run.state, run.outcome) for run in plain_runs]
        charge = choose_charge(row.state, row.outcome, row.attempts > 0, run_states)
        is_file = KINDS[row.kind].is_file_of_answers and row.withdrawn_at is None
        if is_file and charge in (Charge.ACCEPTED, Charge.PENDING):
            # The first file has used the quota for the model.
            if (name := (row.owner_id, row.team_id, row.name)) in models:
                continue
            models.add(name)
        yield QuotaEntry(row.queued_at, charge)


@transaction.atomic
def publish_model(*, submission: Submission, actor: User, is_due: bool = False) -> None:
    """Publish the model, with each of its files that has a score.

    Locks the names of the task's models, so that the second of two similar names is refused. The
    name is not checked again if the model is due on a chosen day.
    is_due: whether that day has come. Raises Refused.
    """
    good_runs = EvaluationRun.objects.filter(submission=OuterRef("pk"), outcome=Outcome.OK)
    scored_files = find_files(submission).filter(Exists(good_runs), state=State.DONE)
    if submission.withdrawn_at is None and not scored_files.filter(pk=submission.pk).exists():
        raise Refused(_("You can publish a model once it has a score."))
    # A model with a promised day had its name checked then, and cannot change it now.
    if not (submission.is_published or is_due):
        check_name_is_distinct(submission)
    _change_model_files(
        submission, actor, "published", scored_files, is_published=True, publish_on=None
    )


@transaction.atomic
def unpublish_model(*, submission: Submission, actor: User) -> None:
    """Hide a published model from everybody but its owner, its team and the task's owners.

    Also clears the day on which it would be published. Takes no lock. Raises Refused.
    """
    _change_model_files(submission, actor, "unpublished", is_published=False, publish_on=None)


@transaction.atomic
def set_publish_on(*, submission: Submission, actor: User, day: date | None) -> None:
    """Set the day on which the model is published automatically; None for never.

    Takes no lock: the last change counts. Raises Refused.
    """
    if day and submission.is_published:
        raise Refused(_("This model has already been published."))
    _check_day_ahead(day, "day")
    if day:
        check_name_is_distinct(submission)
    _change_model_files(submission, actor, "embargo", publish_on=day)


@register_sweep(why="Owners chose a day on which their model is published.")
def publish_due_models() -> int:
    """Publish the models whose day has come and that have a score; return how many.

    Called by the sweep, which tries models without a score again later. Takes no lock:
    `publish_model` only changes models that are not withdrawn.
    """
    due_models = Submission.objects.filter(
        publish_on__lte=get_today(), is_published=False, withdrawn_at=None
    )
    published_count = 0
    for submission in due_models.exclude(owner=None).select_related("owner"):
        assert submission.owner
        with suppress(Refused):  # it has no score yet, or was withdrawn just now
            publish_model(submission=submission, actor=submission.owner, is_due=True)
            published_count += 1
    return published_count


@transaction.atomic
def set_anonymous_until(*, submission: Submission, actor: User, until: date | None) -> None:
    """Hide the names of model and owner until a date; None shows them at once. Takes no lock.

    Raises Refused.
    """
    _check_day_ahead(until, "until")
    _change_model_files(submission, actor, "anonymous", anonymous_until=until)


def _check_day_ahead(day: date | None, field: str) -> None:
    """Raise Invalid if a day is not in the future, or more than a year ahead."""
    now = get_today()
    if day and not now < day <= now + MAX_TIME_AHEAD:
        message = _("Choose a date within the next year, or leave this empty.")
        raise Invalid(message, field=field)


@transaction.atomic
def update_card(*, submission: Submission, actor: User, card: ModelCard) -> None:
    """Replace the model card. Takes no lock: the last change counts. Raises Refused."""
    _change_model_files(submission, actor, "card", **vars(card))


def _change_model_files(
    submission: Submission,
    actor: User,
    action: str,
    files: QuerySet[Submission] | None = None,
    **changes: Any,
) -> None:
    """Change all files of a model, or those in `files`. Raises Refused if it was withdrawn."""
    active_rows = Submission.objects.filter(pk=submission.pk, withdrawn_at=None)
    # Only if it has not just been withdrawn; withdrawn models do not change.
    if not active_rows.update(**changes):
        raise Refused(_("This model has been withdrawn."))
    if files is None:
        files = find_files(submission)
    files.update(**changes)
    for name, value in changes.items():
        setattr(submission, name, value)
    log(actor, f"submission.{action}", submission)


@transaction.atomic
def cancel_evaluations(*, submission: Submission, actor: User) -> int:
    """Cancel the check and all unfinished evaluations; return how many ended.

    Takes no lock: their workers notice that the lease is gone, and store nothing.
    """
    ended_count = _cancel_submission(submission)
    log(actor, "submission.cancelled", submission, ended=ended_count)
    return ended_count


def _cancel_submission(submission: Submission) -> int:
    # The check first, because it may request runs until it ends.
    ended_count = int(leases.cancel_job(submission, outcome=Outcome.CANCELLED))
    ended_count += cancel_short_evaluations(submission)
    runs = submission.runs.filter(state__in=UNFINISHED_STATES)
    # A run that starts between the two queries is cancelled while it runs.
    return ended_count + sum(leases.cancel_job(run, outcome=Outcome.CANCELLED) for run in runs)


@transaction.atomic
def withdraw_model(*, submission: Submission, actor: User | None) -> None:
    """Withdraw a model: delete its files, name and card, and hide its results. Takes no lock.

    The row is kept, so that a link to the model says that it was withdrawn.
    Raises Refused if it was already withdrawn.
    """
    # A second tab finds no row, and is refused.
    active_rows = Submission.objects.filter(pk=submission.pk, withdrawn_at=None)
    if not active_rows.update(withdrawn_at=timezone.now()):
        raise Refused(_("This model has already been withdrawn."))
    _cancel_submission(submission)
    practice.stop_run(submission)
    withdrawn_model = Submission.objects.select_related("upload").get(pk=submission.pk)
    files = [withdrawn_model.file]
    files += [run.predictions for run in withdrawn_model.runs.exclude(predictions="")]
    names = [str(file.name) for file in files if file]
    Submission.objects.filter(pk=submission.pk).update(
        name=WITHDRAWN_NAME, file="", source="", revision="", secret="", chat={}, error="", log="",
        upload=None, anonymous_until=None, publish_on=None, **vars(ModelCard()),
    )  # fmt: skip
    withdrawn_model.runs.update(predictions="", log="")
    TrainedRows.objects.filter(submission=withdrawn_model).delete()
    record_erasure(Erasure.Kind.SUBMISSION, submission.pk)  # repeated if a backup is restored
    log(actor, "submission.withdrawn", f"submission {submission.pk}")
    # A file cannot be restored, so it is deleted only after its rows.
    transaction.on_commit(lambda: _delete_files(names, withdrawn_model.upload))


def _delete_files(names: Iterable[str], upload: Upload | None) -> None:
    for name in names:
        default_storage.delete(name)
    if upload:
        discard_upload(upload)


def transfer_team_models(*, owner: User | None) -> int:
    """Transfer a departed person's accepted team models within their teams; return how many.

    The new owner is an owner of the team, otherwise its longest-standing member. The model's stored
    keys are deleted. owner: None for all deleted accounts. Takes no lock: a model withdrawn at the
    same moment is transferred as a withdrawn one.
    """
    accepted_models = Submission.objects.filter(owner=owner, state=State.DONE, withdrawn_at=None)
    transferred_count = 0
    for submission in accepted_models.filter(team__isnull=False):  # one transaction each
        other_members = TeamMember.objects.filter(team=submission.team_id).exclude(user=None)
        other_members = other_members.exclude(user=owner)
        # An owner first; among equals, the member who joined first.
        new_owner = other_members.order_by("-is_owner", "joined_at").select_related("user").first()
        if new_owner is None:
            continue
        with transaction.atomic():
            row = Submission.objects.filter(pk=submission.pk)
            transferred_count += row.update(
                owner=new_owner.user, requested_by=new_owner.user, secret="", upload=None
            )
            log(None, "submission.passed_on", submission)
    return transferred_count


def withdraw_all_models(*, owner: User | None) -> int:
    """Withdraw every model of a departing person and delete their uploads; return how many models.

    owner: None for the models of accounts that are already deleted. One transaction per model.
    Call `transfer_team_models` first; otherwise team models are withdrawn, too.
    """
    active_models = Submission.objects.filter(owner=owner, withdrawn_at=None).exclude(
        kind=TARGET_KIND
    )
    remaining_models = list(active_models)
    for submission in remaining_models:
        withdraw_model(submission=submission, actor=owner)
    if owner:  # the uploads of deleted accounts are already deleted
        for upload in Upload.objects.filter(owner=owner):
            discard_upload(upload)
    return len(remaining_models)
