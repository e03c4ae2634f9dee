"""How pages show a campaign: its money, its rules, whether enough is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.template import Library
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Example
from core.accounts.models import PANEL_PEOPLE, User
from core.data.prepared import PreparedRead, Slot
from dynabench.campaigns.models import WORKING_STATES, Place
from dynabench.campaigns.rules.own_rules import MEASURES
from dynabench.campaigns.rules.pay import format_units
from dynabench.campaigns.selectors import DoneWork, count_done_work
from tasks.models import Task

register = Library()
# Owners read these on pages; the names in rules stay English.
MEASURE_WORDS = {
    "agreement": gettext_lazy("Agreement with others"),
    "gold": gettext_lazy("Gold items answered rightly"),
    "unclear": gettext_lazy("Answers that cannot tell"),
    "unread": gettext_lazy("Answers faster than anybody reads"),
    "judging-seconds": gettext_lazy("Time to judge, the median"),
    "near-duplicates": gettext_lazy("Texts nearly the same as others' earlier ones"),
    "pasted": gettext_lazy("Texts that were mostly pasted"),
    "refuted": gettext_lazy("Examples that others decided otherwise"),
    "writing-seconds": gettext_lazy("Time to write, the median"),
}


@register.simple_tag
def money(amount: int, currency: str) -> str:
    """Format an amount, given in the smallest unit, with its currency."""
    return f"{format_units(amount, currency)}\u00a0{currency}"


@register.simple_tag
def money_or_unknown(amount: int | None, currency: str) -> str:
    """Format an amount as `money` does; "unknown" if it is None."""
    return _("unknown") if amount is None else money(amount, currency)


def _select_working_places(**where: Any) -> QuerySet[Place]:
    """Return the places of people who are working, oldest first. where: further conditions."""
    going = Place.objects.filter(state__in=WORKING_STATES, **where)
    return going.select_related("campaign").order_by("pk")


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


@register.simple_tag
def study_written_for(example: Example) -> Study | None:
    """Return the study for which the example's author has written enough, or None.

    One query, and a few more if the author works in a study.
    """
    place = WRITING_PLACES.first(annotator=example.annotator_id, task=example.round.task_id)
    if place is None or (done := count_done_work(place)).written < place.campaign.each:
        return None
    return Study(place.campaign.slug, done)


@register.simple_tag
def done_for(user: User, task: Task, slug: str, kind: str) -> DoneWork | None:
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
    return f"{share:.0%}"


@register.filter
def broken_rule(rule: Mapping[str, Any]) -> str:
    """Describe a broken rule with its evidence. rule: a `Broken` as a mapping."""
    measure = MEASURES[rule["measure"]]
    if measure.is_share:
        value = f"{rule['value']:.0%} ({rule['low']:.0%}–{rule['high']:.0%})"
        limit = f"{rule['limit']:.0%}"
    else:
        value, limit = f"{rule['value']:.1f} s", f"{rule['limit']:g} s"
    if measure.side == "below":
        message = _("%(what)s: %(value)s of %(n)d. The study asks for at least %(limit)s.")
    else:
        message = _("%(what)s: %(value)s of %(n)d. The study allows %(limit)s.")
    # As it was measured then: the evidence is stored with the pause.
    what = MEASURE_WORDS[rule["measure"]]
    return message % {"what": what, "value": value, "n": rule["n"], "limit": limit}


MOST_PARTICIPANTS = 50
"""Places that the page of a task's members shows; the page of a campaign has all of its own."""


@dataclass(frozen=True)
class Participants:
    """The latest panel participants in a task's studies, and whether there are more."""

    places: list[Place]
    has_more: bool


@register.simple_tag
def participants_of(task: Task) -> Participants:
    """Return the task's latest panel participants, by pseudonym, with their study. One query."""
    of_panels = Place.objects.filter(
        campaign__task=task, annotator__user__email__endswith=PANEL_PEOPLE
    )
    rows = of_panels.select_related("annotator", "campaign").order_by("-pk")
    # One more than the page shows tells whether there are more, without a count.
    places = list(rows[: MOST_PARTICIPANTS + 1])
    return Participants(places[:MOST_PARTICIPANTS], len(places) > MOST_PARTICIPANTS)
