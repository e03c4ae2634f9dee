"""Reads the people of a campaign whom evidence or the owner's rules propose, worst first."""

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
from validation.rates.rates import Rate, Undefined, rate
from validation.statistics.people import author_statistics, validator_statistics

if TYPE_CHECKING:
    from dynabench.campaigns.rules.evidence import CastVote, Proposal


@dataclass(frozen=True)
class QualityConcern:
    """A participant whose work the owner should check: evidence and broken rules.

    answers: number of possible answers to an item.
    """

    place: Place
    proposal: "Proposal | None"
    broken: Sequence[BrokenRule]
    answers: int
    is_paused: bool

    @property
    def evidence(self) -> dict[str, Any]:
        """Return the evidence to show and store; other people appear only as a number."""
        evidence: dict[str, Any] = {"answers": self.answers}
        if self.proposal:
            evidence |= asdict(self.proposal)
            # The ids of judges: the person reads this evidence, too.
            del evidence["judge"]
            evidence["copies"] = len(self.proposal.copies)
        evidence["broken"] = [rule._asdict() for rule in self.broken]
        return evidence


def list_possible_answers(task: Task) -> list[str]:
    """Return the possible answers to an item: the task's labels, or the verdicts."""
    name = find_label_field(task.config)
    return list(task.config.component(name).values) if name else ["correct", "incorrect"]


def find_quality_concerns(campaign: Campaign) -> list[QualityConcern]:
    """Return the participants whose work looks careless by the evidence, or breaks an owner's rule.

    Considers all their work in the task. Worst first; paused people last. Votes that flag
    an item or answer "cannot tell" are ignored for accuracy.
    """
    from dynabench.campaigns.rules.evidence import propose_judges  # numpy: not in each web process

    answers = list_possible_answers(campaign.task)
    votes, gold = _read_votes(campaign.task, answers)
    authors = _read_author_labels(campaign.task, answers)
    proposal_of = {
        proposal.judge: proposal for proposal in propose_judges(votes, gold, len(answers), authors)
    }
    broken_by = _find_broken_rules(campaign, len(answers))
    named = proposal_of.keys() | broken_by.keys()
    # People of the task who take part in this campaign and have begun to work in it.
    places = campaign.all_places.filter(annotator__in=named).exclude(began_at=None)
    # One query for all of them: the page lists every judge whom the evidence names.
    paused_place_ids = set(
        Pause.objects.filter(place__in=places, lifted_at=None).values_list("place", flat=True)
    )
    concerns = [
        QualityConcern(
            place,
            proposal_of.get(place.annotator_id),  # type: ignore[arg-type]
            broken_by.get(place.annotator_id, ()),  # type: ignore[arg-type]
            len(answers),
            place.pk in paused_place_ids,
        )
        for place in places.select_related("annotator", "campaign__task")
    ]
    # Paused people last, as nothing is to be done about them now.
    return sorted(
        concerns, key=lambda concern: (concern.is_paused, concern.evidence.get("accuracy") or 0)
    )


def _find_broken_rules(campaign: Campaign, answers: int) -> dict[int, Sequence[BrokenRule]]:
    """Return the owner's rules that each person's work breaks, by the person's id."""
    rules = read_rules(campaign.own_rules)
    measures_of: dict[int, dict[str, MeasuredValue]] = defaultdict(dict)
    for person_id, name, measured_value in _measure_people(campaign.task, rules):
        measures_of[person_id][name] = measured_value
    broken_by: dict[int, Sequence[BrokenRule]] = {}
    for person_id, measures in measures_of.items():
        broken_rules = find_broken_rules(rules, measures, answers)
        if broken_rules:
            broken_by[person_id] = broken_rules
    return broken_by


def _measure_people(task: Task, rules: Sequence[Rule]) -> Iterator[tuple[int, str, MeasuredValue]]:
    """Yield (person's id, measure's name, value) for each measure that the rules need."""
    measured_roles = {MEASURES[rule.measure].of for rule in rules}
    # Statistics of a whole task are slow, and most campaigns have no rules.
    rounds = list(task.rounds.all()) if measured_roles else []
    shares: dict[str, Rate | Undefined]
    if "judges" in measured_roles:
        for judge in validator_statistics(rounds):
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
        for writer in author_statistics(rounds):
            shares = {
                "near-duplicates": rate(writer.duplicates, writer.tries),
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
    """Yield a person's median time, which has no interval, unless it is undefined."""
    if not isinstance(median, Undefined):
        yield person_id, f"{activity}-seconds", MeasuredValue(median, median, median, n)


def _read_votes(task: Task, answers: list[str]) -> "tuple[list[CastVote], dict[int, int]]":
    """Return all votes on the task's examples and gold, and the right answers of gold items.

    Answers are represented by their index in `answers`.
    """
    from dynabench.campaigns.rules.evidence import CastVote

    # The rules know answers by number, whatever the task calls them.
    number = {answer: place for place, answer in enumerate(answers)}
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
            if answer in number:
                cast_votes.append(CastVote(example, judge, number[answer], at.timestamp()))
    gold_items = Gold.objects.filter(example__round__task=task)
    right_answers = {}
    for example, label, verdict in gold_items.values_list("example", "label", "verdict"):
        answer = label or verdict
        if answer in number:
            right_answers[example] = number[answer]
    return cast_votes, right_answers


def _read_author_labels(task: Task, answers: list[str]) -> dict[int, int]:
    """Return the index of the author's label, by the id of each judged example.

    Empty if the task's judges give verdicts.
    """
    name = find_label_field(task.config)
    if not name:
        return {}
    judged = Validation.objects.filter(example__round__task=task, is_imported=False)
    # Without the default order, whose columns would make rows of one example distinct.
    labels = judged.order_by().values_list("example", f"example__inputs__{name}").distinct()
    return {example: answers.index(label) for example, label in labels if label in answers}
