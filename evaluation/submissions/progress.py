"""Describe the progress of a submission in words, from its arrival to its last score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.services import estimate_wait_seconds, find_queue_positions
from evaluation.submissions.selectors import keep_latest_runs

State = EvaluationRun.State


@dataclass(frozen=True)
class Progress:
    """The progress of a model. `phase` is one word for programs, `sentence` a text for people."""

    phase: str
    sentence: str
    is_over: bool
    share: float | None = None  # 0-1, while work is in progress
    message: str = ""
    position: int | None = None  # in the queue, counting itself
    wait_seconds: float | None = None  # until it begins

    @property
    def key(self) -> str:
        """Return a text that changes whenever people should be notified of the progress."""
        return f"{self.phase}: {self.sentence}"


def describe_progress(submission: Submission, runs: Iterable[EvaluationRun]) -> Progress:
    """Return the progress of a submission, from its check to the last of its runs."""
    if submission.withdrawn_at:
        return Progress("withdrawn", _("This model has been withdrawn."), is_over=True)
    if submission.state == State.QUEUED:
        sentence = _("Submission received. Waiting to be checked.")
        return Progress("received", sentence, is_over=False, message=submission.message)
    if submission.state == State.RUNNING:
        return Progress(
            "checking",
            _("We're checking the model."),
            False,
            submission.progress,
            submission.message,
        )
    if submission.state != State.DONE:
        return _describe_failed_check(submission)
    return _describe_runs(submission, list(keep_latest_runs(runs)))


def _describe_failed_check(submission: Submission) -> Progress:
    """Return the progress after a check that did not succeed; not every failure is a refusal."""
    if submission.state == State.FAILED and submission.outcome in OTHERS_FAILED_SENTENCES:
        return Progress("failed", _(OTHERS_FAILED_SENTENCES[submission.outcome]), is_over=True)
    phase = str(submission.state)
    if submission.state == State.FAILED:
        phase = "refused"
    return Progress(phase, _(CHECK_END_SENTENCES[submission.state]), is_over=True)


OTHERS_FAILED_SENTENCES: Mapping[str, str] = {
    Outcome.INFRASTRUCTURE: gettext_noop(
        "The check failed on our side. This submission doesn't count, so submit the model again."
    ),
    Outcome.AWAY: gettext_noop(
        "A server that the check needs didn't answer for a day. This submission doesn't "
        "count. Submit the model again when that server is back."
    ),
}
NO_SCORE_SENTENCES: Mapping[str, str] = {
    Outcome.INFRASTRUCTURE: gettext_noop(
        "An error on our side stopped all evaluations. These runs don't count. Run them again."
    ),
    Outcome.AWAY: gettext_noop(
        "Another server didn't respond for a day, so no evaluation finished. These runs don't "
        "count. Run them again when that server is back."
    ),
}


CHECK_END_SENTENCES: Mapping[str, str] = {
    State.FAILED: gettext_noop("Not accepted."),
    State.LOST: gettext_noop(
        "The check was interrupted. This submission doesn't count, so submit the model again."
    ),
    State.CANCELLED: gettext_noop("Cancelled."),
}


def _describe_runs(submission: Submission, runs: Sequence[EvaluationRun]) -> Progress:
    """Return the progress of an accepted submission's runs."""
    ended_runs = [run for run in runs if run.is_over]
    if len(ended_runs) == len(runs):
        return _describe_ended_runs(submission, runs)
    active_runs = [run for run in runs if run.state == State.RUNNING]
    if active_runs:
        share = (len(ended_runs) + sum(run.progress for run in active_runs)) / len(runs)
        index = {"number": len(ended_runs) + 1, "total": len(runs)}
        sentence = _("Running evaluation %(number)d of %(total)d.") % index
        return Progress("running", sentence, False, share, active_runs[0].message)
    first_run = next(run for run in runs if run.state == State.QUEUED)
    return Progress(
        "queued", _("In the queue."), False, len(ended_runs) / len(runs), first_run.message
    )


def add_queue_position(progress: Progress, runs: Sequence[EvaluationRun]) -> Progress:
    """Return the progress with its queue position, or with the runs that its check waits for.

    Other progress is returned unchanged. A few queries.
    """
    if progress.phase == "received":
        return _add_busy_workers(progress)
    if progress.phase != "queued":
        return progress
    first_run = next(run for run in keep_latest_runs(runs) if run.state == State.QUEUED)
    position = find_queue_positions().get(first_run.pk)  # only here: it makes two queries
    seconds = estimate_wait_seconds(position)
    if position is None:  # claimed meanwhile
        return progress
    if seconds is None:
        sentence = _("Number %(position)d in the queue.") % {"position": position}
    else:
        values = {"position": position, "time": format_duration(seconds)}
        sentence = _("Number %(position)d in the queue, %(time)s to wait.") % values
    return replace(progress, sentence=sentence, position=position, wait_seconds=seconds)


def _add_busy_workers(progress: Progress) -> Progress:
    """Add how many evaluations are running, because a check waits until a worker is free."""
    running_count = EvaluationRun.objects.filter(state=State.RUNNING).count()
    if not running_count:
        return progress
    sentence = ngettext(
        "Received. The check starts when a worker is free. %(number)d evaluation is running.",
        "Received. The check starts when a worker is free. %(number)d evaluations are running.",
        running_count,
    )
    return replace(progress, sentence=sentence % {"number": running_count})


def _describe_ended_runs(submission: Submission, runs: Sequence[EvaluationRun]) -> Progress:
    """Return the progress of a submission whose runs are all over."""
    scored_count = sum(run.outcome == Outcome.OK for run in runs)
    if not runs and submission.chat.get("short_only"):
        sentence = _("Accepted. You can request short evaluations, or one of all examples.")
        return Progress("accepted", sentence, True)
    if not runs:
        return Progress(
            "accepted", _("Accepted. This task has no test set to run the model on yet."), True
        )
    if scored_count == len(runs):
        sentence = _("Scored on every test set.")
    elif scored_count:
        values = {"good": scored_count, "total": len(runs)}
        sentence = _("%(good)d of %(total)d evaluations produced a score.") % values
    else:
        return Progress("failed", _explain_missing_score(runs), is_over=True)
    if submission.is_published:
        return Progress("published", sentence + " " + _("Published."), True)
    return Progress("scored", sentence, True)


def _explain_missing_score(runs: Iterable[EvaluationRun]) -> str:
    """Return a sentence that says why none of the runs gave a score.

    The site or another server is blamed only if it caused every failure.
    """
    outcomes = {run.outcome for run in runs}
    for outcome, sentence in NO_SCORE_SENTENCES.items():
        if outcome in outcomes and outcomes <= NO_SCORE_SENTENCES.keys():
            return _(sentence)
    return _("None of the evaluations produced a score.")


NEXT_SENTENCES: Mapping[str, str] = {
    "accepted": gettext_noop(
        "We evaluate this model on the next test set of this task, for example after the next "
        "round is released."
    ),
    "refused": gettext_noop("A model gets scores once it is accepted."),
    "failed": gettext_noop("A model gets scores once one of its evaluations succeeds."),
    "lost": gettext_noop("A model gets scores once it is accepted."),
    "cancelled": gettext_noop("Evaluations of this model were cancelled."),
    # They have ended, but this reader may not see the scores.
    "scored": gettext_noop("Only the task's owners see the scores of this model."),
    "published": gettext_noop("Only the task's owners see the scores of this model."),
}


def describe_next_step(progress: Progress, *, is_short_only: bool = False) -> str:
    """Return a sentence that says when a model without scores gets some.

    is_short_only: whether its owner has chosen short evaluations, which give no scores.
    """
    if is_short_only and progress.phase == "accepted":
        return _("A model gets scores once its owner has it evaluated on all examples.")
    if not progress.is_over:
        return _("Scores appear here when the first evaluation has finished.")
    return _(NEXT_SENTENCES[progress.phase])


STEPS: Mapping[str, str] = {
    # Translators: the time at which it was received
    "received": gettext_noop("Received"),
    # Translators: state: somebody has looked at it
    "checking": gettext_noop("Checked"),
    # Translators: state: waits for a worker
    "queued": gettext_noop("Queued"),
    "running": gettext_noop("Evaluated"),
    # Translators: state of a model: it has results
    "scored": gettext_noop("Scored"),
    # Translators: state of a model: everybody sees it
    "published": gettext_noop("Published"),
}


OTHER_STEPS: Mapping[str, str] = {
    # Translators: state of a job
    "failed": gettext_noop("Failed"),
    # Translators: state: a worker stopped before the job ended
    "lost": gettext_noop("Lost"),
    "cancelled": gettext_noop("Cancelled"),
    "refused": gettext_noop("Refused"),
    # Translators: state of a model or of a place in a campaign
    "accepted": gettext_noop("Accepted"),
    "withdrawn": gettext_noop("Withdrawn"),
}


def list_progress_steps(progress: Progress) -> list[tuple[str, str]]:
    """Return (step, state) for each step of a submission; state is `done`, `now` or ""."""
    names = list(STEPS)
    if progress.phase not in STEPS:
        return [(_(STEPS["received"]), "done"), (_(OTHER_STEPS[progress.phase]), "now")]
    current_index = names.index(progress.phase)
    steps = []
    for index, name in enumerate(names):
        state = ""
        if index < current_index:
            state = "done"
        elif index == current_index:
            state = "now"
        steps.append((_(STEPS[name]), state))
    return steps


def format_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> format_duration(40), format_duration(600), format_duration(9000)
    ('less than a minute', 'about 10 minutes', 'about 2.5 hours')
    """
    if seconds < 60:
        return _("less than a minute")
    if seconds < 5400:
        minutes = round(seconds / 60)
        message = ngettext("about %(minutes)d minute", "about %(minutes)d minutes", minutes)
        return message % {"minutes": minutes}
    return _("about %(hours).1f hours") % {"hours": seconds / 3600}
