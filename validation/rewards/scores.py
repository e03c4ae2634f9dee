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
from validation.rates.agreement import Reliability, compute_reliabilities, encode_votes
from validation.rewards.points import compute_example_points, compute_novelty, compute_scarcity

MAX_EARLIER_TEXTS = 50
"""The most earlier texts of the author with which a text is compared."""
MAX_LATEST_EXAMPLES = 200
"""A person's agreement is computed from at most this number of their latest judgements."""
MIN_JUDGEMENTS = 8
"""The fewest judgements for which an agreement is shown."""


def compute_points(author: Annotator, examples: Sequence[Example]) -> Mapping[int, float]:
    """Compute the points of the author's decided examples that are not retracted, by id.

    Examples by programs earn none. `examples` must be loaded with `round__task` and `consensus`.
    Three queries, and at most 50 comparisons for each example that fooled a model.
    """
    decided_examples = [
        other_example
        for other_example in examples
        if is_decided(other_example) and not other_example.by_program
    ]
    # Only catches get points for novelty, so only their texts are compared.
    earlier_texts = _find_earlier_texts(
        author,
        [
            other_example
            for other_example in decided_examples
            if other_example.consensus.is_validated_error
        ],
    )
    verified_labels = _count_verified_labels({example.round_id for example in decided_examples})
    return {
        example.pk: compute_example_points(
            is_verified=example.consensus.is_verified,
            is_wrong=_is_wrong(example.consensus),
            is_fooled=example.consensus.is_validated_error,
            novelty=_compute_novelty(example, earlier_texts.get(example.pk, [])),
            scarcity=_compute_scarcity(example, verified_labels),
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
    written_components = (
        component for component in config.input if component.name not in config.target_fields
    )
    return " ".join(
        filter(
            None,
            (
                component.kind.extract_authored_text(inputs.get(component.name))
                for component in written_components
            ),
        )
    )


def _find_earlier_texts(author: Annotator, examples: Sequence[Example]) -> Mapping[int, list[str]]:
    """Return the texts with which each example is compared.

    These are up to 50 earlier texts by the author that fooled a model in the same task. Another
    person's earlier text is added if it was found to be nearly the same on submission.
    """
    tasks = {example.round.task_id: example.round.task for example in examples}
    fooling_ids: dict[int, list[int]] = {example_id: [] for example_id in tasks}
    rows = Example.objects.filter(
        annotator=author,
        round__task__in=tasks,
        outcome=Example.Outcome.FOOLED,
        retracted_at__isnull=True,
    )
    for example_id, task in rows.order_by("pk").values_list("pk", "round__task"):
        fooling_ids[task].append(example_id)
    earlier_ids: dict[int, list[int]] = {}
    for example in examples:
        ids = fooling_ids[example.round.task_id]
        # The ids are sorted, so that the texts before this one are a slice.
        last = bisect_left(ids, example.pk)
        other_ids = [example.resembles_id] if example.resembles_id else []
        earlier_ids[example.pk] = ids[max(0, last - MAX_EARLIER_TEXTS) : last] + other_ids
    example_ids = set().union(*earlier_ids.values())
    earlier_rows = Example.objects.filter(pk__in=example_ids).values_list(
        "pk", "inputs", "round__task"
    )
    texts = {
        example_id: extract_written_text(tasks[task].config, inputs)
        for example_id, inputs, task in earlier_rows
    }
    texts_before: dict[int, list[str]] = {}
    for example_id, ids in earlier_ids.items():
        texts_before[example_id] = [texts[earlier_pk] for earlier_pk in ids]
    return texts_before


def _compute_novelty(example: Example, earlier_texts: Sequence[str]) -> float:
    text = extract_written_text(example.round.task.config, example.inputs)
    return compute_novelty(
        max((compute_jaccard(text, other) for other in earlier_texts), default=0.0)
    )


def _count_verified_labels(rounds: set[int]) -> Mapping[int, Mapping[str, int]]:
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


def _compute_scarcity(example: Example, verified_labels: Mapping[int, Mapping[str, int]]) -> float:
    field, label = find_label_field(example.round.task.config), example.consensus.label
    if field is None or not label:
        return 0.0
    counts = verified_labels.get(example.round_id, {})
    labels = len(example.round.task.config.get_labels(field))
    return compute_scarcity(counts.get(label, 0), sum(counts.values()), labels)


def compute_agreement_by_task(validator: Annotator) -> Mapping[int, Reliability]:
    """Measure how well a person's latest 200 judgements agree with the others'. Two queries.

    Uses only examples that need no further vote, and only votes that can no longer be undone. So
    nobody learns the others' answers before their own. Tasks with fewer than 8 such judgements are
    left out.
    """
    own_votes = Validation.objects.filter(
        validator=validator,
        # Imported votes and votes by programs do not show this person's care.
        is_imported=False,
        by_program=False,
        created_at__lt=timezone.now() - UNDO_TIME,
        example__consensus__still_needed=0,
        example__retracted_at__isnull=True,
    ).order_by("-created_at")
    latest = list(own_votes.values_list("example", flat=True)[:MAX_LATEST_EXAMPLES])
    rows = (
        Validation.objects.filter(example__in=latest)
        # Neither says which answer is correct, so they show no agreement.
        .exclude(verdict__in=[Verdict.FLAGGED, Verdict.CANNOT_TELL])
        .values_list("example__round__task", "example", "validator", "label", "verdict")
    )
    votes: dict[int, list[tuple[int, int | None, str]]] = {}
    for task, example, voter, label, verdict in rows:
        votes.setdefault(task, []).append((example, voter, label or verdict))
    reliabilities_by_task = {
        task: compute_reliabilities(encode_votes(votes_of_task)).get(validator.pk)
        for task, votes_of_task in votes.items()
    }
    return {
        task: reliability
        for task, reliability in reliabilities_by_task.items()
        if reliability and reliability.items >= MIN_JUDGEMENTS
    }


def list_tasks(annotator: Annotator) -> list[Task]:
    """List the tasks in which a person has written or judged, by name."""
    written_in = Example.objects.filter(annotator=annotator).values("round__task")
    judged_in = Validation.objects.filter(validator=annotator).values("example__round__task")
    return list(Task.objects.filter(pk__in=written_in.union(judged_in)))
