"""Which failures of the models a campaign's people found, and which over and over."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Example, TextKey, TextVector
from annotation.rules.near_duplicates import compared, jaccard, written_text
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.novelty import clusters, novelty
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import fooling_of
from tasks.models import Task
from validation.models import Consensus, ExampleTag
from validation.rules.claims import label_field

MOST = 5000
"""So many of the newest verified errors are looked at."""
MOST_SHOWN = 20
MOST_ALIKE = 100
"""Most texts that one is compared with by words."""
MOST_COMPARED = 20_000
WAIT = timedelta(hours=1)
"""So long a bonus waits for a vector; without an encoder words alone tell then."""
LANGUAGE = "en"
"""Of the encoder."""
SMALLEST = 10
"""People of a group that is shown."""


@dataclass(frozen=True)
class Group:
    """Examples that are alike: how many, and the first one's words."""

    size: int
    text: str


@dataclass(frozen=True)
class Coverage:
    """Verified fooling examples: how many there are of each kind, and those that are alike.

    slices: by the slice's name. by_meaning: whether meanings were compared, not words alone.
    """

    total: int
    labels: list[tuple[str, int]]
    challenges: list[tuple[str, int]]
    tags: list[tuple[str, int]]
    slices: list[tuple[str, list[tuple[str, int]]]]
    groups: list[Group]
    by_meaning: bool


def coverage_of(campaign: Campaign) -> Coverage:
    """What was verified, the newest `MOST`; five queries."""
    from dynabench.campaigns.rules.meaning import pairs  # numpy: not in each web process

    config, field = campaign.task.config, label_field(campaign.task.config)
    rows = {one.pk: one for one in _examples(campaign)}
    _looked_at, vectors = _vectors(TextVector.objects.filter(example__in=rows))
    groups = clusters(_keys(set(rows)), pairs(vectors))
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
        bool(vectors),
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
    """Of newly verified errors, by id, the share of a bonus that each is worth; five queries.

    Compared are the verified errors of the task that were written before: by words those that
    share a signature, by meaning the newest `MOST_COMPARED`. Left out is whose vector may come yet.
    """
    from dynabench.campaigns.rules.meaning import closest  # numpy: not in each web process

    likest = _likest_words(task, fresh)
    errors = {"example__consensus__is_validated_error": True, "example__round__task": task}
    newest = TextVector.objects.filter(**errors).order_by("-pk")[:MOST_COMPARED]
    looked_at, vectors = _vectors(newest)
    meaning = closest(vectors, likest)
    soon = timezone.now() - WAIT if task.config.language == LANGUAGE else timezone.now()
    return {
        one.pk: novelty(likest[one.pk], meaning.get(one.pk, 0.0))
        for one in fresh
        if one.pk in looked_at or one.decided_at is None or one.decided_at <= soon
    }


def _likest_words(task: Task, fresh: Sequence[Consensus]) -> dict[int, float]:
    """Of each, Jaccard's similarity to the likest verified error before it."""
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
        own = compared(task.config, one.example.inputs)
        earlier = sorted(before)[:MOST_ALIKE]
        found[one.pk] = max((jaccard(own, texts[pk]) for pk in earlier), default=0.0)
    return found


def _vectors(rows: QuerySet[TextVector]) -> tuple[set[int], dict[int, bytes]]:
    """The examples that an encoder has looked at, and the vectors that the newest one made."""
    found = list(rows.values_list("example", "encoder", "values"))
    newest = max(found, default=(0, "", b""))[1]
    own = {pk: bytes(values) for pk, encoder, values in found if values and encoder == newest}
    return {pk for pk, _encoder, _values in found}, own


def _examples(campaign: Campaign) -> list[Example]:
    """Oldest first, of the newest."""
    rows = fooling_of(campaign).select_related("example__context").order_by("-pk")[:MOST]
    return [one.example for one in reversed(rows)]


def _keys(ids: set[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set, {one: set() for one in ids})
    for example, key in TextKey.objects.filter(example__in=ids).values_list("example", "key"):
        found[example].add(key)
    return found


def groups_of(campaign: Campaign) -> list[tuple[str, list[tuple[str, int]]]]:
    """What people told of themselves, by question, in groups of at least `SMALLEST`.

    There is no group of two facts, and none is joined to what people wrote.
    """
    told = list(campaign.all_places.exclude(annotator=None).values_list("about", flat=True))
    found = []
    for one in read_questionnaire(campaign.questions).about:
        said = (about.get(one.name, []) for about in told)
        counts = Counter(
            value for each in said for value in (each if isinstance(each, list) else [each])
        )
        large = [(one.kind.display(one, v), n) for v, n in counts.items() if n >= SMALLEST]
        found.append((one.title, sorted(large)))
    return [(title, groups) for title, groups in found if groups]
