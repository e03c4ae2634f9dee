"""Validation's answers to what tasks ask (`tasks.questions`)."""

from django.db.models import Sum

from tasks import questions
from tasks.budgets import UsedBudget
from tasks.models import Round


@questions.get_used_budget.answer
def used_of(round: Round) -> UsedBudget:
    """Return the numbers of examples, catches and votes. Counts only those with a limit."""
    budget = round.budget
    has_money = budget.money is not None
    counts_examples = has_money or budget.collected is not None
    counts_catches = has_money or budget.fooling is not None
    # What programs write uses up no budget.
    human_examples = round.examples.filter(retracted_at__isnull=True, by_program=False)
    example_count = catch_count = vote_count = 0
    if counts_examples:
        example_count = human_examples.count()
    if counts_catches:
        catch_count = human_examples.filter(
            consensus__round=round, consensus__is_validated_error=True
        ).count()
    if has_money:
        # Withdrawn examples too, as their votes have cost money.
        judged = round.examples.filter(consensus__round=round)
        vote_count = judged.aggregate(n=Sum("consensus__votes"))["n"] or 0
    return UsedBudget(collected=example_count, fooling=catch_count, votes=vote_count)
