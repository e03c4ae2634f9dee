"""Which failures of the models a campaign's people found, and which over and over."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from annotation.models import Example, TextKey
from annotation.rules.near_duplicates import written_text
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.novelty import clusters, weights
from dynabench.campaigns.selectors import fooling_of
from tasks.models import Task
from validation.models import Consensus
from validation.rules.claims import label_field

SHARED_KEYS = 1
"""Nearly equal texts share one of their eight keys with a probability of 99.7 %."""
MOST_SHOWN = 20
SMALLEST = 10
"""People of a group that is shown."""


@dataclass(frozen=True)
class Group:
    """Examples that are nearly the same: how many, and the first one's words."""

    size: int
    text: str


@dataclass(frozen=True)
class Coverage:
    """Verified fooling examples: how many by label and by challenge, and those that are alike."""

    total: int
    labels: list[tuple[str, int]]
    challenges: list[tuple[str, int]]
    groups: list[Group]


def coverage_of(campaign: Campaign) -> Coverage:
    """What was verified; three queries."""
    config, field = campaign.task.config, label_field(campaign.task.config)
    rows = {one.pk: one for one in _examples(campaign)}
    groups = clusters(_keys(set(rows)), SHARED_KEYS)
    labels = Counter(str(one.inputs.get(field, "")) for one in rows.values()) if field else {}
    challenges = Counter(one.challenge or "" for one in rows.values())
    return Coverage(
        len(rows),
        sorted(labels.items(), key=lambda one: -one[1]),
        sorted(challenges.items(), key=lambda one: -one[1]),
        [
            Group(len(group), written_text(config, rows[group[0]].inputs))
            for group in groups[:MOST_SHOWN]
            if len(group) > 1
        ],
    )


def novelty_of(task: Task) -> dict[int, float]:
    """Of each verified fooling example of a task, by id, the share of a bonus it is worth."""
    errors = Consensus.objects.filter(example__round__task=task, is_validated_error=True)
    ids = set(errors.values_list("example", flat=True))
    return weights(clusters(_keys(ids), SHARED_KEYS))


def _examples(campaign: Campaign) -> list[Example]:
    return [one.example for one in fooling_of(campaign).select_related("example").order_by("pk")]


def _keys(ids: set[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set, {one: set() for one in ids})
    for example, key in TextKey.objects.filter(example__in=ids).values_list("example", "key"):
        found[example].add(key)
    return found


def groups_of(campaign: Campaign) -> list[tuple[str, int]]:
    """What people told of themselves, in groups of at least `SMALLEST`; no group of two facts."""
    told = campaign.all_places.exclude(annotator=None).values_list("about", flat=True)
    counts = Counter(value for about in told for value in about.values())
    return sorted((value, n) for value, n in counts.items() if n >= SMALLEST)
