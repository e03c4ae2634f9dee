"""Reads the people of a campaign whom evidence or the owner's rules propose, worst first."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dynabench.campaigns.models import Campaign, Pause, Place
from dynabench.campaigns.rules.own_rules import (
    MEASURES,
    Broken,
    Measured,
    Rule,
    broken,
    read_rules,
)
from tasks.models import Task
from validation.models import Gold, GoldAnswer, Validation
from validation.rules.claims import label_field
from validation.rules.rates import Rate, Undefined, rate
from validation.statistics.people import author_statistics, validator_statistics

if TYPE_CHECKING:
    from dynabench.campaigns.rules.evidence import Cast, Proposal


@dataclass(frozen=True)
class Look:
    """Somebody whose work an owner should look at: what the evidence says, which rules are broken.

    answers: how many an item may have.
    """

    place: Place
    proposal: "Proposal | None"
    broken: Sequence[Broken]
    answers: int
    is_paused: bool

    @property
    def evidence(self) -> dict[str, Any]:
        """What is shown and stored of it; of others only how many."""
        told: dict[str, Any] = {"answers": self.answers}
        if self.proposal:
            told |= {**asdict(self.proposal), "copies": len(self.proposal.copies)}
            del told["judge"]
        return told | {"broken": [one._asdict() for one in self.broken]}


def answers_of(task: Task) -> list[str]:
    """What may be said of an item: its labels, or a verdict."""
    name = label_field(task.config)
    return list(task.config.component(name).values) if name else ["correct", "incorrect"]


def looks_of(campaign: Campaign) -> list[Look]:
    """The people of a campaign whom `rules.evidence` names, or who break a rule of the owner's.

    By all work in its task. Votes that flag an item, or cannot tell, say nothing of accuracy.
    """
    from dynabench.campaigns.rules.evidence import proposals  # numpy: not in each web process

    answers = answers_of(campaign.task)
    votes, gold = _cast(campaign.task, answers)
    authors = _authors(campaign.task, answers)
    found = {one.judge: one for one in proposals(votes, gold, len(answers), authors)}
    own = _broken(campaign, len(answers))
    places = campaign.all_places.filter(annotator__in={*found, *own}).exclude(began_at=None)
    paused = set(
        Pause.objects.filter(place__in=places, lifted_at=None).values_list("place", flat=True)
    )
    looks = [
        Look(
            place,
            found.get(place.annotator_id),  # type: ignore[arg-type]
            own.get(place.annotator_id, ()),  # type: ignore[arg-type]
            len(answers),
            place.pk in paused,
        )
        for place in places.select_related("annotator", "campaign__task")
    ]
    return sorted(looks, key=lambda one: (one.is_paused, one.evidence.get("accuracy") or 0))


def _broken(campaign: Campaign, answers: int) -> dict[int, Sequence[Broken]]:
    """By person the rules of the owner's that their work breaks."""
    rules = read_rules(campaign.own_rules)
    measured: dict[int, dict[str, Measured]] = defaultdict(dict)
    for who, name, one in _measured(campaign.task, rules):
        measured[who][name] = one
    found = {who: broken(rules, mine, answers) for who, mine in measured.items()}
    return {who: these for who, these in found.items() if these}


def _measured(task: Task, rules: Sequence[Rule]) -> Iterator[tuple[int, str, Measured]]:
    """Who, which measure, how much: of all people of the task, as far as rules ask for it."""
    asked = {MEASURES[rule.measure].of for rule in rules}
    rounds = list(task.rounds.all()) if asked else []
    known: dict[str, Rate | Undefined]
    for judge in validator_statistics(rounds) if "judges" in asked else ():
        known = {"agreement": judge.reliability, "gold": judge.gold, "unclear": judge.cannot_tell}
        known |= {"unread": judge.unread}
        yield from _shares(judge.annotator.pk, known)
        yield from _seconds(judge.annotator.pk, "judging", judge.median_seconds, judge.votes)
    for writer in author_statistics(rounds) if "writers" in asked else ():
        known = {
            "near-duplicates": rate(writer.duplicates, writer.tries),
            "pasted": writer.paste_share,
            "refuted": writer.label_flip,
        }
        yield from _shares(writer.annotator.pk, known)
        yield from _seconds(writer.annotator.pk, "writing", writer.median_seconds, writer.tries)


def _shares(who: int, known: dict[str, Rate | Undefined]) -> Iterator[tuple[int, str, Measured]]:
    for name, one in known.items():
        if isinstance(one, Rate):
            yield who, name, Measured(one.value, one.low, one.high, one.n)


def _seconds(
    who: int, what: str, median: float | Undefined, n: int
) -> Iterator[tuple[int, str, Measured]]:
    if not isinstance(median, Undefined):
        yield who, f"{what}-seconds", Measured(median, median, median, n)


def _cast(task: Task, answers: list[str]) -> "tuple[list[Cast], dict[int, int]]":
    """All votes on the task's examples and answers to gold, and the right answers of gold."""
    from dynabench.campaigns.rules.evidence import Cast

    number = {one: place for place, one in enumerate(answers)}
    names = ("validator", "label", "verdict", "created_at")
    votes = Validation.objects.filter(
        example__round__task=task, validator__isnull=False, is_imported=False
    ).values_list("example", *names)
    gold = GoldAnswer.objects.filter(gold__example__round__task=task)
    cast = [
        Cast(example, judge, number[label or verdict], at.timestamp())
        for example, judge, label, verdict, at in (*votes, *gold.values_list("gold", *names))
        if (label or verdict) in number
    ]
    known = Gold.objects.filter(example__round__task=task)
    right = {
        example: number[label or verdict]
        for example, label, verdict in known.values_list("example", "label", "verdict")
        if (label or verdict) in number
    }
    return cast, right


def _authors(task: Task, answers: list[str]) -> dict[int, int]:
    """The labels that authors gave what was judged; none where people give verdicts."""
    name = label_field(task.config)
    if not name:
        return {}
    judged = Validation.objects.filter(example__round__task=task, is_imported=False)
    labels = judged.order_by().values_list("example", f"example__inputs__{name}").distinct()
    return {example: answers.index(label) for example, label in labels if label in answers}
