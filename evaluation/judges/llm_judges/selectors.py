"""Read the answers that judges are asked about: answers that people judged, and those of runs."""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.db.models import Max, Q, QuerySet

from annotation.models import Example
from annotation.selectors import prefetch_outputs
from evaluation.contract import Outcome
from evaluation.judges.llm_judges.agreement import (
    Agreement,
    JudgedPair,
    Split,
    compute_agreement,
)
from evaluation.judges.llm_judges.questions import (
    JudgedAnswer,
    JudgeQuestion,
    has_criteria,
    iterate_criterion_questions,
    make_judge_question,
    read_criterion_judgements,
    read_judgement,
)
from evaluation.models import EvaluationRun, LlmJudge, LlmScore, LlmVerdict
from evaluation.runs.selectors import filter_counting_runs
from evaluation.test_sets.selectors import read_input_rows, read_set_rows
from tasks.config.criteria import Criterion, compute_score, read_criteria
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.models import Consensus, Verdict


def find_judged_answers(task: Task) -> Iterator[JudgedAnswer]:
    """Return an iterator over the free-text answers that people judged.

    Those of the calibration part come first. If people judged the model's answer, only examples
    with a single target count.
    """
    rows = _select_examples(task)
    judged_answers: list[JudgedAnswer] = []
    if has_criteria(task.config):
        # Also of examples whose verdict is open: each criterion is decided by itself.
        for example in rows.filter(consensus__judgements__isnull=False):
            judged_answers += read_criterion_judgements(task, example)
    else:
        verdicts = [Verdict.CORRECT, Verdict.INCORRECT]
        for example in rows.filter(consensus__verdict__in=verdicts):
            judgement = read_judgement(task, example)
            if judgement:
                judged_answers.append(judgement)
    # By key, not by date: when calls are used up, the judged answers are a random sample.
    judged_answers.sort(
        key=lambda judgement: (judgement.split != "calibrate", judgement.question.key)
    )
    return iter(judged_answers)


def _select_examples(task: Task) -> QuerySet[Example]:
    """Select the examples that people wrote and did not withdraw, with the models' answers."""
    examples = Example.objects.filter(round__task=task, retracted_at__isnull=True, by_program=False)
    rows = examples.select_related("context", "consensus").prefetch_related(prefetch_outputs())
    return rows.order_by("pk")


def find_open_questions(task: Task) -> Iterator[JudgeQuestion]:
    """Yield the criteria that people have not decided, for a judge to look at before them."""
    if not has_criteria(task.config):
        return
    open_examples = _select_examples(task).exclude(consensus__state=Consensus.State.DECIDED)
    for example in open_examples.iterator(chunk_size=500):
        for _, question in iterate_criterion_questions(task, example):
            yield question


class Prejudgement(NamedTuple):
    """What a judge said of the criteria of one example, and how far it agrees with people.

    are_met: in the order of the criteria; None where it has said nothing.
    """

    judge: LlmJudge
    agreement: Agreement
    are_met: Sequence[bool | None]


def find_prejudgements(task: Task, example: Example) -> list[Prejudgement]:
    """Return what the task's judges said of an example's criteria. For owners only.

    Makes three queries, none if the task has no criteria.
    """
    if not has_criteria(task.config):
        return []
    keys = [question.key for _, question in iterate_criterion_questions(task, example)]
    met_by_judge: dict[int, dict[str, bool]] = {}
    verdicts = LlmVerdict.objects.filter(judge__task=task, key__in=keys)
    for judge_id, key, is_met in verdicts.values_list("judge_id", "key", "is_correct"):
        met_by_judge.setdefault(judge_id, {})[key] = is_met
    prejudgements = []
    for judge in task.llm_judges.order_by("pk"):
        # A judge that has not come to this example says nothing about it.
        if judge.pk in met_by_judge:
            are_met = [met_by_judge[judge.pk].get(key) for key in keys]
            prejudgements.append(Prejudgement(judge, read_calibration(judge), are_met))
    return prejudgements


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
            pairs[judgement.split].append(pair)
    return {split: compute_agreement(split_pairs) for split, split_pairs in pairs.items()}


def find_unjudged_runs(judge: LlmJudge) -> QuerySet[EvaluationRun]:
    """Return the task's plain runs that the judge has not scored, newest first.

    Only runs that count are included: of repeated runs the first that succeeded, and none of
    withdrawn models. A judge outside this site gets no sets whose inputs may not leave the site,
    and of tasks with criteria none whose answers are secret.
    """
    runs = EvaluationRun.objects.filter(
        submission__task=judge.task,
        submission__withdrawn_at=None,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
    )
    # A judge with a URL is somebody else's machine.
    if judge.asked_with["url"]:
        runs = runs.filter(version__evaluation_set__may_leave=True)
        # Criteria tell what a right answer is, so they leave only once the answers are public.
        if has_criteria(judge.task.config):
            runs = runs.filter(version__evaluation_set__answers_public=True)
    # A run without stored predictions cannot be judged.
    unscored_runs = (
        filter_counting_runs(runs).exclude(llm_scores__judge=judge).exclude(predictions="")
    )
    return unscored_runs.select_related("version").order_by("-finished_at")


class AnswerToScore(NamedTuple):
    """An answer of a run.

    questions: one, or one for each of the `criteria`; empty if the model gave no answer.
    """

    questions: Sequence[JudgeQuestion]
    criteria: Sequence[Criterion] = ()


def read_answers_to_judge(judge: LlmJudge, run: EvaluationRun) -> Iterator[AnswerToScore]:
    """Yield the answers of a run with their questions, in the set's order."""
    config = judge.task.config
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        # Criteria are stored with the right answers, which are not read otherwise.
        if has_criteria(config):
            for set_row, line in zip(read_set_rows(run.version), lines, strict=True):
                criteria = read_criteria(set_row.criteria)
                texts = [criterion.text for criterion in criteria]
                yield _make_answer(config, set_row.inputs, line, texts)._replace(criteria=criteria)
        else:
            for row, line in zip(read_input_rows(run.version), lines, strict=True):
                yield _make_answer(config, row["inputs"], line, [""])


def _make_answer(
    config: TaskConfig, inputs: Mapping[str, Any], line: bytes, criteria: Sequence[str]
) -> AnswerToScore:
    answer = orjson.loads(line)["answer"]
    if not isinstance(answer, str):
        return AnswerToScore(())
    return AnswerToScore(
        [make_judge_question(config, inputs, answer, criterion) for criterion in criteria]
    )


def compute_answer_score(
    config: TaskConfig, answer: AnswerToScore, verdicts: Sequence[bool | None]
) -> float | None:
    """Return the score (0-1) of an answer; None if a verdict on it is missing.

    verdicts: in the order of the answer's questions. A missing answer is incorrect.
    """
    if not answer.questions:
        return 0.0
    if None in verdicts:
        return None
    rule = config.verdict
    if rule.type != "criteria":
        return float(all(verdicts))
    judgements = ["met" if is_met else "not_met" for is_met in verdicts]
    return compute_score(answer.criteria, judgements, rule.score).value


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
    empty_counts = dict.fromkeys(Agreement._fields[:6], 0)  # the counts; kappa stays None
    return Agreement(**(judge.report.get("calibrate") or empty_counts))


def find_calibrated_judges(task: Task) -> list[CalibratedJudge]:
    """Return the task's judges with their agreement, newest first; one query."""
    judges = task.llm_judges.select_related("target").order_by("pk")
    rows = []
    for number, judge in enumerate(judges, 1):
        rows.append(CalibratedJudge(judge, read_calibration(judge), number))
    return rows[::-1]


def find_judge_scores(runs: Iterable[EvaluationRun]) -> list[tuple[LlmScore, Agreement]]:
    """Return the judges' scores of these runs, each with the judge's agreement; one query."""
    is_of_runs = Q(run__in=[run.pk for run in runs])
    rows = LlmScore.objects.filter(is_of_runs).select_related(
        "judge", "run__version__evaluation_set", "run__submission"
    )
    return [(score, read_calibration(score.judge)) for score in rows.order_by("judge", "run__pk")]


class MetricJudge(NamedTuple):
    """The judge behind a task's metric `llm_judge`, which the task's configuration names.

    number: its position among the task's judges, used as its version; 0 if no judge has the name.
    newest: the id of its last score, which changes whenever its scores do; None without a score.
    """

    pk: int | None
    name: str
    model: str
    number: int
    agreement: Agreement
    newest: int | None

    @property
    def counts_in_ranking(self) -> bool:
        """Return whether the judge's scores count in the ranking.

        They do if the judge was calibrated on enough examples.
        """
        return self.agreement.is_calibrated

    @property
    def public_fields(self) -> dict[str, Any]:
        """Return the judge as leaderboards, snapshots and the API show it with its scores."""
        agreement: dict[str, Any] = {"is_calibrated": self.counts_in_ranking}
        for name, value in self.agreement._asdict().items():
            agreement[name] = round(value, 4) if isinstance(value, float) else value
        judge_fields = {"name": self.name, "model": self.model, "number": self.number}
        return {**judge_fields, "agreement": agreement}


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
    # Judges are never deleted, so their count is a version that readers can cite.
    number = task.llm_judges.filter(pk__lte=judge.pk).count()
    agreement = read_calibration(judge)
    return MetricJudge(judge.pk, name, judge.target.name, number, agreement, judge.newest)
