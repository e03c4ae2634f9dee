"""What people said of the criteria of examples, counted by round."""

from collections.abc import Sequence

from annotation.models import TargetOutput
from tasks.config.verdicts import list_criteria
from tasks.models import Round
from validation.models import Consensus, Validation
from validation.rates.criteria_counts import CriteriaCounts


def count_criteria(rounds: Sequence[Round]) -> dict[int, CriteriaCounts]:
    """Return the counts of the criteria of rounds of one task, by the round's id. Three queries.

    Votes of programs, and examples that programs wrote or that were retracted, are left out.
    """
    rule = rounds[0].task.config.verdict
    counts = {round.pk: CriteriaCounts() for round in rounds}
    # In memory, as they are needed by example and come from three tables.
    votes: dict[int, list[Sequence[str]]] = {}
    cast_votes = Validation.objects.filter(
        example__round__in=rounds, by_program=False, judgements__isnull=False
    )
    for example_id, judgements in cast_votes.order_by("pk").values_list("example_id", "judgements"):
        votes.setdefault(example_id, []).append(judgements or ())
    outputs = TargetOutput.objects.filter(example__round__in=rounds, judgements__isnull=False)
    said = dict(outputs.values_list("example_id", "judgements"))
    rows = Consensus.objects.filter(
        round__in=rounds,
        judgements__isnull=False,
        example__retracted_at__isnull=True,
        example__by_program=False,
    ).values_list(
        *("round_id", "example_id", "example__annotator_id", "example__inputs"),
        *("judgements", "score"),
    )
    # Streamed, as a round may have a million examples.
    for round_id, example_id, author, inputs, judgements, score in rows.iterator(chunk_size=2000):
        counts[round_id].add_example(
            # Two unknown authors may be different people.
            ("unknown", example_id) if author is None else author,
            [criterion.points for criterion in list_criteria(rule, inputs)],
            votes.get(example_id, ()),
            consensus=judgements,
            score=score,
            said=said.get(example_id) or (),
        )
    return counts
