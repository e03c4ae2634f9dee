"""A campaign's cost by part: pay, votes on its examples, model calls, evaluations."""

from django.db.models import Count, F, FloatField, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from annotation.models import Example, TargetOutput
from core.text.money import get_decimals
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.rules.cost import CostParts, price_time, sum_rounded
from evaluation.kinds import list_kind_names
from evaluation.models import EvaluationRun
from tasks.models import ModelUse, TargetModel
from validation.models import Consensus, Validation

PRICE_KEYS = ("price_in", "price_out")


def calculate_cost_parts(campaign: Campaign, examples: QuerySet[Example], people: int) -> CostParts:
    """Return what a campaign has cost so far, by part. Eight queries.

    examples: the campaign's examples. people: the cost of the participants' pay, including fee
    and tax.
    """
    return CostParts(
        people,
        judges=sum_rounded(_price_judges(campaign, examples)),
        model_calls=sum_rounded(_price_answers(campaign, examples)),
        evaluation=sum_rounded(_price_runs(campaign, examples)),
    )


def _price_judges(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Return the price of each judge's votes on the examples, None where unknown.

    Judges from another campaign cost that campaign's pay per judgement; other judges cost
    the round's pay. The campaign's own participants are covered by its pay.
    """
    # Imported votes were paid elsewhere, if at all.
    votes = Validation.objects.filter(example__in=examples, is_imported=False)
    vote_groups = votes.values("validator", pays=F("example__round__pay_validation"))
    rows = list(vote_groups.annotate(n=Count("pk")))
    places = Place.objects.filter(
        annotator__in={row["validator"] for row in rows}, campaign__task=campaign.task
    )
    vote_prices = {
        place.annotator_id: _find_vote_price(place.campaign, campaign)
        for place in places.select_related("campaign")
    }
    prices: list[float | None] = []
    for row in rows:
        vote_price = vote_prices.get(row["validator"], row["pays"] or None)
        if vote_price is None:
            prices.append(None)
        else:
            prices.append(vote_price * row["n"])
    return prices


def _find_vote_price(judging_campaign: Campaign, campaign: Campaign) -> float | None:
    """Return the price of one vote by a participant of `judging_campaign`; 0 if that is `campaign`.

    None if the vote is paid together with other work, or in another currency.
    """
    if judging_campaign == campaign:
        return 0.0
    if (
        judging_campaign.kind != Campaign.Kind.JUDGE
        or judging_campaign.currency != campaign.currency
    ):
        return None
    return judging_campaign.pay.add_costs(judging_campaign.pay_task) / judging_campaign.each


def _price_answers(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Return the price of each target's answers to the examples in each round, None where unknown.

    If tokens have a price, the examples bear their share of the cost of all the target's
    calls in the round. Time on the site's model server is charged at the campaign's hourly price.
    """
    # The default order would add its columns to each GROUP BY.
    answers = TargetOutput.objects.order_by()
    own_answers = answers.filter(example__in=examples).values("target", "example__round")
    rows = list(own_answers.annotate(n=Count("pk"), seconds=Sum("seconds")))
    rounds = {row["example__round"] for row in rows}
    targets = TargetModel.objects.in_bulk({row["target"] for row in rows})
    all_answers = answers.filter(example__round__in=rounds).values_list("target", "example__round")
    answer_counts = {}
    for target_id, round_id, n in all_answers.annotate(n=Count("pk")):
        answer_counts[target_id, round_id] = n
    uses = ModelUse.objects.filter(round__in=rounds).values_list("target", "round")
    cost_by_use = {}
    for target_id, round_id, cost in uses.annotate(cost=Sum("cost")):
        cost_by_use[target_id, round_id] = cost
    prices: list[float | None] = []
    for row in rows:
        target, key = targets[row["target"]], (row["target"], row["example__round"])
        if any(target.options.get(price) for price in PRICE_KEYS):
            # Prices of tokens are in whole units of a currency, ours in its smallest unit.
            share = cost_by_use.get(key, 0.0) * row["n"] / answer_counts[key]
            prices.append(share * 10 ** get_decimals(campaign.currency))
        elif target.url:
            # An endpoint of somebody else, whose price nobody has stated.
            prices.append(None)
        else:
            prices.append(price_time(row["seconds"], campaign.machine_hour))
    return prices


def _price_runs(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Return the examples' share of the cost of evaluations on each round's sets.

    The share is the examples' fraction of the round's verified examples. None where unknown.
    """
    verified_decisions = Consensus.objects.filter(
        is_verified=True, example__retracted_at=None
    ).order_by()
    round_counts = verified_decisions.values_list("round").annotate(n=Count("pk"))
    own_counts = dict(round_counts.filter(example__in=examples))
    all_counts = dict(round_counts.filter(round__in=own_counts))
    seconds = Cast(KeyTextTransform("seconds", "usage"), FloatField())
    runs = EvaluationRun.objects.filter(version__evaluation_set__round__in=own_counts)
    # Remote submissions run on other people's machines.
    remote_kind_names = list_kind_names(lambda kind: kind.is_remote)
    runs = runs.exclude(submission__kind__in=remote_kind_names).order_by()
    seconds_by_round = runs.values_list("version__evaluation_set__round").annotate(
        seconds=Sum(seconds)
    )
    prices = []
    for round, seconds_spent in seconds_by_round:
        own_seconds = (seconds_spent or 0) * own_counts[round] / all_counts[round]
        prices.append(price_time(own_seconds, campaign.machine_hour))
    return prices
