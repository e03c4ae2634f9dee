"""What judges are asked about: what people judged, and what models answered in runs."""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.db.models import Max, Q, QuerySet

from annotation.models import Example
from annotation.selectors import with_outputs
from evaluation.contract import Outcome
from evaluation.judges.llm_judges.agreement import Agreement, Pair, Part, agreement, part_of
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.selectors import counting
from evaluation.sets.selectors import input_rows
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.models import Verdict
from validation.rules.claims import is_about_model

ANSWER = "answer_to_judge"
"""The field of a judge's prompt that holds the answer."""


class Asked(NamedTuple):
    """One answer to judge, with what it answers; key: the same for the same texts."""

    inputs: Mapping[str, Any]
    key: str


class Judged(NamedTuple):
    """An answer that people judged."""

    asked: Asked
    author: int | None
    part: Part
    is_correct: bool


def asked(config: TaskConfig, fields: Mapping[str, Any], answer: str) -> Asked:
    """What a judge reads: the fields that models read, and the answer."""
    inputs = {name: fields.get(name, "") for name in config.model_fields} | {ANSWER: answer}
    text = orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)
    return Asked(inputs, hashlib.sha256(text).hexdigest())


def judged_by_people(task: Task) -> Iterator[Judged]:
    """The free answers of which people said whether they are correct, those to calibrate on first.

    Where they judged the model's answer, it is that of the only target that was asked.
    """
    rows = (
        Example.objects.filter(
            round__task=task,
            retracted_at__isnull=True,
            by_program=False,
            consensus__verdict__in=[Verdict.CORRECT, Verdict.INCORRECT],
        )
        .select_related("context", "consensus")
        .prefetch_related(with_outputs())
        .order_by("pk")
    )
    found = [one for example in rows if (one := _judged(task, example))]
    return iter(sorted(found, key=lambda one: (one.part != "calibrate", one.asked.key)))


def _judged(task: Task, example: Example) -> Judged | None:
    config, outputs = task.config, list(example.target_outputs.all())
    answer = example.inputs.get(config.answer_field)
    if is_about_model(config, example.outcome):
        answer = outputs[0].output.get(config.answer_field) if len(outputs) == 1 else None
    if not isinstance(answer, str):
        return None
    fields = {**example.context.fields, **example.inputs}
    author = example.annotator_id
    part = part_of(task.pk, author or example.uuid, settings.SECRET_KEY)
    is_correct = example.consensus.verdict == Verdict.CORRECT
    return Judged(asked(config, fields, answer), author, part, is_correct)


def verdicts_of(judge: LlmJudge) -> dict[str, bool]:
    """What the judge has said so far, by key."""
    return dict(LlmVerdict.objects.filter(judge=judge).values_list("key", "is_correct"))


def agreements(judged: Iterable[Judged], verdicts: Mapping[str, bool]) -> dict[Part, Agreement]:
    """The agreement on each part, on what people and the judge have judged."""
    pairs: dict[Part, list[Pair]] = {"calibrate": [], "tune": []}
    for one in judged:
        if one.asked.key in verdicts:
            by_model = verdicts[one.asked.key]
            pairs[one.part].append(Pair(one.author, one.is_correct, by_model))
    return {part: agreement(found) for part, found in pairs.items()}


def runs_to_judge(judge: LlmJudge) -> QuerySet[EvaluationRun]:
    """Finished runs of the task without a score of the judge, the newest first.

    Inputs that may not leave this installation are shown to no judge that is elsewhere.
    """
    runs = EvaluationRun.objects.filter(
        submission__task=judge.task,
        submission__withdrawn_at=None,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
    )
    if judge.asked_with["url"]:
        runs = runs.filter(version__evaluation_set__may_leave=True)
    unscored = counting(runs).exclude(llm_scores__judge=judge).exclude(predictions="")
    return unscored.select_related("version").order_by("-finished_at")


def answers_of(judge: LlmJudge, run: EvaluationRun) -> Iterator[Asked | None]:
    """The answers in a run, in the order of the set; None: there is none, which is not correct."""
    config = judge.task.config
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, line in zip(input_rows(run.version), lines, strict=True):
            answer = orjson.loads(line)["answer"]
            yield asked(config, row["inputs"], answer) if isinstance(answer, str) else None


class Calibrated(NamedTuple):
    """A judge with its agreement with people, without which nothing of it is shown."""

    judge: LlmJudge
    agreement: Agreement
    number: int  # so many judges of the task were measured on the same examples before and with it


def calibration(judge: LlmJudge) -> Agreement:
    """The agreement of a judge on the examples to calibrate on."""
    return Agreement(**judge.report.get("calibrate") or dict.fromkeys(Agreement._fields[:6], 0))


def calibrated(task: Task) -> list[Calibrated]:
    """The task's judges, newest first; one query."""
    judges = list(task.llm_judges.select_related("target").order_by("pk"))
    return [Calibrated(one, calibration(one), n) for n, one in enumerate(judges, 1)][::-1]


def scores_of(runs: Iterable[EvaluationRun]) -> list[tuple[LlmScore, Agreement]]:
    """The scores by judges in these runs, each with the judge's agreement; one query."""
    wanted = Q(run__in=[run.pk for run in runs])
    rows = LlmScore.objects.filter(wanted).select_related(
        "judge", "run__version__evaluation_set", "run__submission"
    )
    return [(score, calibration(score.judge)) for score in rows.order_by("judge", "run__pk")]


class MetricJudge(NamedTuple):
    """Whose verdicts are the metric `llm_judge` of a task, by the name in its configuration.

    number: its version, that is its place among the task's judges; 0 while there is none of that
    name. newest: the id of its last score, which tells one state of them from another.
    """

    pk: int | None
    name: str
    model: str
    number: int
    agreement: Agreement
    newest: int | None

    @property
    def ranks(self) -> bool:
        """Whether its scores may count: it was measured on enough examples."""
        return self.agreement.is_calibrated

    @property
    def told(self) -> dict[str, Any]:
        """As it stands in boards, snapshots and the API, beside each of its scores."""
        found = {
            name: round(one, 4) if isinstance(one, float) else one
            for name, one in self.agreement._asdict().items()
        }
        agreement = {"is_calibrated": self.ranks, **found}
        shown = {"name": self.name, "model": self.model, "number": self.number}
        return {**shown, "agreement": agreement}


def metric_judge(task: Task) -> MetricJudge | None:
    """The judge that the task's configuration names; None: `llm_judge` is none of its metrics.

    At most two queries.
    """
    name = task.config.metrics.judge
    if name is None:
        return None
    found = task.llm_judges.select_related("target").annotate(newest=Max("scores"))
    judge = found.filter(name=name).first()
    if judge is None:
        return MetricJudge(None, name, "", 0, agreement([]), None)
    number = task.llm_judges.filter(pk__lte=judge.pk).count()
    measured = calibration(judge)
    return MetricJudge(judge.pk, name, judge.target.name, number, measured, judge.newest)
