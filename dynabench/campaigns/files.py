"""Files of a campaign for its owner, in English as all exports. Only the panel's holds its ids."""

from collections.abc import Callable, Iterator
from typing import Any

from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.rules.pay import units
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.campaigns.selectors import ids_of, ledger_of, owed_outside, rows_of
from tasks.config.components import plain

Rows = Iterator[list[Any]]


def ledger(campaign: Campaign) -> Rows:
    """Every row: when, who by pseudonym, what for, how much. For taxes and the books."""
    yield ["made_at", "person", "kind", "cause", "amount", "currency"]
    for row in ledger_of(campaign).iterator():
        when = row.made_at.isoformat()
        yield [when, _person(row.place), row.kind, row.cause, row.amount, row.currency]


def panel(campaign: Campaign) -> Rows:
    """Who is owed what, by the panel's ids, as far as they are still kept; amounts in units."""
    yield ["id", "session", "state", "earned", "bonus", "paid", "currency"]
    for row in rows_of(campaign):
        ids = ids_of(row.place)
        if ids:
            bonus = row.sums.get("accepted", 0) + row.sums.get("bonus", 0)
            amounts = [row.sums.get("earned", 0), bonus, row.sums.get("paid", 0)]
            told = [units(one, campaign.currency) for one in amounts]
            yield [ids.id, ids.session, row.place.state, *told, campaign.currency]


def bank(campaign: Campaign) -> Rows:
    """What is owed and the panel is not asked for, a person a line, in units of the currency."""
    yield ["person", "amount", "currency", "reference"]
    for row in owed_outside(campaign):
        amount, reference = units(row.owed, campaign.currency), f"{campaign.slug} {row.place.pk}"
        yield [_person(row.place), amount, campaign.currency, reference]


def taxes(campaign: Campaign) -> Rows:
    """What each person earned and got in all, with fee and tax."""
    yield ["person", "submitted_at", "earned", "paid", "with_fee_and_tax", "currency"]
    for row in rows_of(campaign):
        submitted = row.place.submitted_at
        amounts = (row.earned, row.sums.get("paid", 0), campaign.pay.with_costs(row.earned))
        yield [
            *(_person(row.place), submitted.isoformat() if submitted else ""),
            *(units(one, campaign.currency) for one in amounts),
            campaign.currency,
        ]


def answers(campaign: Campaign) -> Rows:
    """What each person answered to the questions, but those about themselves."""
    names = [one.name for one in read_questionnaire(campaign.questions).questions]
    yield ["person", *names]
    told = campaign.all_places.exclude(annotator=None).exclude(answers__isnull=True)
    for place in told.select_related("annotator"):
        said = place.answers or {}
        yield [_person(place), *(plain(said.get(name)) for name in names)]


FILES: dict[str, Callable[[Campaign], Rows]] = {
    "ledger": ledger,
    "panel": panel,
    "bank": bank,
    "taxes": taxes,
    "answers": answers,
}


def _person(place: Place) -> str:
    return str(place.annotator)
