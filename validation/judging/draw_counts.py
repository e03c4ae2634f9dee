"""Reads of the draws that decide which examples people judge."""

from collections import Counter
from typing import NamedTuple

from django.db.models import Count

from tasks.models import Round, TargetModel
from validation.consensus.vote_draws import DrawRule
from validation.decisions.consensus_rows import build_configured_draw
from validation.models import RoundPolicy, VoteDraw


class DrawState(NamedTuple):
    """How a round draws what people judge, and what it has drawn.

    rule: None if people are asked about every new example. judge_name: None if there is no rule, or
    the judge was deleted. drawn, left_out, unanswered, unreadable: numbers of examples that aren't
    withdrawn. The unanswered ones, of which the judge said nothing, are drawn. So are the
    unreadable ones, of which it said none of the possible answers.
    """

    rule: DrawRule | None = None
    judge_name: str | None = None
    is_judge_down: bool = False
    drawn: int = 0
    left_out: int = 0
    unanswered: int = 0
    unreadable: int = 0

    @property
    def is_sampled(self) -> bool:
        """Return whether people were not asked about every example."""
        return self.left_out > 0


def read_draw_state(round: Round) -> DrawState:
    """Return how a round draws, and the numbers of its draws. At most four queries."""
    policy_row = RoundPolicy.objects.filter(round=round).first()
    rule = policy_row.draw_rule if policy_row else None
    # Before anybody judges, and until it opens, the task's file says what will be drawn.
    if policy_row is None or not (policy_row.is_draw_settled or round.opened_at or rule):
        rule = build_configured_draw(round)
    rows = VoteDraw.objects.filter(round=round, example__retracted_at__isnull=True).order_by()
    drawn_by_reason: Counter[str] = Counter()
    left_out = 0
    # At most a few rows, whatever the size of the round.
    for is_drawn, reason, count in rows.values_list("is_drawn", "reason").annotate(Count("pk")):
        if is_drawn:
            drawn_by_reason[reason] += count
        else:
            left_out += count
    judge_name = None
    if rule:
        judge_name = (
            TargetModel.objects.filter(pk=rule.judge).values_list("name", flat=True).first()
        )
    return DrawState(
        rule,
        judge_name,
        bool(policy_row and policy_row.judge_down_since),
        drawn_by_reason.total(),
        left_out,
        drawn_by_reason[VoteDraw.Reason.NO_ANSWER],
        drawn_by_reason[VoteDraw.Reason.UNREADABLE],
    )
