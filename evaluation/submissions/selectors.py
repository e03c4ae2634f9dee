"""Read submissions and their runs for pages and the API, and the inputs for checks."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.db.models import (
    CharField,
    Count,
    Exists,
    Max,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat, Greatest

from core.accounts.models import User
from evaluation.contract import Outcome
from evaluation.isolation.inference.precheck import EXAMPLE_COUNT
from evaluation.kinds import TARGET_KIND, list_kind_names
from evaluation.models import EvaluationRun, Submission, Team
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.test_sets.selectors import read_input_rows, select_open_versions
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Context, RoundTarget, Task
from tasks.selectors import PLANNED_STATES, find_visible_tasks

State = EvaluationRun.State


def build_public_condition() -> Q:
    """Return the condition for models that everybody may see.

    These are published models, and working targets that people have already met. A target gets its
    submission when it is registered, so that its owners see its results before that.
    """
    # Subqueries, so that any query of submissions can use the condition.
    met_rounds = RoundTarget.objects.filter(target=OuterRef("target")).exclude(
        round__state__in=PLANNED_STATES
    )
    scored_runs = EvaluationRun.objects.filter(
        submission=OuterRef("pk"), suite=EvaluationRun.Suite.PLAIN, outcome=Outcome.OK
    )
    is_known = ~Q(kind=TARGET_KIND) | (Q(Exists(met_rounds)) & Q(Exists(scored_runs)))
    return Q(is_published=True, withdrawn_at=None) & is_known


def select_submissions() -> QuerySet[Submission]:
    """Return submissions with the related rows that their pages show."""
    return Submission.objects.select_related(
        "task", "owner__annotator", "team", "target", "evaluation_set__evaluation_set"
    )


def prefetch_runs(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Prefetch all runs of the submissions."""
    return submissions.prefetch_related(Prefetch("runs", _select_runs()))


def find_public_models(task: Task) -> QuerySet[Submission]:
    """Return a task's models that everybody may see, newest first, with their scored plain runs."""
    public_models = select_submissions().filter(build_public_condition(), task=task)
    scored_runs = _select_runs().filter(suite=EvaluationRun.Suite.PLAIN, outcome=Outcome.OK)
    return public_models.prefetch_related(Prefetch("runs", scored_runs))


def count_models(tasks: Collection[Task]) -> Mapping[int, int]:
    """Return the number of models that everybody may see, by task id; one query.

    A model of several prediction files counts once, as on its board.
    """
    return _count_by_task(Submission.objects.filter(build_public_condition(), task__in=tasks))


def count_submitted_models(since: datetime) -> Mapping[int, int]:
    """Return the number of models that people have submitted since a time, by task id; one query.

    Withdrawn models are left out, and models to fool, which the site submits by itself. A model of
    several prediction files counts once.
    """
    submitted = Submission.objects.filter(queued_at__gte=since, withdrawn_at=None, target=None)
    return _count_by_task(submitted)


def _count_by_task(submissions: QuerySet[Submission]) -> Mapping[int, int]:
    """Return the number of models by task id. Prediction files of one name are one model."""
    file_kinds = list_kind_names(lambda kind: kind.is_file_of_answers)
    is_file = Q(kind__in=file_kinds, owner__isnull=False)
    # Identifies the models of files by one text that can be counted.
    model = Concat(
        Cast("owner", CharField()),
        Value("/"),
        Coalesce(Cast("team", CharField()), Value("")),
        Value("/"),
        "name",
        output_field=CharField(),
    )
    counts = (
        submissions.order_by()
        .values_list("task")
        .annotate(
            files=Count(model, filter=is_file, distinct=True), others=Count("pk", filter=~is_file)
        )
    )
    return {task: files + others for task, files, others in counts}


def find_person_submissions(user: User) -> QuerySet[Submission]:
    """Return a person's submissions, newest first, with their runs."""
    return prefetch_runs(select_submissions().filter(owner=user))


def find_team_submissions(team: Team, user: User) -> QuerySet[Submission]:
    """Return a team's submissions to tasks that this member may see, newest first."""
    return prefetch_runs(select_submissions().filter(team=team, task__in=find_visible_tasks(user)))


def _select_runs() -> QuerySet[EvaluationRun]:
    """Return all runs with their sets, in the order in which pages show them."""
    runs = EvaluationRun.objects.select_related("version__evaluation_set__task", "version__dataset")
    # Logs, measurements and a dataset's numbers are large, and lists show none.
    runs = runs.defer("log", "measurements", "version__dataset__numbers")
    return runs.order_by("version__evaluation_set__name", "version__version", "suite", "number")


def keep_latest_runs(runs: Iterable[EvaluationRun]) -> Iterable[EvaluationRun]:
    """Return the last repetition of each evaluation."""
    # Runs are sorted by number, so the last one of each key replaces the others.
    return {(run.version_id, run.suite): run for run in runs}.values()


def list_runs(submission: Submission) -> list[EvaluationRun]:
    """Return all runs of a submission, grouped by set, repetitions in order; one query."""
    return list(_select_runs().filter(submission=submission))


def filter_ended_submissions(submissions: QuerySet[Submission]) -> QuerySet[Any]:
    """Filter submissions to those with no check or run under way, and annotate `ended_at`.

    Later runs change `ended_at`. An accepted submission that waits for its first run has not ended.
    """
    unfinished_runs = EvaluationRun.objects.filter(
        submission=OuterRef("pk"), state__in=UNFINISHED_STATES
    )
    has_ended = Q(state=State.DONE, runs__isnull=False)
    has_ended |= Q(state__in=[State.FAILED, State.LOST, State.CANCELLED])
    check, runs = Coalesce("finished_at", "queued_at"), Max("runs__finished_at")
    ended_submissions = submissions.filter(has_ended, ~Exists(unfinished_runs), withdrawn_at=None)
    return ended_submissions.annotate(ended_at=Greatest(check, Coalesce(runs, check)))


def list_public_inputs(task: Task) -> list[Mapping[str, Any]]:
    """Return five examples that everybody may see. The last one is repeated if there are fewer."""
    # `_iterate_context_inputs` always has one, so there is at least one example.
    sources = chain(
        _iterate_set_inputs(task), _iterate_config_inputs(task), _iterate_context_inputs(task)
    )
    examples: list[Mapping[str, Any]] = []
    for values in islice(sources, EXAMPLE_COUNT):
        examples.append(prepare_for_models(task.config, task, values))
    while len(examples) < EXAMPLE_COUNT:
        examples.append(examples[-1])
    return examples


def _iterate_set_inputs(task: Task) -> Iterator[Mapping[str, Any]]:
    for version in select_open_versions(task):
        yield from (row["inputs"] for row in read_input_rows(version))


def _iterate_config_inputs(task: Task) -> Iterator[Mapping[str, Any]]:
    for case in chain(task.config.examples.good, task.config.examples.bad):
        values = {**case.context, **case.input}
        if all(name in values for name in task.config.model_fields):
            yield values


WHITE_PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N"
    "70a4AAAAAElFTkSuQmCC"
)
"""A picture of one white pixel, as a data URL."""


def _iterate_context_inputs(task: Task) -> Iterator[Mapping[str, Any]]:
    """Yield contexts that writers were shown, with placeholders for the texts that they wrote.

    Those texts are not public.
    """
    contexts = Context.objects.filter(round__task=task).order_by("pk")
    fields: Iterable[Mapping[str, Any]] = contexts.values_list("fields", flat=True)[:EXAMPLE_COUNT]
    placeholders = dict.fromkeys(task.config.model_fields, "An example.")
    for name, kind in task.config.media_fields.items():
        if kind == "image":
            placeholders[name] = WHITE_PIXEL
    for context in chain(fields, [{}]):  # at the end a context with only placeholders
        yield {name: context.get(name, placeholders[name]) for name in task.config.model_fields}
