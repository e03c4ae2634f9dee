"""Shares of right answers of each model, by people's decisions: by model and by slice."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Case, CharField, Count, F, Value, When
from django.db.models.fields.json import KeyTextTransform

from annotation.models import Example
from core.text.words import gettext_noop
from tasks.models import Round
from validation.consensus.claims import RULE_VERDICTS, find_label_field, is_about_model
from validation.models import Consensus
from validation.rates.rates import Rate, Undefined, compute_share_by_author
from validation.statistics.counts import build_tag_expression, build_target_right

NONE_DECIDED_REASON = gettext_noop("people haven't decided any of the model's answers")
Shares = Mapping[str, Rate | Undefined]


class AnswerCount(NamedTuple):
    """The number of decided answers by one model, to texts with one tag, by one author."""

    model: str
    tag: str
    author: Hashable | None
    is_right: bool | None
    case_count: int


@dataclass(frozen=True)
class RightAnswers:
    """Shares of correct answers among decided answers, by model, and by tag and model."""

    by_model: Shares
    by_slice: Mapping[str, Shares]


def count_right_answers(rounds: Sequence[Round]) -> RightAnswers:
    """Compute the shares of correct answers in rounds of one task, without programs' examples.

    One query.
    An answer is correct if people decided that it is. If they choose labels instead, it is correct
    if it equals the decided label.
    Examples that were flagged or undecidable are left out.
    """
    by_model: dict[str, Counter[tuple[Hashable | None, bool]]] = defaultdict(Counter)
    by_slice: dict[str, dict[str, Counter[tuple[Hashable | None, bool]]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    answers = list(_iterate_answers(rounds)) if rounds else []
    names = _strip_task_prefixes({answer.model for answer in answers}, rounds)
    for answer in answers:
        if answer.is_right is not None:
            model = names[answer.model]
            by_model[model][answer.author, answer.is_right] += answer.case_count
            if answer.tag:
                by_slice[answer.tag][model][answer.author, answer.is_right] += answer.case_count
    return RightAnswers(
        _compute_shares(by_model),
        {tag: _compute_shares(models) for tag, models in sorted(by_slice.items())},
    )


def count_decided_labels(rounds: Sequence[Round]) -> Mapping[str, Mapping[str, int]]:
    """Count how often people decided for each label, by tag; "" has the counts of all texts.

    One query.
    Empty if people choose no label, or have decided nothing. Programs' examples are left out.
    """
    field = find_label_field(rounds[0].task.config) if rounds else None
    if field is None:
        return {}
    labels = rounds[0].task.config.get_component(field).values
    decided_examples = Example.objects.filter(
        round__in=rounds,
        retracted_at=None,
        by_program=False,
        consensus__state=Consensus.State.DECIDED,
        consensus__label__in=labels,
    )
    counts_by_tag: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(labels, 0))
    rows = (
        decided_examples.order_by()
        .annotate(part=build_tag_expression())
        .values_list("part", "consensus__label")
    )
    for tag, label, case_count in rows.annotate(Count("pk")):
        # A set, so that a text without a tag counts once.
        for group in {"", tag}:
            counts_by_tag[group][label] += case_count
    return dict(sorted(counts_by_tag.items()))


def _strip_task_prefixes(models: Collection[str], rounds: Sequence[Round]) -> Mapping[str, str]:
    """Return the models' original names, without the task's code that imported ones begin with.

    If two names would become equal, all names are returned unchanged.
    """
    plain_names = {model: model.removeprefix(f"{rounds[0].task.code}_") for model in models}
    # Without the code, two models may share a name; then all keep their full names.
    is_clear = len(set(plain_names.values())) == len(plain_names)
    return plain_names if is_clear else {model: model for model in models}


def _compute_shares(counts_by_model: Mapping[str, Counter[tuple[Hashable | None, bool]]]) -> Shares:
    return {
        model: compute_share_by_author(counts.items(), NONE_DECIDED_REASON)
        for model, counts in sorted(counts_by_model.items())
    }


def _iterate_answers(rounds: Sequence[Round]) -> Iterator[AnswerCount]:
    config = rounds[0].task.config
    field = find_label_field(config)
    has_answer = is_about_model(config, Example.Outcome.UNDECIDED)
    # If a rule decides, its outcome says whether the answer is right, not the votes.
    asks_about_model = has_answer and config.verdict.type not in RULE_VERDICTS
    # With several models, each has its own outcome; otherwise the example's counts.
    outcome_case = Case(
        When(target_outputs__fooled=True, then=Value(Example.Outcome.FOOLED)),
        When(target_outputs__fooled=False, then=Value(Example.Outcome.NOT_FOOLED)),
        default=F("outcome"),
        output_field=CharField(),
    )
    answer_value = (
        KeyTextTransform(field, "target_outputs__output") if field else Value(None, CharField())
    )
    decided_examples = Example.objects.filter(
        round__in=rounds,
        retracted_at=None,
        by_program=False,
        target_outputs__isnull=False,
        consensus__state=Consensus.State.DECIDED,
    )
    names = ("target_outputs__target__name", "part", "annotator_id", "result", "said")
    rows = decided_examples.order_by().annotate(
        part=build_tag_expression(), result=outcome_case, said=answer_value
    )
    answer_rows = rows.values_list(*names, "consensus__label", "consensus__verdict")
    for model, tag, author, result, answer, label, verdict, case_count in answer_rows.annotate(
        Count("pk")
    ):
        is_right = build_target_right([(label, verdict)], result, answer, asks_about_model)[0]
        yield AnswerCount(model, tag, author, is_right, case_count)
