"""Dawid and Skene's model of a round's votes: fitted, stored, and shown with the consensus."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import Annotator
from tasks.models import Round
from validation.consensus.dawid_skene.fitting import Aggregation, fit_dawid_skene
from validation.consensus.dawid_skene.posterior import FittedModel
from validation.decisions.consensus_rows import get_round_policy
from validation.models import RoundPolicy, Validation
from validation.rates.agreement import MAX_CHOICES, encode_votes
from validation.rates.rates import Undefined

REFIT_GROWTH = 1.1
"""The growth of a round's votes, as a factor, after which its model is fitted again."""


@dataclass(frozen=True, slots=True)
class ValidatorOpinion:
    """The model's estimate of a validator.

    reliability: the probability of giving the true label (0-1). confusion: for each true label, the
    probability of each given label.
    """

    annotator: Annotator
    reliability: float
    confusion: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A model fitted to all current labels.

    posteriors: the probability of each label, by example id. validators: least reliable first.
    """

    labels: Sequence[str]
    prior: Mapping[str, float]
    posteriors: Mapping[int, Mapping[str, float]]
    validators: Sequence[ValidatorOpinion]
    warnings: Sequence[str]


def compute_second_opinion(round: Round) -> SecondOpinion | Undefined:
    """Return the posterior of each example and the estimate of each validator. Two queries.

    All votes of the round are in memory at once.
    """
    estimates = _compute_estimates(round)
    if isinstance(estimates, Undefined):
        return estimates
    people = Annotator.objects.in_bulk(cast(Sequence[int], estimates.validators))
    validators = [
        ValidatorOpinion(
            people[cast(int, validator)],
            float(estimates.reliability[row]),
            {
                true_label: dict(zip(estimates.labels, shares, strict=True))
                for true_label, shares in zip(
                    estimates.labels, estimates.confusion[row].tolist(), strict=True
                )
            },
        )
        for row, validator in enumerate(estimates.validators)
    ]
    return SecondOpinion(
        estimates.labels,
        dict(zip(estimates.labels, estimates.prior.tolist(), strict=True)),
        {
            cast(int, validator_id): estimates.get_posterior_of(row)
            for row, validator_id in enumerate(estimates.items)
        },
        sorted(validators, key=lambda estimate: estimate.reliability),
        estimates.warnings,
    )


def fit_model(round: Round) -> FittedModel | None:
    """Fit the model that decides under dawid-skene.

    None without labels, or if there are too many different ones. Without a model the policy decides
    nothing.
    """
    estimates = _compute_estimates(round)
    if isinstance(estimates, Undefined):
        return None
    return FittedModel(
        list(estimates.labels),
        estimates.prior.tolist(),
        estimates.crowd.tolist(),
        {
            str(validator): estimates.confusion[row].tolist()
            for row, validator in enumerate(estimates.validators)
        },
        _select_labels(round).count(),
    )


def store_fitted_model(*, round: Round) -> FittedModel | None:
    """Fit the model to the round's votes and store it for later votes. Takes no lock.

    Returns None in the same cases as `fit_model`.
    """
    get_round_policy(round)
    model = fit_model(round)
    # Only this column: another request may change the policy of the row meanwhile.
    RoundPolicy.objects.filter(round=round).update(model=asdict(model) if model else None)
    return model


def is_stale(policy_row: RoundPolicy) -> bool:
    """Return whether there is no model, or the round has a tenth more votes than the model."""
    fitted_model = policy_row.fitted_model
    return (
        fitted_model is None
        or _select_labels(policy_row.round).count() >= REFIT_GROWTH * fitted_model.votes
    )


def _compute_estimates(round: Round) -> Aggregation | Undefined:
    # In a fixed order, so that the same votes give the same numbers.
    rows = _select_labels(round).order_by("pk").values_list("example_id", "validator_id", "label")
    votes = encode_votes(rows.iterator())
    if not votes.items:
        return Undefined(_("the round has no labels from judges"))
    # Free texts: each validator has a matrix of labels × labels, which would be huge.
    if len(votes.labels) > MAX_CHOICES:
        reason = _("more than %(number)d different labels were given")
        return Undefined(reason % {"number": MAX_CHOICES})
    return fit_dawid_skene(votes)


def _select_labels(round: Round) -> QuerySet[Validation]:
    # Of people: the model weighs each judge, and decides when people needn't be asked any more.
    return Validation.objects.filter(
        example__round=round, example__retracted_at__isnull=True, verdict="", by_program=False
    )
