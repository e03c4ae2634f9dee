"""Checks of a plan while its owner fills in the form: the maximum cost, and missing parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.forms import BaseForm
from django.utils.translation import gettext as _

from dynabench.campaigns.before.qualification_items import (
    count_needed_items,
    select_test_gold_items,
)
from dynabench.campaigns.models import Campaign

COST_FIELDS = (
    *("kind", "places", "each", "currency", "pay_task", "pay_accepted", "pay_bonus", "pay_test"),
    *("fee_percent", "tax_percent", "budget"),
)
"""The form fields that determine the cost."""


@dataclass(frozen=True)
class PlannedCost:
    """The most that a plan can cost, in the currency's smallest unit.

    people: the number of places. pay: what one person can earn. total: the cost of all people, with
    the panel's fee and the tax. people_paid: how many people the budget covers; None if it covers
    all.
    """

    people: int
    pay: int
    total: int
    currency: str
    people_paid: int | None


@dataclass(frozen=True)
class MissingPart:
    """A field that a campaign needs before it opens, and what to do about it."""

    field: str
    words: str


def estimate_cost(campaign: Campaign) -> PlannedCost:
    """Return what a campaign costs if everybody takes part and earns every bonus."""
    pay, people = campaign.pay, campaign.places
    payable_people = pay.count_fully_paid_people(campaign.budget, campaign.max_paid_examples, 0)
    is_short = payable_people is not None and payable_people < people
    return PlannedCost(
        people=people,
        pay=pay.compute_max_earnings(campaign.max_paid_examples),
        total=people * pay.compute_max_cost(campaign.max_paid_examples),
        currency=campaign.currency,
        people_paid=payable_people if is_short else None,
    )


def estimate_typed_cost(form: BaseForm, campaign: Campaign) -> PlannedCost | None:
    """Return the cost of a form's campaign; None while a number that it depends on is invalid."""
    if form.is_bound and any(name in form.errors for name in COST_FIELDS):
        return None
    return estimate_cost(campaign)


def list_missing_parts(form: BaseForm, campaign: Campaign) -> list[MissingPart]:
    """Return what a form's campaign lacks before it can be saved and opened.

    campaign: the campaign with the form's values. One query if the campaign has a test.
    """
    missing_parts = []
    for bound_field in form:
        if bound_field.field.required and _is_empty(bound_field.value()):
            words = _("Fill in “%(label)s”") % {"label": bound_field.label}
            missing_parts.append(MissingPart(bound_field.name, words))
    named_fields = {missing_part.field for missing_part in missing_parts}
    for missing_part in _list_opening_gaps(campaign):
        if missing_part.field not in named_fields:
            missing_parts.append(missing_part)
    return missing_parts


def _is_empty(value: Any) -> bool:
    """Return whether a field's value is None or only white space."""
    return value is None or not str(value).strip()


def _list_opening_gaps(campaign: Campaign) -> Iterator[MissingPart]:
    """Yield what the campaign still needs before `services.set_campaign_state` opens it.

    Only checks what the plan itself shows.
    """
    if not campaign.ethics.strip():
        yield MissingPart("ethics", _("Write an ethics statement"))
    if campaign.way_in.needs_completion_code and not campaign.code_done:
        yield MissingPart("code_done", _("Enter the panel's completion code"))
    needed_items = count_needed_items(campaign)
    if needed_items and select_test_gold_items(campaign).count() < needed_items:
        words = _("Mark enough gold items for the test (%(needed)d), or shorten the test")
        yield MissingPart("test_items", words % {"needed": needed_items})
    if campaign.pay.count_fully_paid_people(campaign.budget, campaign.max_paid_examples, 0) == 0:
        yield MissingPart("budget", _("Raise the budget, because it doesn't cover one person"))
