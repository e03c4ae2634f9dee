"""Read what judges are asked about: what people judged, and what models answered in runs."""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.db.models import Max, Q, QuerySet

from annotation.models import Example
from annotation.selectors import prefetch_outputs
from evaluation.contract import Outcome
from evaluation.judges.llm_judges.agreement import (
    Agreement,
    JudgedPair,
    Split,
    assign_split,
    compute_agreement,
)
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.selectors import filter_counting_runs
from evaluation.test_sets.selectors import read_input_rows
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.consensus.claims import is_about_model
from validation.models import Verdict

ANSWER_FIELD = "answer_to_judge"
"""The field of a judge's prompt that holds the answer."""


class JudgeQuestion(NamedTuple):
    """An answer to judge, with the inputs that it answers.

    inputs: also contain the answer, under ANSWER. key: a digest of the inputs.
    """

    inputs: Mapping[str, Any]
    key: str


class JudgedAnswer(NamedTuple):
    """An answer with the verdict of people."""

    question: JudgeQuestion
    author: int | None
    part: Split
    is_correct: bool


def make_judge_question(
    config: TaskConfig, fields: Mapping[str, Any], answer: str
) -> JudgeQuestion:
    """Return the question for a judge: the fields that models read, and the answer."""
    inputs = {name: fields.get(name, "") for name in config.model_fields} | {ANSWER_FIELD: answer}
    # Sorted keys: the same texts give the same key, whatever the order of the configuration.
    text = orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)
    return JudgeQuestion(inputs, hashlib.sha256(text).hexdigest())


def find_judged_answers(task: Task) -> Iterator[JudgedAnswer]:
    """Return an iterator over the free-text answers that people judged, calibration part first.

    If people judged the model's answer, only examples with a single target count.
    """
    rows = (
        Example.objects.filter(
            round__task=task,
            retracted_at__isnull=True,
            by_program=False,
            consensus__verdict__in=[Verdict.CORRECT, Verdict.INCORRECT],
        )
        .select_related("context", "consensus")
        .prefetch_related(prefetch_outputs())
        .order_by("pk")
    )
    judged_answers = []
    for example in rows:
        judgement = _read_judgement(task, example)
        if judgement:
            judged_answers.append(judgement)
    # By key and not by date: when the calls are used up, those asked are a random sample.
    judged_answers.sort(
        key=lambda judgement: (judgement.part != "calibrate", judgement.question.key)
    )
    return iter(judged_answers)


def _read_judgement(task: Task, example: Example) -> JudgedAnswer | None:
    """Return the judged free-text answer of an example, with the verdict of people.

    None if the answer is no text, or if people judged a model's answer and several targets
    answered.
    """
    config, outputs = task.config, list(example.target_outputs.all())
    answer = example.inputs.get(config.answer_field)
    # People were asked about the model's answer. With several targets nobody knows which one.
    if is_about_model(config, example.outcome):
        answer = None
        if len(outputs) == 1:
            answer = outputs[0].output.get(config.answer_field)
    if not isinstance(answer, str):
        return None
    fields = {**example.context.fields, **example.inputs}
    author = example.annotator_id
    part = assign_split(task.pk, author or example.uuid, settings.SECRET_KEY)
    is_correct = example.consensus.verdict == Verdict.CORRECT
    return JudgedAnswer(make_judge_question(config, fields, answer), author, part, is_correct)


def read_verdicts(judge: LlmJudge) -> dict[str, bool]:
    """Return the judge's verdicts so far, by the keys of the questions."""
    return dict(LlmVerdict.objects.filter(judge=judge).values_list("key", "is_correct"))


def compute_agreements(
    judged_answers: Iterable[JudgedAnswer], verdicts: Mapping[str, bool]
) -> dict[Split, Agreement]:
    """Return the agreement between people and the judge on each part."""
    pairs: dict[Split, list[JudgedPair]] = {"calibrate": [], "tune": []}
    for judgement in judged_answers:
        if judgement.question.key in verdicts:
            by_model = verdicts[judgement.question.key]
            pair = JudgedPair(judgement.author, judgement.is_correct, by_model)
            pairs[judgement.part].append(pair)
    return {name: compute_agreement(of_part) for name, of_part in pairs.items()}


def find_unjudged_runs(judge: LlmJudge) -> QuerySet[EvaluationRun]:
    """Return the task's successful runs that the judge has not scored, newest first.

    A judge outside this site gets no sets whose inputs may not leave the site.
    """
    runs = EvaluationRun.objects.filter(
        submission__task=judge.task,
        submission__withdrawn_at=None,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
    )
    # A judge with an address is somebody else's machine.
    if judge.asked_with["url"]:
        runs = runs.filter(version__evaluation_set__may_leave=True)
    # A run whose predictions are gone cannot be judged.
    unscored = filter_counting_runs(runs).exclude(llm_scores__judge=judge).exclude(predictions="")
    return unscored.select_related("version").order_by("-finished_at")


def read_answers_to_judge(judge: LlmJudge, run: EvaluationRun) -> Iterator[JudgeQuestion | None]:
    """Yield the answers of a run as questions, in the set's order; None for a missing answer."""
    config = judge.task.config
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, line in zip(read_input_rows(run.version), lines, strict=True):
            answer = orjson.loads(line)["answer"]
            if isinstance(answer, str):
                yield make_judge_question(config, row["inputs"], answer)
            else:
                yield None


class CalibratedJudge(NamedTuple):
    """A judge with its agreement with people, which is always shown with the judge.

    number: the judge's position among the task's judges, all of which are measured on the same
    examples.
    """

    judge: LlmJudge
    agreement: Agreement
    number: int


def read_calibration(judge: LlmJudge) -> Agreement:
    """Return the agreement of a judge on the calibration part."""
    nothing_yet = dict.fromkeys(Agreement._fields[:6], 0)  # the counts; kappa stays None
    return Agreement(**(judge.report.get("calibrate") or nothing_yet))


def find_calibrated_judges(task: Task) -> list[CalibratedJudge]:
    """Return the task's judges with their agreement, newest first; one query."""
    judges = task.llm_judges.select_related("target").order_by("pk")
    rows = []
    for number, judge in enumerate(judges, 1):
        rows.append(CalibratedJudge(judge, read_calibration(judge), number))
    return rows[::-1]


def find_judge_scores(runs: Iterable[EvaluationRun]) -> list[tuple[LlmScore, Agreement]]:
    """Return the judges' scores of these runs, each with the judge's agreement; one query."""
    of_runs = Q(run__in=[run.pk for run in runs])
    rows = LlmScore.objects.filter(of_runs).select_related(
        "judge", "run__version__evaluation_set", "run__submission"
    )
    return [(score, read_calibration(score.judge)) for score in rows.order_by("judge", "run__pk")]


class MetricJudge(NamedTuple):
    """The judge behind a task's metric `llm_judge`, which the task's configuration names.

    number: its position among the task's judges, used as its version; 0 if no judge has the name.
    newest: the id of its last score, which changes whenever its scores do.
    """

    pk: int | None
    name: str
    model: str
    number: int
    agreement: Agreement
    newest: int | None

    @property
    def ranks(self) -> bool:
        """Return whether its scores count in the ranking: it was calibrated on enough examples."""
        return self.agreement.is_calibrated

    @property
    def told(self) -> dict[str, Any]:
        """Return the judge as leaderboards, snapshots and the API show it with its scores."""
        agreement: dict[str, Any] = {"is_calibrated": self.ranks}
        for name, value in self.agreement._asdict().items():
            agreement[name] = round(value, 4) if isinstance(value, float) else value
        about = {"name": self.name, "model": self.model, "number": self.number}
        return {**about, "agreement": agreement}


def find_metric_judge(task: Task) -> MetricJudge | None:
    """Return the judge that the task's configuration names; at most two queries.

    None if the task does not use the metric `llm_judge`.
    """
    name = task.config.metrics.judge
    if name is None:
        return None
    judges = task.llm_judges.select_related("target").annotate(newest=Max("scores"))
    judge = judges.filter(name=name).first()
    if judge is None:
        return MetricJudge(None, name, "", 0, compute_agreement([]), None)
    # Judges never go, so their count is a version that readers can cite.
    number = task.llm_judges.filter(pk__lte=judge.pk).count()
    measured = read_calibration(judge)
    return MetricJudge(judge.pk, name, judge.target.name, number, measured, judge.newest)
