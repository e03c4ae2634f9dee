"""Reads the judges of a campaign whom the evidence proposes to an owner, worst first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynabench.campaigns.models import Campaign, Pause, Place
from tasks.models import Task
from validation.models import Gold, GoldAnswer, Validation
from validation.rules.claims import label_field

if TYPE_CHECKING:
    from dynabench.campaigns.rules.evidence import Cast, Proposal


@dataclass(frozen=True)
class Look:
    """Somebody whose judgements an owner should look at. answers: how many an item may have."""

    place: Place
    proposal: "Proposal"
    answers: int
    is_paused: bool

    @property
    def copied(self) -> int:
        """Of how many others theirs repeat the answers."""
        return len(self.proposal.copies)


def answers_of(task: Task) -> list[str]:
    """What may be said of an item: its labels, or a verdict."""
    name = label_field(task.config)
    return list(task.config.component(name).values) if name else ["correct", "incorrect"]


def looks_of(campaign: Campaign) -> list[Look]:
    """The people of a campaign whom `rules.evidence` names, by all votes of its task.

    Votes that flag an item, or cannot tell, say nothing of accuracy.
    """
    from dynabench.campaigns.rules.evidence import proposals  # numpy: not in each web process

    answers = answers_of(campaign.task)
    votes, gold = _cast(campaign.task, answers)
    found = {one.judge: one for one in proposals(votes, gold, len(answers))}
    places = campaign.all_places.filter(annotator__in=found).exclude(began_at=None)
    paused = set(
        Pause.objects.filter(place__in=places, lifted_at=None).values_list("place", flat=True)
    )
    looks = [
        Look(place, found[place.annotator_id], len(answers), place.pk in paused)  # type: ignore[index]
        for place in places.select_related("annotator", "campaign__task")
    ]
    return sorted(looks, key=lambda one: (one.is_paused, one.proposal.accuracy or 0))


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
