"""Points of one person's examples and judgements, computed from the stored rows."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from django.db.models import Count
from django.utils import timezone

from annotation.models import Example
from annotation.rules.near_duplicates import compute_jaccard
from core.accounts.models import Annotator
from tasks.config.schema import TaskConfig
from tasks.models import Task
from validation.consensus.claims import find_label_field
from validation.judging.queue import UNDO_TIME
from validation.models import Consensus, Validation, Verdict
from validation.rates.agreement import Reliability, code_votes, reliabilities
from validation.rewards.points import example_points, novelty, scarcity

EARLIER = 50
"""How many of the author's earlier texts a text is compared with."""
LATEST = 200
"""How many of a person's latest judgements their agreement is taken from."""
MIN_JUDGEMENTS = 8
"""Judgements below which no agreement is shown."""


def points_of(author: Annotator, examples: Sequence[Example]) -> Mapping[int, float]:
    """Compute the points of the author's decided examples that are not retracted, by id.

    Examples by programs earn none. `examples` must be loaded with `round__task` and `consensus`.
    Three queries, and at most 50 comparisons for each example that fooled a model.
    """
    decided_examples = [e for e in examples if is_decided(e) and not e.by_program]
    # Only catches get points for novelty, so only their texts are compared.
    earlier = _earlier_texts(
        author, [e for e in decided_examples if e.consensus.is_validated_error]
    )
    verified_labels = _verified_labels({example.round_id for example in decided_examples})
    return {
        example.pk: example_points(
            verified=example.consensus.is_verified,
            is_wrong=_is_wrong(example.consensus),
            fooled=example.consensus.is_validated_error,
            novelty=_novelty(example, earlier.get(example.pk, [])),
            scarcity=_scarcity(example, verified_labels),
        )
        for example in decided_examples
    }


def is_decided(example: Example) -> bool:
    """Return whether an example that still counts has a consensus."""
    consensus = getattr(example, "consensus", None)
    return bool(
        consensus and consensus.state == Consensus.State.DECIDED and not example.retracted_at
    )


def _is_wrong(consensus: Consensus) -> bool:
    """Return whether people agree that the author's label is wrong."""
    return not consensus.is_verified and consensus.verdict not in (
        Verdict.CANNOT_TELL,
        Verdict.FLAGGED,
    )


def extract_written_text(config: TaskConfig, inputs: Mapping[str, object]) -> str:
    """Return the author's own text, without the fields that the verdict compares."""
    parts = (component for component in config.input if component.name not in config.target_fields)
    return " ".join(
        filter(None, (component.kind.own_words(inputs.get(component.name)) for component in parts))
    )


def _earlier_texts(author: Annotator, examples: Sequence[Example]) -> Mapping[int, list[str]]:
    """Return the texts with which each example is compared.

    These are the author's 50 texts before it that fooled a model in the same task, and another
    person's earlier text that was found to be nearly the same on submission.
    """
    tasks = {example.round.task_id: example.round.task for example in examples}
    fooling_ids: dict[int, list[int]] = {pk: [] for pk in tasks}
    rows = Example.objects.filter(
        annotator=author,
        round__task__in=tasks,
        outcome=Example.Outcome.FOOLED,
        retracted_at__isnull=True,
    )
    for pk, task in rows.order_by("pk").values_list("pk", "round__task"):
        fooling_ids[task].append(pk)
    earlier_ids: dict[int, list[int]] = {}
    for example in examples:
        ids = fooling_ids[example.round.task_id]
        # The ids are sorted, so that the texts before this one are a slice.
        end = bisect_left(ids, example.pk)
        others = [example.resembles_id] if example.resembles_id else []
        earlier_ids[example.pk] = ids[max(0, end - EARLIER) : end] + others
    pks = set().union(*earlier_ids.values())
    earlier = Example.objects.filter(pk__in=pks).values_list("pk", "inputs", "round__task")
    texts = {pk: extract_written_text(tasks[task].config, inputs) for pk, inputs, task in earlier}
    texts_before: dict[int, list[str]] = {}
    for pk, ids in earlier_ids.items():
        texts_before[pk] = [texts[earlier_pk] for earlier_pk in ids]
    return texts_before


def _novelty(example: Example, earlier: Sequence[str]) -> float:
    text = extract_written_text(example.round.task.config, example.inputs)
    return novelty(max((compute_jaccard(text, other) for other in earlier), default=0.0))


def _verified_labels(rounds: set[int]) -> Mapping[int, Mapping[str, int]]:
    """Count the verified examples of each label, by round."""
    counts: dict[int, dict[str, int]] = {}
    rows = Consensus.objects.filter(
        round__in=rounds,
        is_verified=True,
        example__retracted_at__isnull=True,
        example__by_program=False,
    ).exclude(label="")
    for round, label, number in rows.values_list("round", "label").annotate(Count("pk")):
        counts.setdefault(round, {})[label] = number
    return counts


def _scarcity(example: Example, verified_labels: Mapping[int, Mapping[str, int]]) -> float:
    field, label = find_label_field(example.round.task.config), example.consensus.label
    if field is None or not label:
        return 0.0
    counts = verified_labels.get(example.round_id, {})
    labels = len(example.round.task.config.labels(field))
    return scarcity(counts.get(label, 0), sum(counts.values()), labels)


def agreement_by_task(validator: Annotator) -> Mapping[int, Reliability]:
    """Measure how well a person's latest 200 judgements agree with the others'. Two queries.

    Uses only examples that need no further vote, and only votes that can no longer be undone, so
    that nobody learns the others' answers before their own. Tasks with fewer than 8 are left out.
    """
    own_votes = Validation.objects.filter(
        validator=validator,
        # Neither history nor what a program judged is this person's care.
        is_imported=False,
        by_program=False,
        created_at__lt=timezone.now() - UNDO_TIME,
        example__consensus__still_needed=0,
        example__retracted_at__isnull=True,
    ).order_by("-created_at")
    latest = list(own_votes.values_list("example", flat=True)[:LATEST])
    rows = (
        Validation.objects.filter(example__in=latest)
        # Neither says what is right, so that it shows no agreement on it.
        .exclude(verdict__in=[Verdict.FLAGGED, Verdict.CANNOT_TELL])
        .values_list("example__round__task", "example", "validator", "label", "verdict")
    )
    votes: dict[int, list[tuple[int, int | None, str]]] = {}
    for task, example, person, label, verdict in rows:
        votes.setdefault(task, []).append((example, person, label or verdict))
    reliabilities_by_task = {
        task: reliabilities(code_votes(cast)).get(validator.pk) for task, cast in votes.items()
    }
    return {
        task: reliability
        for task, reliability in reliabilities_by_task.items()
        if reliability and reliability.items >= MIN_JUDGEMENTS
    }


def tasks_of(annotator: Annotator) -> list[Task]:
    """List the tasks in which a person has written or judged, by name."""
    wrote = Example.objects.filter(annotator=annotator).values("round__task")
    judged = Validation.objects.filter(validator=annotator).values("example__round__task")
    return list(Task.objects.filter(pk__in=wrote.union(judged)))
