"""How many examples people must judge for a wanted interval, with and without a judge model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Sum

from tasks.models import ModelUse, Round, TargetModel, Task
from validation.consensus.vote_draws import DrawRule
from validation.models import Consensus, RoundPolicy, VoteDraw
from validation.rates.assisted_rates import (
    MIN_VOTED_EXAMPLES,
    VotePlan,
    compute_judge_correlation,
    compute_judge_kappa,
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

    example_count: the examples on which it was measured; 0 if it is assumed. kappa: Cohen's, of
    verdicts; None if it wasn't measured, or isn't defined.
    """

    value: float
    example_count: int = 0
    kappa: float | None = None


@dataclass(frozen=True)
class RoundVotePlan:
    """A plan with the assumptions on which it is based."""

    examples: int
    width: float
    expected_share: float
    correlation: JudgeCorrelation
    plan: VotePlan
    cost_per_example: float | None = None
    """In whole money, by the prices in the judge's options. None without prices or calls."""

    @property
    def judge_cost(self) -> float | None:
        """Return what the judge costs for all examples."""
        return None if self.cost_per_example is None else self.cost_per_example * self.examples

    @property
    def saved_examples(self) -> int | None:
        """Return the number of examples that people needn't judge because of the judge."""
        with_judge, without_judge = self.plan.with_judge, self.plan.without_judge
        if with_judge is None or without_judge is None:
            return None
        return without_judge - with_judge


def find_planned_rule(rounds: Sequence[Round]) -> DrawRule | None:
    """Return the rule of the latest of these rounds that has one; None without. One query."""
    rows = RoundPolicy.objects.filter(round__in=rounds, draw__isnull=False)
    policy_row = rows.order_by("-round__number").first()
    return policy_row.draw_rule if policy_row else None


def measure_judge_correlation(task: Task, rule: DrawRule | None = None) -> JudgeCorrelation:
    """Return the correlation of a judge model with people on the task's judged examples.

    It is assumed below MIN_MEASURED_EXAMPLES. Each drawn example is weighted by one over its
    chance, because more of those were drawn of which the judge was unsure. One query.

    rule: of its judge alone, with its instruction; None: of all judge models of the task.
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
    # Another model, or the same with another instruction, may agree with people less.
    if rule:
        draws = draws.filter(judge=rule.judge, prompt_digest=rule.prompt_digest)
    rows = draws.order_by("-pk").values_list(
        "judge_score", "example__consensus__is_verified", "chance"
    )[:MAX_MEASURED_EXAMPLES]
    triples = []
    for score, is_verified, chance in rows:
        if score is not None:  # the query says so already
            triples.append((score, float(is_verified), 1 / chance))
    if len(triples) < MIN_MEASURED_EXAMPLES:
        return JudgeCorrelation(ASSUMED_CORRELATION)
    correlation = compute_judge_correlation(triples)
    return JudgeCorrelation(correlation, len(triples), compute_judge_kappa(triples))


def measure_cost_per_example(rounds: Sequence[Round], rule: DrawRule) -> float | None:
    """Return what the rule's judge cost for each example of these rounds that it answered.

    In whole money, by the prices in the model's options. None without prices, or before it
    answered. Answers that couldn't be read cost, too. At most three queries.
    """
    judge = TargetModel.objects.filter(pk=rule.judge).first()
    if judge is None or judge.options.keys().isdisjoint(("price_in", "price_out")):
        return None
    draws = VoteDraw.objects.filter(judge=judge, round__in=rounds)
    # While it is down, examples are drawn that it was never asked about.
    example_count = draws.exclude(reason=VoteDraw.Reason.NO_ANSWER).count()
    uses = ModelUse.objects.filter(target=judge, round__in=rounds)
    cost = uses.aggregate(cost=Sum("cost", default=0))["cost"]
    # A server that tells no tokens only seems to be free.
    return float(cost) / example_count if example_count and cost else None


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
    rule = find_planned_rule(rounds)
    judge_correlation = (
        measure_judge_correlation(rounds[0].task, rule)
        if correlation is None
        else JudgeCorrelation(correlation)
    )
    plan = plan_votes(
        example_count, width, expected_share=expected_share, correlation=judge_correlation.value
    )
    cost = measure_cost_per_example(rounds, rule) if rule else None
    return RoundVotePlan(example_count, width, expected_share, judge_correlation, plan, cost)
