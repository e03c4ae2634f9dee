"""Validation's answers to what tasks ask (`tasks.questions`)."""

from django.db.models import Sum

from tasks import questions
from tasks.budgets import UsedBudget
from tasks.models import Round


@questions.get_used_budget.answer
def compute_used_budget(round: Round) -> UsedBudget:
    """Return how much of the round's budget is used: examples, catches and votes.

    A number is counted only if a limit depends on it. Otherwise it is 0.
    """
    budget = round.budget
    has_spending_limit = budget.max_spent is not None
    should_count_examples = has_spending_limit or budget.max_collected is not None
    should_count_catches = has_spending_limit or budget.max_fooling is not None
    # Examples by programs do not count towards the budget.
    human_examples = round.examples.filter(retracted_at__isnull=True, by_program=False)
    example_count = catch_count = vote_count = 0
    if should_count_examples:
        example_count = human_examples.count()
    if should_count_catches:
        catch_count = human_examples.filter(
            consensus__round=round, consensus__is_validated_error=True
        ).count()
    if has_spending_limit:
        # Includes withdrawn examples, because their votes have cost money.
        judged_examples = round.examples.filter(consensus__round=round)
        vote_count = judged_examples.aggregate(n=Sum("consensus__votes"))["n"] or 0
    return UsedBudget(example_count, catch_count, vote_count)
