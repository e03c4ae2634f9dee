"""Reads for the pages about submitted models: who may see what, and how far a model is."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, Max, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from dynabench.accounts.models import User
from dynabench.accounts.people import public_name
from evaluation.contract import Outcome
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Score,
    Submission,
)
from evaluation.runs.services import expected_wait_seconds, queue_positions, seen_by_all
from evaluation.sets.sealing import Shown
from evaluation.submissions.shown_scores import scores_of, shown_of
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_see
from validation.statistics.counts import count_cells
from validation.statistics.report import Number, standing

State = EvaluationRun.State
SUITES = [*EvaluationRun.Suite]  # in the order in which they are shown
ANONYMOUS = gettext_noop("An anonymous model")
KEPT_BACK = gettext_noop(
    "[The log is for the task's owners: it may hold examples, which are not to leave.]"
)
MOST_READ = 100_000
"""Examples of a set that is read for a page."""


@dataclass(frozen=True)
class Viewer:
    """What somebody is to a submission."""

    is_owner: bool  # handed it in
    is_task_owner: bool  # edits its task

    @property
    def is_inside(self) -> bool:
        """Whether what is not published is shown."""
        return self.is_owner or self.is_task_owner


def viewer_of(user: Person, submission: Submission) -> Viewer | None:
    """What the person is to the submission; None: for them it is not there."""
    if not can_see(user, submission.task):
        return None
    viewer = Viewer(_is_owner(user, submission), can_edit(user, submission.task))
    return viewer if viewer.is_inside or submission.is_published else None


def _is_owner(user: Person, submission: Submission) -> bool:
    return isinstance(user, User) and submission.owner_id == user.pk


def shown_name(submission: Submission, viewer: Viewer) -> str:
    """The model's name, unless it is hidden from this person."""
    return _(ANONYMOUS) if submission.is_anonymous and not viewer.is_inside else submission.name


def shown_owner(submission: Submission, viewer: Viewer) -> str:
    """The public name of who handed it in; empty where there is none or it is hidden.

    A tombstone names nobody: it may be of a model that was anonymous.
    """
    if (submission.is_anonymous or submission.withdrawn_at) and not viewer.is_inside:
        return ""
    return public_name(submission.owner)


def all_submissions() -> QuerySet[Submission]:
    """Submissions with what their pages say of them."""
    return Submission.objects.select_related(
        "task", "owner__annotator", "target", "evaluation_set__evaluation_set"
    )


def with_runs(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """The same, with all their runs."""
    return submissions.prefetch_related(Prefetch("runs", _runs()))


def published_models(task: Task) -> QuerySet[Submission]:
    """The models of a task that everybody sees, newest first; of their runs the plain good ones."""
    shown = all_submissions().filter(seen_by_all(), task=task)
    good = _runs().filter(suite=EvaluationRun.Suite.PLAIN, outcome=Outcome.OK)
    return shown.prefetch_related(Prefetch("runs", good))


def models_of(user: User) -> QuerySet[Submission]:
    """What somebody has handed in, newest first, with its runs."""
    return with_runs(all_submissions().filter(owner=user))


def _runs() -> QuerySet[EvaluationRun]:
    runs = EvaluationRun.objects.select_related("version__evaluation_set__task", "version__dataset")
    runs = runs.defer("log", "version__dataset__numbers")
    return runs.order_by("version__evaluation_set__name", "version__version", "suite", "number")


def may_see_scores(run: EvaluationRun, viewer: Viewer) -> bool:
    """Whether the person may know the set and what was measured on it."""
    hidden = run.version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return viewer.is_task_owner or not hidden


def as_seen(run: EvaluationRun, viewer: Viewer) -> EvaluationRun:
    """The run without what its model has written, where that may carry examples out.

    A model reads all inputs, and perturbed ones tell of right answers; so these words leave only
    where the inputs may. It is not to be saved.
    """
    version = run.version
    may_leave = version.evaluation_set.may_leave
    if run.suite != EvaluationRun.Suite.PLAIN and version.is_sealed:
        may_leave = False
    if not (viewer.is_task_owner or may_leave):
        run.log = KEPT_BACK
        if run.outcome == Outcome.INVALID_OUTPUT:  # quotes an answer
            run.error = run.limit = run.measured = ""
    return run


def may_see_wrong(run: EvaluationRun, viewer: Viewer) -> bool:
    """Whether the person may read which answers were wrong, and with them the right ones.

    The task's owners; everybody where a release has published both texts and labels.
    """
    if run.suite != EvaluationRun.Suite.PLAIN or not run.predictions:
        return False
    version = run.version
    is_public = bool(
        version.dataset
        and not version.dataset.options.get("private_test")
        and version.evaluation_set.may_leave
    )
    return (
        version.size <= MOST_READ
        and may_see_scores(run, viewer)
        and (viewer.is_task_owner or is_public)
    )


@dataclass(frozen=True)
class InTheLoop:
    """What people wrote against a target in a round."""

    round: int
    collected: Number
    vmer: Number


def rounds_in_the_loop(submission: Submission) -> list[InTheLoop]:
    """The rounds in which a target was in the loop, as far as anything was written; two queries."""
    target = submission.target
    rounds = list(target.rounds.select_related("task").order_by("number")) if target else []
    if target is None or not rounds:
        return []
    counted = count_cells(rounds, "target")
    return [
        InTheLoop(round.number, found["collected"], found["vmer"])
        for round in rounds
        if (part := counted.parts.get((round.pk, target.name)))
        for found in [standing(part)]
    ]


def ended(submissions: QuerySet[Submission]) -> QuerySet[Any]:
    """Those of which nothing is under way any more, with `ended_at`; later runs move it.

    What was accepted and waits for its first run has not ended.
    """
    under_way = EvaluationRun.objects.filter(
        submission=OuterRef("pk"), state__in=[State.QUEUED, State.RUNNING]
    )
    over = Q(state=State.DONE, runs__isnull=False)
    over |= Q(state__in=[State.FAILED, State.LOST, State.CANCELLED])
    check, runs = Coalesce("finished_at", "queued_at"), Max("runs__finished_at")
    found = submissions.filter(over, ~Exists(under_way), withdrawn_at=None)
    return found.annotate(ended_at=Greatest(check, Coalesce(runs, check)))


@dataclass(frozen=True)
class Progress:
    """How far a model is; `phase` is one word, `sentence` what people read."""

    phase: str
    sentence: str
    is_over: bool
    share: float | None = None  # 0-1, while something is done
    message: str = ""
    position: int | None = None  # in the queue, itself counted
    wait_seconds: float | None = None  # until it begins

    @property
    def key(self) -> str:
        """Changes when people should be told."""
        return f"{self.phase}: {self.sentence}"


def progress_of(submission: Submission, runs: Iterable[EvaluationRun]) -> Progress:
    """How far a submission is, from its check to the last of its runs."""
    if submission.withdrawn_at:
        return Progress("withdrawn", _("This model was withdrawn."), is_over=True)
    if submission.state == State.QUEUED:
        return Progress("received", _("Received. It waits for its check."), is_over=False)
    if submission.state == State.RUNNING:
        return Progress(
            "checking", _("It is being checked."), False, submission.progress, submission.message
        )
    if submission.state != State.DONE:
        phase = "refused" if submission.state == State.FAILED else submission.state
        return Progress(phase, _(CHECK_ENDS[submission.state]), is_over=True)
    return _of_runs(submission, list(latest(runs)))


CHECK_ENDS: Mapping[str, str] = {
    State.FAILED: gettext_noop("It was not accepted."),
    State.LOST: gettext_noop(
        "Its check was lost. That is our fault and costs nothing; hand it in again."
    ),
    State.CANCELLED: gettext_noop("It was cancelled."),
}


def _of_runs(submission: Submission, runs: Sequence[EvaluationRun]) -> Progress:
    over = [run for run in runs if run.is_over]
    if len(over) == len(runs):
        return _ended(submission, runs)
    running = [run for run in runs if run.state == State.RUNNING]
    if running:
        share = (len(over) + sum(run.progress for run in running)) / len(runs)
        place = {"number": len(over) + 1, "total": len(runs)}
        sentence = _("Running evaluation %(number)d of %(total)d.") % place
        return Progress("running", sentence, False, share, running[0].message)
    first = next(run for run in runs if run.state == State.QUEUED)
    return Progress("queued", _("In the queue."), False, len(over) / len(runs), first.message)


def with_wait(progress: Progress, runs: Sequence[EvaluationRun]) -> Progress:
    """The same, with the place in the queue of what waits; a few queries."""
    if progress.phase != "queued":
        return progress
    first = next(run for run in latest(runs) if run.state == State.QUEUED)
    position = queue_positions().get(first.pk)
    seconds = expected_wait_seconds(position)
    if position is None:  # taken meanwhile
        return progress
    if seconds is None:
        sentence = _("Number %(position)d in the queue.") % {"position": position}
    else:
        told = {"position": position, "time": in_words(seconds)}
        sentence = _("Number %(position)d in the queue, %(time)s to wait.") % told
    return replace(progress, sentence=sentence, position=position, wait_seconds=seconds)


def _ended(submission: Submission, runs: Sequence[EvaluationRun]) -> Progress:
    good = sum(run.outcome == Outcome.OK for run in runs)
    if not runs:
        return Progress("accepted", _("Accepted. This task has no set to run it on yet."), True)
    if good == len(runs):
        sentence = _("Scored on every set.")
    elif good:
        told = {"good": good, "total": len(runs)}
        sentence = _("%(good)d of %(total)d evaluations gave scores.") % told
    else:
        return Progress("failed", _("No evaluation gave a score."), is_over=True)
    if submission.is_published:
        return Progress("published", sentence + " " + _("Published."), True)
    return Progress("scored", sentence, True)


STEPS: Mapping[str, str] = {
    "received": gettext_noop("Received"),
    "checking": gettext_noop("Checked"),
    "queued": gettext_noop("Queued"),
    "running": gettext_noop("Evaluated"),
    "scored": gettext_noop("Scored"),
    "published": gettext_noop("Published"),
}


OTHER_STEPS: Mapping[str, str] = {
    "failed": gettext_noop("Failed"),
    "lost": gettext_noop("Lost"),
    "cancelled": gettext_noop("Cancelled"),
    "refused": gettext_noop("Refused"),
    "accepted": gettext_noop("Accepted"),
    "withdrawn": gettext_noop("Withdrawn"),
}


def steps_of(progress: Progress) -> list[tuple[str, str]]:
    """(step, `done`, `now` or nothing): the way of a submission, and where it is."""
    names = list(STEPS)
    if progress.phase not in STEPS:
        return [(_(STEPS["received"]), "done"), (_(OTHER_STEPS[progress.phase]), "now")]
    here = names.index(progress.phase)
    return [
        (_(STEPS[name]), "done" if place < here else "now" if place == here else "")
        for place, name in enumerate(names)
    ]


def in_words(seconds: float) -> str:
    """A time as people say it.

    >>> in_words(40), in_words(600), in_words(9000)
    ('less than a minute', 'about 10 minutes', 'about 2.5 hours')
    """
    if seconds < 60:
        return _("less than a minute")
    if seconds < 5400:
        minutes = round(seconds / 60)
        told = ngettext("about %(minutes)d minute", "about %(minutes)d minutes", minutes)
        return told % {"minutes": minutes}
    return _("about %(hours).1f hours") % {"hours": seconds / 3600}


def latest(runs: Iterable[EvaluationRun]) -> Iterable[EvaluationRun]:
    """The last repetition of each evaluation."""
    return {(run.version_id, run.suite): run for run in runs}.values()


def runs_of(submission: Submission) -> list[EvaluationRun]:
    """All runs of a submission, set by set, the repetitions of each in order; one query."""
    return list(_runs().filter(submission=submission))


@dataclass(frozen=True)
class Row:
    """A line of a list of models."""

    submission: Submission
    name: str
    owner: str
    scores: list[tuple[EvaluationSet, Score | None]]  # the main one on each set


def listed(submissions: Iterable[Submission], task: Task, user: Person) -> dict[str, Any]:
    """Models with their main score on the newest version of each set that the person may see."""
    is_task_owner, main = can_edit(user, task), task.config.metrics.main
    seen = [(each, Viewer(_is_owner(user, each), is_task_owner)) for each in submissions]
    newest = {
        submission.pk: {
            run.version.evaluation_set: run
            for run in submission.runs.all()
            if may_see_scores(run, viewer)
        }
        for submission, viewer in seen
    }
    sets = sorted({one for by_set in newest.values() for one in by_set}, key=lambda one: one.name)
    runs = [run for by_set in newest.values() for run in by_set.values()]
    scores = {
        score.run_id: score
        for score in scores_of(runs, exact=is_task_owner)
        if score.metric == main and not score.slice and not score.kind
    }

    def score_of(submission: Submission, one: EvaluationSet) -> Score | None:
        run = newest[submission.pk].get(one)
        return scores.get(run.pk) if run else None

    rows = [
        Row(
            submission,
            shown_name(submission, viewer),
            shown_owner(submission, viewer),
            [(one, score_of(submission, one)) for one in sets],
        )
        for submission, viewer in seen
    ]
    return {"metric": main, "sets": sets, "rows": rows}


@dataclass(frozen=True)
class SetResults:
    """What was found on one version of a set."""

    title: str
    version: EvaluationSetVersion
    is_in_the_loop: bool  # people wrote the examples against this very model
    runs: list[EvaluationRun]  # the last of each suite
    scores: list[Score]  # over all examples
    slices: list[Score]  # of the main metric
    suites: list["SuiteResults"]
    plain: EvaluationRun | None  # whose scores these are
    sealed: Shown | None  # what is shown of results on it; None: it is not sealed
    overlap: float | None  # the part of it that anybody may train on
    seen: float | None  # the part of it that the model was trained on; None: not known


@dataclass(frozen=True)
class SuiteResults:
    """What perturbing changed: a row for each kind; the first is of all of them."""

    title: str
    metrics: list[str]
    rows: list[tuple[str, int, list[Score | None]]]  # kind, examples, a score for each metric


def results_of(
    runs: Iterable[EvaluationRun],
    main_metric: str,
    *,
    exact: bool,
    learned: Collection[str] | None = None,
) -> list[SetResults]:
    """What was measured, by version of a set; one query. Of repeated runs the first good one is it.

    `runs` are those that the person may see; exact: as the task's editors see their scores.
    learned: what the model was trained on, as far as it is known.
    """
    runs = list(runs)
    good = (run for run in reversed(runs) if run.outcome == Outcome.OK)
    counting = {(run.version_id, run.suite): run for run in good}
    scores: dict[Any, list[Score]] = defaultdict(list)
    for score in scores_of(counting.values(), exact=exact):
        scores[score.run_id].append(score)
    by_version: dict[int, list[EvaluationRun]] = defaultdict(list)
    for run in sorted(latest(runs), key=lambda run: SUITES.index(run.suite)):
        by_version[run.version_id].append(run)
    found = []
    for version_id, shown in sorted(by_version.items(), key=lambda item: _place(item[1][0])):
        version = shown[0].version
        plain = counting.get((version_id, EvaluationRun.Suite.PLAIN))
        numbers = scores[plain.pk] if plain else []
        found.append(
            SetResults(
                title=f"{version.evaluation_set.name} v{version.version}",
                version=version,
                is_in_the_loop=any(run.in_the_loop for run in shown),
                runs=shown,
                scores=[each for each in numbers if not each.slice],
                slices=[each for each in numbers if each.slice and each.metric == main_metric],
                suites=[
                    _suite(counting[version_id, suite], scores[counting[version_id, suite].pk])
                    for suite in SUITES[1:]
                    if (version_id, suite) in counting
                ],
                plain=plain,
                sealed=shown_of(version) if version.is_sealed else None,
                overlap=version.overlap_with(),
                seen=None if learned is None else version.overlap_with(learned),
            )
        )
    return found


def _place(run: EvaluationRun) -> tuple[str, int]:
    """Sets by name, of each the newest version first."""
    return run.version.evaluation_set.name, -run.version.version


def _suite(run: EvaluationRun, scores: Sequence[Score]) -> SuiteResults:
    """Its scores as a table of kinds by metrics."""
    metrics = list(dict.fromkeys(score.metric for score in scores if not score.slice))
    examples = {score.kind: score.n for score in scores}
    cells = {(score.kind, score.metric): score for score in scores if not score.slice}
    rows = [
        (kind, examples[kind], [cells.get((kind, metric)) for metric in metrics])
        for kind in sorted(examples)
    ]
    return SuiteResults(run.get_suite_display(), metrics, rows)
