"""How many examples people must judge for a wanted interval, with and without a judge model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.models import Round, Task
from validation.models import Consensus, VoteDraw
from validation.rates.assisted_rates import (
    MIN_VOTED_EXAMPLES,
    VotePlan,
    compute_judge_correlation,
    plan_votes,
)

UNKNOWN_SHARE = 0.5
"""The share that needs the most votes, for rounds without a catch rate."""
ASSUMED_CORRELATION = 0.6
"""The correlation with people of a judge that hasn't been measured: that of a good one."""
MIN_MEASURED_EXAMPLES = 3 * MIN_VOTED_EXAMPLES
MAX_MEASURED_EXAMPLES = 10_000


@dataclass(frozen=True)
class JudgeCorrelation:
    """The correlation of a judge model's answers with people's decisions.

    example_count: the examples on which it was measured; 0 if it is assumed.
    """

    value: float
    example_count: int = 0


@dataclass(frozen=True)
class RoundVotePlan:
    """A plan with the assumptions on which it is based."""

    examples: int
    width: float
    expected_share: float
    correlation: JudgeCorrelation
    plan: VotePlan


def measure_judge_correlation(task: Task) -> JudgeCorrelation:
    """Return the correlation of judge models with people on the task's judged examples.

    It is assumed below MIN_MEASURED_EXAMPLES. Each drawn example is weighted by one over its
    chance, because more of those were drawn of which the judge was unsure. One query.
    """
    draws = VoteDraw.objects.filter(
        round__task=task,
        is_drawn=True,
        judge_score__isnull=False,
        example__retracted_at__isnull=True,
        example__consensus__state=Consensus.State.DECIDED,
        # Owners decide on what they choose, so only votes are a sample.
        example__consensus__decided_by=Consensus.DecidedBy.VOTES,
    )
    rows = draws.order_by("-pk").values_list(
        "judge_score", "example__consensus__is_verified", "chance"
    )[:MAX_MEASURED_EXAMPLES]
    triples = []
    for score, is_verified, chance in rows:
        if score is not None:  # the query says so already
            triples.append((score, float(is_verified), 1 / chance))
    if len(triples) < MIN_MEASURED_EXAMPLES:
        return JudgeCorrelation(ASSUMED_CORRELATION)
    return JudgeCorrelation(compute_judge_correlation(triples), len(triples))


def plan_round_votes(
    rounds: Sequence[Round],
    numbers: Mapping[str, Any],
    width: float,
    correlation: float | None = None,
) -> RoundVotePlan | None:
    """Return how many examples people must judge for an interval of the catch rate.

    Parameters
    ----------
    rounds
        Rounds of one task, at least one.
    numbers
        Their numbers together, as `statistics.report` returns them in JSON.
    width
        The wanted width of the 95% interval (0-1).
    correlation
        Of the judge with people, from -1 to 1; None to measure it on the task's examples.

    Returns
    -------
    RoundVotePlan or None
        None if the rounds have no examples.

    Raises
    ------
    ValueError
        If `width` isn't positive.
    """
    example_count, catch_rate = numbers["collected"], numbers["vmer"]
    if not example_count:
        return None
    # A rate of exactly 0 or 1 would need no votes, which a few first examples can't tell.
    is_known = catch_rate is not None and 0 < catch_rate["value"] < 1
    expected_share = catch_rate["value"] if is_known else UNKNOWN_SHARE
    judge_correlation = (
        measure_judge_correlation(rounds[0].task)
        if correlation is None
        else JudgeCorrelation(correlation)
    )
    plan = plan_votes(
        example_count, width, expected_share=expected_share, correlation=judge_correlation.value
    )
    return RoundVotePlan(example_count, width, expected_share, judge_correlation, plan)
