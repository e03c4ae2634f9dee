"""The steps of a plan, its maximum cost, and what it lacks before the campaign can open."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.forms import BaseForm
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dynabench.campaigns.before.qualification_items import (
    count_needed_items,
    select_test_gold_items,
)
from dynabench.campaigns.models import Campaign

PLAN_STEPS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "work": (
        # Translators: a step of planning a campaign: what people do
        gettext_lazy("Work"),
        ("name", "slug", "kind", "rounds", "places", "each", "minutes", "opens_at", "closes_at"),
    ),
    "people": (
        # Translators: a step of planning a campaign: who takes part
        gettext_lazy("People"),
        ("way", "languages", "minimum_age", "requires"),
    ),
    "consent": (gettext_lazy("Consent"), ("ethics", "consent", "help_text")),
    "test": (
        # Translators: a step of planning a campaign: what people must pass before they work
        gettext_lazy("Test"),
        (
            *("questions", "tour", "test_items", "test_right", "test_tries", "test_hours"),
            *("own_rules", "pauses_itself", "deterrents"),
        ),
    ),
    "pay": (
        gettext_lazy("Pay"),
        (
            *("currency", "pay_task", "pay_accepted", "pay_bonus", "novel_bonus"),
            *("information_bonus", "pay_test", "hourly"),
            *("fee_percent", "tax_percent", "budget", "machine_hour"),
        ),
    ),
    "panel": (
        # Translators: a step of planning a campaign: the company that sends people
        gettext_lazy("Panel"),
        (
            *("completion_url", "code_done", "code_screened", "code_returned"),
            *("study", "token", "id_days", "approval_days"),
        ),
    ),
}
"""The steps of a plan: the title and the fields of each."""
# Each stands below the title of its step, which does not repeat what people fill in.
STEP_HELP = {
    "work": gettext_lazy("What people do, how much of it, and when."),
    "people": gettext_lazy("The people who can take part, and how you recruit them."),
    "consent": gettext_lazy("What people read and agree to before they begin."),
    "test": gettext_lazy("What people do before the work, and how you detect careless work."),
    "pay": gettext_lazy("What each person earns, and how much you spend at most."),
    "panel": gettext_lazy(
        "Fill this in only if you recruit people through a panel such as Prolific."
    ),
}
STEP_BY_FIELD: dict[str, str] = {}
for _step, (_title, _names) in PLAN_STEPS.items():
    STEP_BY_FIELD.update(dict.fromkeys(_names, _step))
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

    @property
    def step(self) -> str:
        """Return the key of the step that has the field."""
        return STEP_BY_FIELD[self.field]


class PlanStep(NamedTuple):
    """A step of a plan.

    missing_parts: what the step lacks before the campaign can open. is_begun: whether the owner
    has passed the step or changed anything in it.
    """

    name: str
    words: str
    help_text: str
    missing_parts: list[MissingPart]
    is_begun: bool

    @property
    def is_done(self) -> bool:
        """Return whether the step is begun and lacks nothing."""
        return self.is_begun and not self.missing_parts


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


def list_plan_steps(
    campaign: Campaign, missing_parts: list[MissingPart], current_step: str = ""
) -> list[PlanStep]:
    """Return all steps of a campaign's plan, each with what it lacks.

    missing_parts: what `list_missing_parts` found. current_step: the step that the owner sees; the
    ones before it count as begun.
    """
    steps, is_passed = [], bool(current_step)
    for name, (title, fields) in PLAN_STEPS.items():
        is_passed = is_passed and name != current_step
        step_gaps = [part for part in missing_parts if part.step == name]
        is_begun = is_passed or campaign.opened_at is not None or _is_begun(campaign, fields)
        steps.append(PlanStep(name, str(title), str(STEP_HELP[name]), step_gaps, is_begun))
    return steps


def _is_begun(campaign: Campaign, names: tuple[str, ...]) -> bool:
    """Return whether one of a campaign's fields differs from its default."""
    fields = [field for field in Campaign._meta.concrete_fields if field.name in names]
    return any(field.value_from_object(campaign) != field.get_default() for field in fields)


def list_missing_parts(campaign: Campaign, form: BaseForm | None = None) -> list[MissingPart]:
    """Return what a campaign lacks before it can open.

    form: the form of one step, whose empty required fields are missing, too. campaign: with the
    form's values. Up to two queries.
    """
    missing_parts = []
    for bound_field in form or ():
        if bound_field.field.required and _is_empty(bound_field.value()):
            words = _("Fill in “%(label)s”") % {"label": bound_field.label}
            missing_parts.append(MissingPart(bound_field.name, words))
    named_fields = {missing_part.field for missing_part in missing_parts}
    for missing_part in _list_opening_gaps(campaign, _get_consent_text(campaign, form)):
        if missing_part.field not in named_fields:
            missing_parts.append(missing_part)
    order = list(STEP_BY_FIELD)
    return sorted(missing_parts, key=lambda part: order.index(part.field))


def _get_consent_text(campaign: Campaign, form: BaseForm | None) -> str:
    """Return the consent text as typed in the form, else the newest stored one."""
    if form is not None and "consent" in form.fields:
        return str(form["consent"].value() or "")
    # A campaign that is only typed has no rows.
    newest_consent = campaign.consents.first() if campaign.pk else None
    return newest_consent.text if newest_consent else ""


def _is_empty(value: Any) -> bool:
    """Return whether a field's value is None or only white space."""
    return value is None or not str(value).strip()


def _list_opening_gaps(campaign: Campaign, consent: str) -> Iterator[MissingPart]:
    """Yield what the campaign still needs before `services.set_campaign_state` opens it.

    consent: the consent text. Only checks what the plan itself shows.
    """
    if not campaign.ethics.strip():
        yield MissingPart("ethics", _("Write an ethics statement"))
    if not consent.strip():
        yield MissingPart("consent", _("Write a consent text"))
    if campaign.way_in.needs_completion_code and not campaign.code_done:
        yield MissingPart("code_done", _("Enter the panel's completion code"))
    needed_items = count_needed_items(campaign)
    if needed_items and select_test_gold_items(campaign).count() < needed_items:
        words = _("Mark enough gold items for the test (%(needed)d), or shorten the test")
        yield MissingPart("test_items", words % {"needed": needed_items})
    if campaign.pay.count_fully_paid_people(campaign.budget, campaign.max_paid_examples, 0) == 0:
        yield MissingPart("budget", _("Raise the budget, because it doesn't cover one person"))
