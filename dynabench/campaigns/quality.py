"""Read the participants whose work looks careless, by evidence or by the owner's rules."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dynabench.campaigns.models import Campaign, Pause, Place
from dynabench.campaigns.rules.own_rules import (
    MEASURES,
    BrokenRule,
    MeasuredValue,
    Rule,
    find_broken_rules,
    read_rules,
)
from tasks.models import Task
from validation.consensus.claims import find_label_field
from validation.models import Gold, GoldAnswer, Validation
from validation.rates.rates import Rate, Undefined, compute_rate
from validation.statistics.people import list_author_statistics, list_validator_statistics

if TYPE_CHECKING:
    from dynabench.campaigns.rules.evidence import CastVote, Proposal


@dataclass(frozen=True)
class QualityConcern:
    """A participant whose work the owner should check: evidence and broken rules.

    answer_count: the number of possible answers to an item.
    """

    place: Place
    proposal: "Proposal | None"
    broken_rules: Sequence[BrokenRule]
    answer_count: int
    is_paused: bool

    @property
    def evidence(self) -> dict[str, Any]:
        """Return the evidence to show and store; other people appear only as a count."""
        evidence: dict[str, Any] = {"answers": self.answer_count}
        if self.proposal:
            evidence |= asdict(self.proposal)
            # The ids of judges: the person reads this evidence, too.
            del evidence["judge"]
            evidence["copies"] = len(self.proposal.copies)
        evidence["broken"] = [rule._asdict() for rule in self.broken_rules]
        return evidence


def list_possible_answers(task: Task) -> list[str]:
    """Return the possible answers to an item: the task's labels, or the verdicts if it has none."""
    name = find_label_field(task.config)
    return list(task.config.get_component(name).values) if name else ["correct", "incorrect"]


def find_quality_concerns(campaign: Campaign) -> list[QualityConcern]:
    """Return the participants whose work looks careless by the evidence, or breaks an owner's rule.

    All their work in the task is considered. The worst come first, paused people last. Votes that
    flag an item or say "cannot tell" don't count for accuracy.
    """
    from dynabench.campaigns.rules.evidence import propose_judges  # numpy: not in each web process

    answers = list_possible_answers(campaign.task)
    votes, gold = _read_votes(campaign.task, answers)
    authors = _read_author_labels(campaign.task, answers)
    proposals_by_judge = {
        proposal.judge: proposal for proposal in propose_judges(votes, gold, len(answers), authors)
    }
    broken_rules_by_person = _find_broken_rules(campaign, len(answers))
    flagged_ids = proposals_by_judge.keys() | broken_rules_by_person.keys()
    # People of the task who take part in this campaign and have begun to work in it.
    places = campaign.all_places.filter(annotator__in=flagged_ids).exclude(began_at=None)
    # One query for all of them: the page lists every judge whom the evidence names.
    paused_place_ids = set(
        Pause.objects.filter(place__in=places, lifted_at=None).values_list("place", flat=True)
    )
    concerns = [
        QualityConcern(
            place,
            proposals_by_judge.get(place.annotator_id),  # type: ignore[arg-type]
            broken_rules_by_person.get(place.annotator_id, ()),  # type: ignore[arg-type]
            len(answers),
            place.pk in paused_place_ids,
        )
        for place in places.select_related("annotator", "campaign__task")
    ]
    # Paused people last, as nothing is to be done about them now.
    return sorted(
        concerns, key=lambda concern: (concern.is_paused, concern.evidence.get("accuracy") or 0)
    )


def _find_broken_rules(campaign: Campaign, answer_count: int) -> dict[int, Sequence[BrokenRule]]:
    """Return the owner's rules that each person's work breaks, by the person's id."""
    rules = read_rules(campaign.own_rules)
    measures_by_person: dict[int, dict[str, MeasuredValue]] = defaultdict(dict)
    for person_id, name, measured_value in _measure_people(campaign.task, rules):
        measures_by_person[person_id][name] = measured_value
    broken_rules_by_person: dict[int, Sequence[BrokenRule]] = {}
    for person_id, measures in measures_by_person.items():
        broken_rules = find_broken_rules(rules, measures, answer_count)
        if broken_rules:
            broken_rules_by_person[person_id] = broken_rules
    return broken_rules_by_person


def _measure_people(task: Task, rules: Sequence[Rule]) -> Iterator[tuple[int, str, MeasuredValue]]:
    """Yield (person's id, measure's name, value) for each measure that the rules need."""
    measured_roles = {MEASURES[rule.measure].role for rule in rules}
    # Statistics of a whole task are slow, and most campaigns have no rules.
    rounds = list(task.rounds.all()) if measured_roles else []
    shares: dict[str, Rate | Undefined]
    if "judges" in measured_roles:
        for judge in list_validator_statistics(rounds):
            shares = {
                "agreement": judge.reliability,
                "gold": judge.gold,
                "unclear": judge.cannot_tell,
                "unread": judge.unread,
            }
            yield from _yield_shares(judge.annotator.pk, shares)
            yield from _yield_seconds(
                judge.annotator.pk, "judging", judge.median_seconds, judge.votes
            )
    if "writers" in measured_roles:
        for writer in list_author_statistics(rounds):
            shares = {
                "near-duplicates": compute_rate(writer.duplicates, writer.tries),
                "pasted": writer.paste_share,
                "refuted": writer.label_flip,
            }
            yield from _yield_shares(writer.annotator.pk, shares)
            yield from _yield_seconds(
                writer.annotator.pk, "writing", writer.median_seconds, writer.tries
            )


def _yield_shares(
    person_id: int, shares: dict[str, Rate | Undefined]
) -> Iterator[tuple[int, str, MeasuredValue]]:
    """Yield a person's defined shares with their intervals."""
    for name, share in shares.items():
        if isinstance(share, Rate):
            yield person_id, name, MeasuredValue(share.value, share.low, share.high, share.n)


def _yield_seconds(
    person_id: int, activity: str, median: float | Undefined, n: int
) -> Iterator[tuple[int, str, MeasuredValue]]:
    """Yield a person's median time as a value without an interval, unless it is undefined."""
    if not isinstance(median, Undefined):
        yield person_id, f"{activity}-seconds", MeasuredValue(median, median, median, n)


def _read_votes(task: Task, answers: list[str]) -> "tuple[list[CastVote], dict[int, int]]":
    """Return all votes on the task's examples and gold items, and the right answer by gold item.

    Answers are represented by their index in `answers`.
    """
    from dynabench.campaigns.rules.evidence import CastVote

    # The rules know answers by number, whatever the task calls them.
    answer_indices = {answer: index for index, answer in enumerate(answers)}
    names = ("validator", "label", "verdict", "created_at")
    # Imported votes were given elsewhere, by people who are in no campaign.
    votes = Validation.objects.filter(
        example__round__task=task, validator__isnull=False, is_imported=False
    ).values_list("example", *names)
    gold_answers = GoldAnswer.objects.filter(gold__example__round__task=task)
    cast_votes = []
    # The key of a gold item is its example's, so both kinds of answers name an example.
    for rows in (votes, gold_answers.values_list("gold", *names)):
        for example, judge, label, verdict, at in rows:
            answer = label or verdict
            if answer in answer_indices:
                cast_votes.append(CastVote(example, judge, answer_indices[answer], at.timestamp()))
    gold_items = Gold.objects.filter(example__round__task=task)
    right_answers = {}
    for example, label, verdict in gold_items.values_list("example", "label", "verdict"):
        answer = label or verdict
        if answer in answer_indices:
            right_answers[example] = answer_indices[answer]
    return cast_votes, right_answers


def _read_author_labels(task: Task, answers: list[str]) -> dict[int, int]:
    """Return the index of the author's label, by the id of each judged example.

    Empty if the task's judges give verdicts.
    """
    name = find_label_field(task.config)
    if not name:
        return {}
    judged_votes = Validation.objects.filter(example__round__task=task, is_imported=False)
    # Without the default order, whose columns would make rows of one example distinct.
    labels = judged_votes.order_by().values_list("example", f"example__inputs__{name}").distinct()
    return {example: answers.index(label) for example, label in labels if label in answers}
