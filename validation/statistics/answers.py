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
from validation.consensus.claims import BY_RULE, find_label_field, is_about_model
from validation.models import Consensus
from validation.rates.rates import Rate, Undefined, share_by_author
from validation.statistics.counts import tag_of, target_right

NONE_DECIDED = gettext_noop("people decided about none of its answers")
Shares = Mapping[str, Rate | Undefined]


class Answers(NamedTuple):
    """Counts of decided answers by one model, to texts with one tag, by one author."""

    model: str
    tag: str
    author: Hashable | None
    right: bool | None
    times: int


@dataclass(frozen=True)
class RightAnswers:
    """Shares of correct answers among decided ones, by model, and for each tag by model."""

    by_model: Shares
    by_slice: Mapping[str, Shares]


def right_answers(rounds: Sequence[Round]) -> RightAnswers:
    """Compute the shares of correct answers in rounds of one task, without programs' examples.

    One query.
    An answer is correct if people decided so or, if they choose labels, if it is the decided label.
    Examples that were flagged or undecidable are left out.
    """
    by_model: dict[str, Counter[tuple[Hashable | None, bool]]] = defaultdict(Counter)
    by_slice: dict[str, dict[str, Counter[tuple[Hashable | None, bool]]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    answers = list(_answers(rounds)) if rounds else []
    names = _strip_task_prefixes({answer.model for answer in answers}, rounds)
    for answer in answers:
        if answer.right is not None:
            model = names[answer.model]
            by_model[model][answer.author, answer.right] += answer.times
            if answer.tag:
                by_slice[answer.tag][model][answer.author, answer.right] += answer.times
    return RightAnswers(
        _shares(by_model), {tag: _shares(models) for tag, models in sorted(by_slice.items())}
    )


def decided_labels(rounds: Sequence[Round]) -> Mapping[str, Mapping[str, int]]:
    """Count how often people decided for each label: of all texts under "", and for each tag.

    One query.
    Empty if people choose no label, or have decided nothing. Programs' examples are left out.
    """
    field = find_label_field(rounds[0].task.config) if rounds else None
    if field is None:
        return {}
    labels = rounds[0].task.config.component(field).values
    decided_examples = Example.objects.filter(
        round__in=rounds,
        retracted_at=None,
        by_program=False,
        consensus__state=Consensus.State.DECIDED,
        consensus__label__in=labels,
    )
    counts_by_tag: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(labels, 0))
    kinds = (
        decided_examples.order_by().annotate(part=tag_of()).values_list("part", "consensus__label")
    )
    for tag, label, times in kinds.annotate(Count("pk")):
        # A set, so that a text without a tag counts once.
        for group in {"", tag}:
            counts_by_tag[group][label] += times
    return dict(sorted(counts_by_tag.items()))


def _strip_task_prefixes(models: Collection[str], rounds: Sequence[Round]) -> Mapping[str, str]:
    """Return the models' original names; here imported ones have the task's code as prefix."""
    plain_names = {model: model.removeprefix(f"{rounds[0].task.code}_") for model in models}
    # Without the code two models may have one name; then all keep the whole name.
    is_clear = len(set(plain_names.values())) == len(plain_names)
    return plain_names if is_clear else {model: model for model in models}


def _shares(counts_by_model: Mapping[str, Counter[tuple[Hashable | None, bool]]]) -> Shares:
    return {
        model: share_by_author(some.items(), NONE_DECIDED)
        for model, some in sorted(counts_by_model.items())
    }


def _answers(rounds: Sequence[Round]) -> Iterator[Answers]:
    config = rounds[0].task.config
    field = find_label_field(config)
    asks_answer = is_about_model(config, Example.Outcome.UNDECIDED)
    # Where a rule decides, its outcome tells whether the answer is right, not the votes.
    about_model = asks_answer and config.verdict.type not in BY_RULE
    # Of several models each has its own outcome; without one the example's counts.
    fooled_case = Case(
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
        part=tag_of(), result=fooled_case, said=answer_value
    )
    kinds = rows.values_list(*names, "consensus__label", "consensus__verdict")
    for model, tag, author, result, answer, label, verdict, times in kinds.annotate(Count("pk")):
        right = target_right([(label, verdict)], result, answer, about_model)[0]
        yield Answers(model, tag, author, right, times)
