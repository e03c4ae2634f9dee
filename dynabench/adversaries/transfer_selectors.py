"""Which catches of the board other models are asked about, and how many of them fool these.

A model that a row of the board has asked is never among its other models: a search that was made
against a model says nothing about how it transfers to it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.functional import Promise

from annotation.models import Example, TargetOutput
from dynabench.adversaries.board import HELP_COLUMNS, PEOPLE_NAMES, find_code
from dynabench.adversaries.models import (
    Adversary,
    AdversaryRun,
    AdversaryTry,
    TransferAnswer,
    TransferCheck,
)
from evaluation.models import Dataset, DatasetItem, EvaluationSetVersion, Submission
from evaluation.models.jobs import UNFINISHED_STATES
from tasks.config.schema import TaskConfig
from tasks.models import RoundTarget, TargetModel, Task
from validation.decisions.counted import STANDING_CONDITIONS, build_measure_condition
from validation.rates.rates import Rate, compute_share_by_author

MAX_CATCHES = 200
"""The most catches of a board row about which other models are asked: a random choice."""
IMPORTED_ADAPTER = "imported"
"""The adapter of models whose answers were imported. They cannot be asked."""
Split = DatasetItem.Split


class Catch(NamedTuple):
    """A confirmed catch of a board row.

    example: its id. code: the row's. cluster: the adversary's run or the person, whose catches may
    resemble one another. may_leave: whether models on other servers may be asked about it.
    """

    example: int
    code: str
    cluster: int | None
    may_leave: bool


class TransferQuestion(NamedTuple):
    """A model and the id of a catch about which it is to be asked."""

    target: TargetModel
    example: int


@dataclass(frozen=True)
class TransferRow:
    """How many catches of a board row fool a model that the row never asked.

    model: its name. clusters: the number of runs or of people whose catches these are.
    """

    adversary: Adversary | None
    code: str
    name: str | Promise
    model: str
    share: Rate
    clusters: int


def can_transfer(config: TaskConfig) -> bool:
    """Return whether a rule can say that a model is wrong, without the author of a text."""
    return config.verdict.type != "ask_user"


def list_catches(task: Task) -> list[Catch]:
    """Return at most MAX_CATCHES confirmed catches of each board row.

    Left out are rows of sealed test sets and rows that are held back. Three queries.
    """
    codes = _find_codes(task)
    runs = dict(
        AdversaryTry.objects.filter(adversary__task=task, example__isnull=False).values_list(
            "example", "run"
        )
    )
    catches, counts = [], defaultdict[str, int](int)
    # Ids are random, so the first ones are a random choice, and the same one each time.
    columns = ("pk", "annotator", "by_program", *HELP_COLUMNS, "is_public")
    for pk, author, is_program, arm, suggestion, is_public in (
        _select_catches(task).order_by("uuid").values_list(*columns)
    ):
        code = find_code(author, is_program, arm, suggestion, codes)
        if not code or counts[code] >= MAX_CATCHES:
            continue
        counts[code] += 1
        cluster = runs.get(pk) if is_program else author
        catches.append(Catch(pk, code, cluster, may_leave=is_program or is_public))
    return catches


def _find_codes(task: Task) -> dict[int, str]:
    """Return the board code of each adversary by the id of its annotator."""
    pairs = task.adversaries.values_list("annotator", "pk")
    return {annotator_id: str(pk) for annotator_id, pk in pairs}


def _select_board_rounds(task: Task) -> QuerySet[AdversaryRun, Any]:
    return AdversaryRun.objects.filter(adversary__task=task).values("round")


def _select_catches(task: Task) -> QuerySet[Example]:
    """Select the catches whose texts are in no sealed set, each with `is_public`."""
    items = DatasetItem.objects.filter(example=OuterRef("pk"))
    # Held back rows stay out after their day, too, since a date must not decide what leaves.
    is_secret = Q(split=Split.HELD) | Q(split=Split.TEST, dataset__options__private_test=True)
    released_items = items.filter(dataset__state=Dataset.State.DONE)
    # A closed round's set has all its verified texts of people, and none of programs.
    sets_of_its_round = EvaluationSetVersion.objects.filter(evaluation_set__round=OuterRef("round"))
    return (
        Example.objects.filter(
            build_measure_condition("catches"),
            round__in=_select_board_rounds(task),
            **STANDING_CONDITIONS,
        )
        .exclude(digest="")  # erased
        .filter(~Exists(items.filter(is_secret)))
        .annotate(is_public=Exists(released_items))
        .filter(Q(by_program=True) | Q(is_public=True) | ~Exists(sets_of_its_round))
    )


def find_asked_targets(task: Task) -> dict[str, set[int]]:
    """Return the ids of the models that each board row has asked, by the row's code. Five queries.

    They are those noted by an adversary's runs, those of its rounds or of the rounds in which
    people wrote, and those that answered an example of the row.
    """
    codes, asked = _find_codes(task), defaultdict[str, set[int]](set)
    runs = AdversaryRun.objects.filter(adversary__task=task).order_by()
    # Of the runs, and of their rounds: a worker of an older version notes nothing.
    for path in ("asked_targets", "round__round_targets__target"):
        pairs = runs.filter(**{f"{path}__isnull": False}).values_list("adversary", path)
        for adversary_id, target_id in pairs.distinct():
            asked[str(adversary_id)].add(target_id)
    round_targets = RoundTarget.objects.filter(round__in=_select_board_rounds(task))
    round_target_ids = set(round_targets.order_by().values_list("target", flat=True))
    for code in PEOPLE_NAMES:
        asked[code] |= round_target_ids
    # Withdrawn examples count as well: their models were asked.
    outputs = TargetOutput.objects.filter(example__round__in=_select_board_rounds(task))
    columns = ["annotator", "by_program", *HELP_COLUMNS]
    paths = [f"example__{column}" for column in columns]
    for author, is_program, arm, suggestion, target_id in (
        outputs.order_by().values_list(*paths, "target").distinct()
    ):
        asked[find_code(author, is_program, arm, suggestion, codes)].add(target_id)
    return dict(asked)


def select_other_models(task: Task) -> QuerySet[TargetModel]:
    """Select the task's models that can be asked."""
    return task.targets.exclude(adapter=IMPORTED_ADAPTER).order_by("pk")


def list_questions(
    task: Task, catches: Sequence[Catch], asked: Mapping[str, set[int]]
) -> list[TransferQuestion]:
    """Return what no model was asked about yet, model after model. Two queries."""
    known_pairs = set(
        _select_answers(catches)
        .exclude(state=TransferAnswer.State.WAITING)
        .values_list("target", "example")
    )
    questions = []
    for target in select_other_models(task):
        for catch in catches:
            is_other = target.pk not in asked.get(catch.code, ())
            # A model without an address of its own is on the site's model server.
            may_read = catch.may_leave or not target.url
            if is_other and may_read and (target.pk, catch.example) not in known_pairs:
                questions.append(TransferQuestion(target, catch.example))
    return questions


def _select_answers(catches: Sequence[Catch]) -> QuerySet[TransferAnswer]:
    return TransferAnswer.objects.filter(example__in=[catch.example for catch in catches])


def build_transfer_rows(task: Task) -> list[TransferRow]:
    """Return the share of each row's catches that fool each other model, by row and model.

    The interval is clustered by run, or by person. Models that answered nothing have no row. Ten
    queries.
    """
    catches = list_catches(task)
    if not catches:
        return []
    asked = find_asked_targets(task)
    catch_by_example = {catch.example: catch for catch in catches}
    samples = defaultdict[tuple[str, str, str], list[tuple[int | None, bool]]](list)
    answers = _select_answers(catches).filter(is_fooled__isnull=False)
    columns = ("target", "target__name", "submission", "submission__name", "example", "is_fooled")
    for (
        target_id,
        target_name,
        submission_id,
        submission_name,
        example_id,
        is_fooled,
    ) in answers.values_list(*columns):
        catch = catch_by_example[example_id]
        # Also if the row has asked this model since.
        if target_id not in asked.get(catch.code, ()):
            # Of submitted models several may have one name.
            key = (catch.code, target_name or submission_name, str(submission_id or ""))
            samples[key].append((catch.cluster, is_fooled))
    adversaries = {str(one.pk): one for one in task.adversaries.all()}
    rows = []
    for (code, model, _submission_id), sample in sorted(samples.items()):
        share = compute_share_by_author((one, 1) for one in sample)
        assert isinstance(share, Rate)  # no sample is empty
        adversary = adversaries.get(code)
        name = adversary.name if adversary else PEOPLE_NAMES[code]
        clusters = len({cluster for cluster, _is_fooled in sample})
        rows.append(TransferRow(adversary, code, name, model, share, clusters))
    return rows


def find_last_check(task: Task) -> TransferCheck | None:
    """Return the task's newest transfer check, or None."""
    return task.transfer_checks.first()


def find_current_check(task: Task) -> TransferCheck | None:
    """Return the task's queued or running transfer check, or None."""
    return task.transfer_checks.filter(state__in=UNFINISHED_STATES).first()


def list_evaluated_models(task: Task) -> QuerySet[Submission]:
    """Return the models of the task whose evaluations may be read: accepted, and still there."""
    return task.submissions.filter(state=Submission.State.DONE, withdrawn_at=None, emptied_at=None)
