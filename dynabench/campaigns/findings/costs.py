"""What a campaign has cost, by parts: pay, votes on its examples, calls of models, evaluations."""

from django.db.models import Count, F, FloatField, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from annotation.models import Example, TargetOutput
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.rules.cost import Parts, of_time, rounded
from dynabench.campaigns.rules.pay import decimals
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import REMOTE
from tasks.models import ModelUse, TargetModel
from validation.models import Consensus, Validation

PRICES = ("price_in", "price_out")


def parts_of(campaign: Campaign, examples: QuerySet[Example], people: int) -> Parts:
    """All parts, in eight queries. examples: of the campaign; people: what their pay comes to."""
    return Parts(
        people,
        judges=rounded(_judges(campaign, examples)),
        model_calls=rounded(_model_calls(campaign, examples)),
        evaluation=rounded(_evaluation(campaign, examples)),
    )


def _judges(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Of each judge, the price of their votes on the examples.

    Who came by another campaign costs what that one pays for a judgement; others what the round
    pays. The campaign's own people are in its pay.
    """
    votes = Validation.objects.filter(example__in=examples, is_imported=False)
    counted = votes.values("validator", pays=F("example__round__pay_validation"))
    rows = list(counted.annotate(n=Count("pk")))
    places = Place.objects.filter(
        annotator__in={row["validator"] for row in rows}, campaign__task=campaign.task
    )
    prices = {
        one.annotator_id: _of_a_vote(one.campaign, campaign)
        for one in places.select_related("campaign")
    }
    found = []
    for row in rows:
        price = prices.get(row["validator"], row["pays"] or None)
        found.append(None if price is None else price * row["n"])
    return found


def _of_a_vote(judges: Campaign, campaign: Campaign) -> float | None:
    """What a vote of somebody of another campaign costs; None where it is paid with other work."""
    if judges == campaign:
        return 0.0
    if judges.kind != Campaign.Kind.JUDGE or judges.currency != campaign.currency:
        return None
    return judges.pay.with_costs(judges.pay_task) / judges.each


def _model_calls(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Of each target in each round, what its answers to the examples cost.

    Where tokens have a price, the examples bear their share of all that the target's calls cost in
    the round; the time of our model server costs the price of its hour.
    """
    answers = TargetOutput.objects.order_by()
    mine = answers.filter(example__in=examples).values("target", "example__round")
    rows = list(mine.annotate(n=Count("pk"), seconds=Sum("seconds")))
    rounds = {row["example__round"] for row in rows}
    targets = TargetModel.objects.in_bulk({row["target"] for row in rows})
    every = answers.filter(example__round__in=rounds).values_list("target", "example__round")
    of = {(target, round): n for target, round, n in every.annotate(n=Count("pk"))}
    uses = ModelUse.objects.filter(round__in=rounds).values_list("target", "round")
    spent = {(target, round): cost for target, round, cost in uses.annotate(cost=Sum("cost"))}
    found = []
    for row in rows:
        target, key = targets[row["target"]], (row["target"], row["example__round"])
        if any(target.options.get(price) for price in PRICES):
            whole = spent.get(key, 0.0) * row["n"] / of[key]
            found.append(whole * 10 ** decimals(campaign.currency))
        else:
            found.append(None if target.url else of_time(row["seconds"], campaign.machine_hour))
    return found


def _evaluation(campaign: Campaign, examples: QuerySet[Example]) -> list[float | None]:
    """Of runs on each round's sets, the share that the campaign has in the verified examples."""
    verified = Consensus.objects.filter(is_verified=True, example__retracted_at=None).order_by()
    mine = dict(verified.filter(example__in=examples).values_list("round").annotate(n=Count("pk")))
    every = dict(verified.filter(round__in=mine).values_list("round").annotate(n=Count("pk")))
    seconds = Cast(KeyTextTransform("seconds", "usage"), FloatField())
    runs = EvaluationRun.objects.filter(version__evaluation_set__round__in=mine)
    runs = runs.exclude(submission__kind__in=REMOTE).order_by()
    spent = runs.values_list("version__evaluation_set__round").annotate(seconds=Sum(seconds))
    return [
        of_time((took or 0) * mine[round] / every[round], campaign.machine_hour)
        for round, took in spent
    ]
