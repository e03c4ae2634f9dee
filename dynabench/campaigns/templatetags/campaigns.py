"""Template tags and filters for campaigns: money, rules, and work done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.template import Library
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Example
from core.accounts.models import PANEL_ADDRESS_ENDING, User
from core.data.prepared import PreparedRead, Slot
from core.numbers import format_percent, format_percent_number
from core.text.money import format_smallest_units
from dynabench.campaigns.models import WORKING_STATES, Place
from dynabench.campaigns.rules.own_rules import MEASURES
from dynabench.campaigns.rules.pay import DoneWork
from dynabench.campaigns.selectors import count_done_work
from tasks.models import Task

register = Library()
# Owners read these on pages; the names in rules stay English.
MEASURE_WORDS = {
    "agreement": gettext_lazy("Agreement with others"),
    "gold": gettext_lazy("Correct answers to gold items"),
    "unclear": gettext_lazy("“Unclear” answers"),
    "unread": gettext_lazy("Answers given too fast to have read the text"),
    "judging-seconds": gettext_lazy("Median judging time"),
    "near-duplicates": gettext_lazy("Texts nearly identical to earlier ones"),
    "pasted": gettext_lazy("Mostly pasted texts"),
    "refuted": gettext_lazy("Examples judged wrong by others"),
    "writing-seconds": gettext_lazy("Median writing time"),
}


@register.simple_tag(name="money")
def format_money_amount(amount: int, currency: str) -> str:
    """Format an amount, given in the smallest unit, with its currency."""
    return format_smallest_units(amount, currency)


@register.simple_tag(name="money_or_unknown")
def format_money_or_dash(amount: int | None, currency: str) -> str:
    """Format an amount like `money`, or return a dash if it is None."""
    return "–" if amount is None else format_money_amount(amount, currency)


def _select_working_places(**conditions: Any) -> QuerySet[Place]:
    """Return the places of people who are working, oldest first. conditions: further ones."""
    working_places = Place.objects.filter(state__in=WORKING_STATES, **conditions)
    return working_places.select_related("campaign").order_by("pk")


# Prepared, as the page after each written example asks for it.
WRITING_PLACES = PreparedRead(
    lambda: _select_working_places(
        annotator=Slot("annotator"),
        campaign__task=Slot("task"),
        campaign__kind__in=("write", "both"),
    )[:1]
)


@dataclass(frozen=True)
class Study:
    """A study in which a person works, with the work that they have done."""

    slug: str
    done: DoneWork


@register.simple_tag(name="study_written_for")
def find_finished_study(example: Example) -> Study | None:
    """Return the study for which the example's author has written enough, or None.

    One query, and a few more if the author works in a study.
    """
    place = WRITING_PLACES.first(annotator=example.annotator_id, task=example.round.task_id)
    if place is None or (done := count_done_work(place)).written < place.campaign.each:
        return None
    return Study(place.campaign.slug, done)


@register.simple_tag(name="done_for")
def count_work_in_study(user: User, task: Task, slug: str, kind: str) -> DoneWork | None:
    """Return the work that the person has done in the study.

    None if they do not work in it, or it does not include this kind of work.
    """
    place = _select_working_places(
        annotator__user=user.pk,
        campaign__task=task,
        campaign__slug=slug,
        campaign__kind__in=(kind, "both"),
    ).first()
    return count_done_work(place) if place else None


@register.simple_tag
def percent(share: float) -> str:
    """Format a share as whole percent."""
    return format_percent(share, 0)


@register.filter("broken_rule")
def describe_broken_rule(rule: Mapping[str, Any]) -> str:
    """Describe a broken rule with its evidence. rule: a `BrokenRule` as a mapping."""
    measure = MEASURES[rule["measure"]]
    if measure.is_share:
        low, high = format_percent_number(rule["low"], 0), format_percent(rule["high"], 0)
        value = f"{format_percent(rule['value'], 0)} ({low}–{high})"
        limit = format_percent(rule["limit"], 0)
    else:
        value, limit = f"{rule['value']:.1f} s", f"{rule['limit']:g} s"
    if measure.side == "below":
        message = _("%(what)s: %(value)s (n = %(n)d). The study requires at least %(limit)s.")
    else:
        message = _("%(what)s: %(value)s (n = %(n)d). The study allows at most %(limit)s.")
    # As it was measured then: the evidence is stored with the pause.
    measure_name = MEASURE_WORDS[rule["measure"]]
    return message % {"what": measure_name, "value": value, "n": rule["n"], "limit": limit}


MAX_PARTICIPANTS = 50
"""The maximum number of places on a task's page of members.

A campaign's page shows all of its places.
"""


@dataclass(frozen=True)
class Participants:
    """The latest panel participants in a task's studies, and whether there are more."""

    places: list[Place]
    has_more: bool


@register.simple_tag(name="participants_of")
def list_participants(task: Task) -> Participants:
    """Return the task's latest panel participants, by pseudonym, with their study. One query."""
    panel_places = Place.objects.filter(
        campaign__task=task, annotator__user__email__endswith=PANEL_ADDRESS_ENDING
    )
    rows = panel_places.select_related("annotator", "campaign").order_by("-pk")
    # One more than the page shows tells whether there are more, without a count.
    places = list(rows[: MAX_PARTICIPANTS + 1])
    return Participants(places[:MAX_PARTICIPANTS], len(places) > MAX_PARTICIPANTS)
