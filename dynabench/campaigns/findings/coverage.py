"""Measure coverage: the model failures that a campaign's people found, once or repeatedly."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Example, TextKey, TextVector
from annotation.rules.near_duplicates import compute_jaccard, get_compared_text, get_written_text
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.novelty import cluster_examples, score_novelty
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import select_fooling_decisions
from tasks.models import Task
from validation.consensus.claims import find_label_field
from validation.models import Consensus, ExampleTag

MAX_ERRORS = 5000
"""The maximum number of verified errors to analyse, newest first."""
MAX_CANDIDATES = 100
"""The maximum number of earlier texts to compare a text with by words."""
MAX_COMPARED_VECTORS = 20_000
"""The maximum number of earlier texts to compare a text with by meaning."""
VECTOR_WAIT_TIME = timedelta(hours=1)
"""How long a bonus waits for a text's vector.

After that, or without an encoder, only words are compared.
"""
ENCODER_LANGUAGE = "en"
"""The only language that the encoder supports."""
MIN_GROUP_SIZE = 10
"""The smallest count to show, so that no count reveals a person's answer."""


@dataclass(frozen=True)
class SimilarExamples:
    """A group of similar examples: their number, and the text of the first."""

    size: int
    text: str


@dataclass(frozen=True)
class Coverage:
    """A campaign's verified fooling examples: counts by kind, and groups of similar ones.

    slices: counts by slice name. compares_meanings: whether meanings were compared, too, and not
    only words.
    """

    total: int
    labels: list[tuple[str, int]]
    challenges: list[tuple[str, int]]
    tags: list[tuple[str, int]]
    slices: list[tuple[str, list[tuple[str, int]]]]
    groups: list[SimilarExamples]
    compares_meanings: bool


def measure_coverage(campaign: Campaign) -> Coverage:
    """Return the coverage of the campaign's newest `MAX_ERRORS` verified errors. Five queries."""
    from dynabench.campaigns.rules.meaning import (
        find_similar_pairs,  # numpy: not in each web process
    )

    # None where people judge by verdict, and examples have no label.
    config, field = campaign.task.config, find_label_field(campaign.task.config)
    examples = {example.pk: example for example in _find_newest_examples(campaign)}
    _processed_ids, vectors = _read_vectors(TextVector.objects.filter(example__in=examples))
    clusters = cluster_examples(_read_signatures(set(examples)), find_similar_pairs(vectors))
    labels = []
    if field:
        labels = [str(example.inputs.get(field, "")) for example in examples.values()]
    tags = ExampleTag.objects.filter(example__in=examples).values_list("name", flat=True)
    slices = []
    for name in config.slices:
        counts = _count_values(_read_slice_values(examples.values(), name))
        if counts:
            slices.append((name, counts))
    # In the order of size, so a single example ends what is worth showing.
    groups = [
        SimilarExamples(len(cluster), get_written_text(config, examples[cluster[0]].inputs))
        for cluster in clusters
        if len(cluster) > 1
    ]
    return Coverage(
        # Fewer than the limit are all there are; only otherwise a query has to count them.
        select_fooling_decisions(campaign).count()
        if len(examples) == MAX_ERRORS
        else len(examples),
        labels=_count_values(labels),
        challenges=_count_values(example.challenge or "" for example in examples.values()),
        tags=_count_values(tags.order_by()),
        slices=slices,
        groups=groups,
        compares_meanings=bool(vectors),
    )


def _count_values(values: Iterable[str]) -> list[tuple[str, int]]:
    """Return each value with its count, the most frequent first."""
    return sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))


def _read_slice_values(examples: Iterable[Example], name: str) -> Iterator[str]:
    """Yield the examples' values of a slice; a list yields each of its values."""
    for example in examples:
        value = (example.context.fields | example.inputs | example.metadata).get(name)
        values = value if isinstance(value, list) else [value]
        yield from (str(value) for value in values if value)


def measure_novelty(task: Task, new_errors: Sequence[Consensus]) -> dict[int, float]:
    """Return the fraction of the bonus that each newly verified error earns, by example id.

    Each error is compared with the task's earlier verified errors: by words with errors that share
    a signature, by meaning with the newest `MAX_COMPARED_VECTORS`. The result lacks errors whose
    vector may still be computed. Five queries.
    """
    from dynabench.campaigns.rules.meaning import (
        find_closest_cosines,  # numpy: not in each web process
    )

    word_similarities = _compare_words(task, new_errors)
    errors = {"example__consensus__is_validated_error": True, "example__round__task": task}
    newest_vectors = TextVector.objects.filter(**errors).order_by("-pk")[:MAX_COMPARED_VECTORS]
    processed_ids, vectors = _read_vectors(newest_vectors)
    meaning_similarities = find_closest_cosines(vectors, word_similarities)
    vector_deadline = timezone.now()
    if task.config.language == ENCODER_LANGUAGE:
        # Workers make vectors within minutes. After a while nobody waits for one any more.
        vector_deadline -= VECTOR_WAIT_TIME
    shares = {}
    for error in new_errors:
        decided_at = error.decided_at
        if error.pk in processed_ids or decided_at is None or decided_at <= vector_deadline:
            shares[error.pk] = score_novelty(
                word_similarities[error.pk], meaning_similarities.get(error.pk, 0.0)
            )
    return shares


def _compare_words(task: Task, new_errors: Sequence[Consensus]) -> dict[int, float]:
    """Return each error's highest Jaccard similarity to an earlier verified error."""
    signatures = _read_signatures({error.pk for error in new_errors})
    # Only texts that share a signature can be near-duplicates, so that few are compared.
    examples_by_key: dict[int, set[int]] = defaultdict(set)
    near_keys = TextKey.objects.filter(key__in=set().union(*signatures.values()), round__task=task)
    for example, key in near_keys.values_list("example", "key"):
        examples_by_key[key].add(example)
    errors = Consensus.objects.filter(
        example__in=set().union(*examples_by_key.values()), is_validated_error=True
    )
    texts = {
        error.pk: get_compared_text(task.config, error.example.inputs)
        for error in errors.select_related("example")
    }
    similarities = {}
    for error in new_errors:
        near_ids = (
            set().union(*(examples_by_key[key] for key in signatures[error.pk])) & texts.keys()
        )
        earlier_ids = sorted(pk for pk in near_ids if pk < error.pk)[:MAX_CANDIDATES]
        own_text = get_compared_text(task.config, error.example.inputs)
        similarities[error.pk] = max(
            (compute_jaccard(own_text, texts[pk]) for pk in earlier_ids), default=0.0
        )
    return similarities


def _read_vectors(rows: QuerySet[TextVector]) -> tuple[set[int], dict[int, bytes]]:
    """Return the ids that an encoder has processed, and the newest encoder's vectors by id."""
    vectors = list(rows.values_list("example", "encoder", "values"))
    # Vectors of two encoders cannot be compared. The newest example was looked at by the newest.
    newest_encoder = max(vectors, default=(0, "", b""))[1]
    processed_ids, comparable_vectors = set(), {}
    for example, encoder, values in vectors:
        processed_ids.add(example)
        if values and encoder == newest_encoder:
            comparable_vectors[example] = bytes(values)
    return processed_ids, comparable_vectors


def _find_newest_examples(campaign: Campaign) -> list[Example]:
    """Return the campaign's newest `MAX_ERRORS` verified errors, oldest first."""
    rows = (
        select_fooling_decisions(campaign)
        .select_related("example__context")
        .order_by("-pk")[:MAX_ERRORS]
    )
    return [decision.example for decision in reversed(rows)]


def _read_signatures(example_ids: set[int]) -> dict[int, set[int]]:
    """Return the near-duplicate signatures of each example, by its id."""
    signatures: dict[int, set[int]] = {example: set() for example in example_ids}
    for example, key in TextKey.objects.filter(example__in=example_ids).values_list(
        "example", "key"
    ):
        signatures[example].add(key)
    return signatures


def count_answers_by_question(campaign: Campaign) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the participants' answers about themselves, counted by question.

    Only counts of at least `MIN_GROUP_SIZE` are listed. Answers are never combined with each
    other or with what people wrote.
    """
    about_answers = list(
        campaign.all_places.exclude(annotator=None).values_list("about", flat=True)
    )
    groups_by_question = []
    for question in read_questionnaire(campaign.questions).about:
        counts: Counter[Any] = Counter()
        for person_answers in about_answers:
            answer = person_answers.get(question.name, [])
            counts.update(answer if isinstance(answer, list) else [answer])
        groups = [
            (question.kind.display(question, value), n)
            for value, n in counts.items()
            if n >= MIN_GROUP_SIZE
        ]
        if groups:
            groups_by_question.append((question.title, sorted(groups)))
    return groups_by_question
