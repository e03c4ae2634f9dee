"""Dawid and Skene's model of a round's votes: fitted, stored, and shown with the consensus."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from tasks.models import Round
from validation.consensus.dawid_skene.fitting import Aggregation, dawid_skene
from validation.consensus.dawid_skene.posterior import Fitted
from validation.decisions.consensus_rows import round_policy_of
from validation.models import RoundPolicy, Validation
from validation.rates.agreement import MOST_CHOICES, code_votes
from validation.rates.rates import Undefined

GROWTH = 1.1
"""A model is fitted again once the round has so many times the votes that it is from."""


@dataclass(frozen=True, slots=True)
class ValidatorOpinion:
    """The model's estimate of a validator.

    reliability: the probability of giving the true label (0-1). confusion: true label to given
    label to probability.
    """

    annotator: Annotator
    reliability: float
    confusion: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A model fitted to all current labels.

    posteriors: example id to label to probability. validators: least reliable first.
    """

    labels: Sequence[str]
    prior: Mapping[str, float]
    posteriors: Mapping[int, Mapping[str, float]]
    validators: Sequence[ValidatorOpinion]
    warnings: Sequence[str]


def second_opinion(round: Round) -> SecondOpinion | Undefined:
    """Return the posterior of each example and the estimate of each validator. Two queries.

    All votes of the round are in memory at once.
    """
    estimates = _estimates(round)
    if isinstance(estimates, Undefined):
        return estimates
    people = Annotator.objects.in_bulk(cast(Sequence[int], estimates.validators))
    validators = [
        ValidatorOpinion(
            people[cast(int, who)],
            float(estimates.reliability[row]),
            {
                true: dict(zip(estimates.labels, shares, strict=True))
                for true, shares in zip(
                    estimates.labels, estimates.confusion[row].tolist(), strict=True
                )
            },
        )
        for row, who in enumerate(estimates.validators)
    ]
    return SecondOpinion(
        estimates.labels,
        dict(zip(estimates.labels, estimates.prior.tolist(), strict=True)),
        {cast(int, pk): estimates.posterior_of(row) for row, pk in enumerate(estimates.items)},
        sorted(validators, key=lambda estimate: estimate.reliability),
        estimates.warnings,
    )


def fit_model(round: Round) -> Fitted | None:
    """Fit the model that decides under dawid-skene.

    None without labels, or if there are too many different ones. Without a model the policy decides
    nothing.
    """
    estimates = _estimates(round)
    if isinstance(estimates, Undefined):
        return None
    return Fitted(
        list(estimates.labels),
        estimates.prior.tolist(),
        estimates.crowd.tolist(),
        {
            str(who): estimates.confusion[row].tolist()
            for row, who in enumerate(estimates.validators)
        },
        _labels(round).count(),
    )


def store_fitted_model(*, round: Round) -> Fitted | None:
    """Fit the model to the round's votes and store it for later votes. Takes no lock.

    None as in `fit_model`.
    """
    round_policy_of(round)
    model = fit_model(round)
    # Only this column: another request may change the policy of the row meanwhile.
    RoundPolicy.objects.filter(round=round).update(model=asdict(model) if model else None)
    return model


def is_stale(policy_row: RoundPolicy) -> bool:
    """Return whether there is no model, or the round has a tenth more votes than the model."""
    fitted = policy_row.fitted
    return fitted is None or _labels(policy_row.round).count() >= GROWTH * fitted.votes


def _estimates(round: Round) -> Aggregation | Undefined:
    # In a fixed order, so that the same votes give the same numbers.
    rows = _labels(round).order_by("pk").values_list("example_id", "validator_id", "label")
    votes = code_votes(rows.iterator())
    if not votes.items:
        return Undefined(_("nobody has given a label"))
    # Free texts: each validator has a matrix of labels × labels, which would be huge.
    if len(votes.labels) > MOST_CHOICES:
        words = _("more than %(number)d different labels were given")
        return Undefined(words % {"number": MOST_CHOICES})
    return dawid_skene(votes)


def _labels(round: Round) -> QuerySet[Validation]:
    return Validation.objects.filter(
        example__round=round, example__retracted_at__isnull=True, verdict=""
    )
