"""A campaign's CSV files for its owner, in English like all exports.

Only the panel's file contains panel ids.
"""

from collections.abc import Callable, Iterator
from typing import Any

from django.utils.translation import gettext_lazy as _

from core.text.money import format_units
from dynabench.campaigns.findings.information import iterate_preview_rows
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import (
    decrypt_panel_ids,
    list_owed_outside,
    list_place_rows,
    select_ledger_rows,
)
from tasks.config.components import format_value

Rows = Iterator[list[Any]]


def list_ledger(campaign: Campaign) -> Rows:
    """Yield a header and all ledger rows: time, pseudonym, kind, cause and amount."""
    yield ["made_at", "person", "kind", "cause", "amount", "currency"]
    # Row by row: a ledger may have a row for each of thousands of examples.
    for row in select_ledger_rows(campaign).iterator():
        made_at = row.made_at.isoformat()
        yield [made_at, _get_pseudonym(row.place), row.kind, row.cause, row.amount, row.currency]


def list_panel_pay(campaign: Campaign) -> Rows:
    """Yield a header and what each person is owed, by panel id.

    People whose panel ids were deleted are left out. Amounts are in major units, such as euros.
    """
    yield ["id", "session", "state", "earned", "bonus", "paid", "currency"]
    for row in list_place_rows(campaign):
        panel_ids = decrypt_panel_ids(row.place)
        if panel_ids is None:
            continue
        currency = campaign.currency
        earned_amount = format_units(row.sums.get("earned", 0), currency)
        # Panels pay what is not for the task itself as a bonus.
        bonus = format_units(row.sums.get("accepted", 0) + row.sums.get("bonus", 0), currency)
        paid_amount = format_units(row.sums.get("paid", 0), currency)
        yield [
            panel_ids.id,
            panel_ids.session,
            row.place.state,
            earned_amount,
            bonus,
            paid_amount,
            currency,
        ]


def list_transfers(campaign: Campaign) -> Rows:
    """Yield a header and one bank transfer per person, for money that no panel pays.

    Amounts are in major units.
    """
    yield ["person", "amount", "currency", "reference"]
    for row in list_owed_outside(campaign):
        amount, reference = (
            format_units(row.owed, campaign.currency),
            f"{campaign.slug} {row.place.pk}",
        )
        yield [_get_pseudonym(row.place), amount, campaign.currency, reference]


def list_taxes(campaign: Campaign) -> Rows:
    """Yield a header and each person's earnings, payments and cost including fee and tax."""
    yield ["person", "submitted_at", "earned", "paid", "with_fee_and_tax", "currency"]
    for row in list_place_rows(campaign):
        submitted_at = row.place.submitted_at
        currency = campaign.currency
        yield [
            _get_pseudonym(row.place),
            submitted_at.isoformat() if submitted_at else "",
            format_units(row.earned, currency),
            format_units(row.sums.get("paid", 0), currency),
            format_units(campaign.pay.add_costs(row.earned), currency),
            currency,
        ]


def list_answers(campaign: Campaign) -> Rows:
    """Yield a header and each person's answers to the study's questions.

    Answers about the person are left out.
    """
    questions = read_questionnaire(campaign.questions).answered_fields
    names = [question.name for question in questions]
    yield ["person", *names]
    answered_places = campaign.all_places.exclude(annotator=None).exclude(answers__isnull=True)
    for place in answered_places.select_related("annotator"):
        answers_by_name = place.answers or {}
        yield [_get_pseudonym(place), *(format_value(answers_by_name.get(name)) for name in names)]


FILES: dict[str, Callable[[Campaign], Rows]] = {
    "ledger": list_ledger,
    "panel": list_panel_pay,
    "bank": list_transfers,
    "taxes": list_taxes,
    "answers": list_answers,
    "bonus": iterate_preview_rows,
}

FILE_TITLES = {
    # Translators: file: all amounts that were earned and paid, one a line
    "ledger": _("Ledger"),
    "panel": _("Panel payments"),
    "bank": _("Bank transfers"),
    # Translators: file: what each person was paid, for taxes
    "taxes": _("Taxes"),
    "answers": _("Questionnaire answers"),
    # Translators: file: what earlier catches would have earned
    "bonus": _("Preview of the bonus"),
}
"""The titles of the files on the campaign's page."""


def _get_pseudonym(place: Place) -> str:
    """Return the pseudonym of the person who holds the place."""
    return str(place.annotator)
