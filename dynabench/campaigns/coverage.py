"""Which failures of the models a campaign's people found, and which over and over."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from annotation.models import Example, TextKey
from annotation.rules.near_duplicates import compared, written_text
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.novelty import clusters, share
from dynabench.campaigns.selectors import fooling_of
from tasks.models import Task
from validation.models import Consensus, ExampleTag
from validation.rules.claims import label_field

MOST = 5000
"""So many of the newest verified errors are looked at."""
MOST_SHOWN = 20
MOST_ALIKE = 100
"""Most texts that one is compared with."""
SMALLEST = 10
"""People of a group that is shown."""


@dataclass(frozen=True)
class Group:
    """Examples that are nearly the same: how many, and the first one's words."""

    size: int
    text: str


@dataclass(frozen=True)
class Coverage:
    """Verified fooling examples: how many there are of each kind, and those that are alike.

    slices: by the slice's name.
    """

    total: int
    labels: list[tuple[str, int]]
    challenges: list[tuple[str, int]]
    tags: list[tuple[str, int]]
    slices: list[tuple[str, list[tuple[str, int]]]]
    groups: list[Group]


def coverage_of(campaign: Campaign) -> Coverage:
    """What was verified, the newest `MOST`; four queries."""
    config, field = campaign.task.config, label_field(campaign.task.config)
    rows = {one.pk: one for one in _examples(campaign)}
    groups = clusters(_keys(set(rows)))
    tags = ExampleTag.objects.filter(example__in=rows).values_list("name", flat=True)
    slices = [(name, _most(_values(rows.values(), name))) for name in config.slices]
    return Coverage(
        fooling_of(campaign).count() if len(rows) == MOST else len(rows),
        _most(str(one.inputs.get(field, "")) for one in rows.values()) if field else [],
        _most(one.challenge or "" for one in rows.values()),
        _most(tags.order_by()),
        [(name, found) for name, found in slices if found],
        [
            Group(len(group), written_text(config, rows[group[0]].inputs))
            for group in groups[:MOST_SHOWN]
            if len(group) > 1
        ],
    )


def _most(values: Iterable[str]) -> list[tuple[str, int]]:
    """Each value with how often it is there, the most frequent first."""
    return sorted(Counter(values).items(), key=lambda one: (-one[1], one[0]))


def _values(examples: Iterable[Example], name: str) -> Iterator[str]:
    """The values of a slice, each of a list."""
    for one in examples:
        value = {**one.context.fields, **one.inputs, **one.metadata}.get(name)
        yield from (str(each) for each in (value if isinstance(value, list) else [value]) if each)


def novelty_of(task: Task, fresh: Sequence[Consensus]) -> dict[int, float]:
    """Of newly verified errors, by id, the share of a bonus that each is worth.

    Compared are the verified errors of the task that share a signature and were written before.
    Three queries.
    """
    keys = _keys({one.pk for one in fresh})
    every = {key for own in keys.values() for key in own}
    sharing: dict[int, set[int]] = defaultdict(set)
    near = TextKey.objects.filter(key__in=every, round__task=task)
    for example, key in near.values_list("example", "key"):
        sharing[key].add(example)
    errors = Consensus.objects.filter(
        example__in={one for found in sharing.values() for one in found}, is_validated_error=True
    )
    texts = {
        one.pk: compared(task.config, one.example.inputs)
        for one in errors.select_related("example")
    }
    found = {}
    for one in fresh:
        before = {pk for key in keys[one.pk] for pk in sharing[key] if pk < one.pk} & texts.keys()
        earlier = [texts[pk] for pk in sorted(before)[:MOST_ALIKE]]
        found[one.pk] = share(compared(task.config, one.example.inputs), earlier)
    return found


def _examples(campaign: Campaign) -> list[Example]:
    """Oldest first, of the newest."""
    rows = fooling_of(campaign).select_related("example__context").order_by("-pk")[:MOST]
    return [one.example for one in reversed(rows)]


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
