"""Titles of the dashboard's charts: sentences that state what the numbers show."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.numbers import format_percent
from validation.decisions.counted import TryParts


def describe_steps(parts: TryParts) -> str:
    """Return a sentence that says how many tries became catches."""
    # A share of nothing would read as a failure.
    if not parts.tries:
        return _("No tries yet")
    sentence = ngettext(
        "%(catches)d of %(tries)d try is a catch",
        "%(catches)d of %(tries)d tries are catches",
        parts.tries,
    )
    return sentence % {"catches": parts.catches, "tries": parts.tries}


def describe_days(parts: TryParts, days: int) -> str:
    """Return a sentence with the number of tries in `days` days, and how many wait for judges."""
    values = {"tries": parts.tries, "waiting": parts.waiting, "days": days}
    # A message has one plural, which depends on the tries, so a single day has its own sentences.
    if days == 1 and parts.waiting:
        sentence = ngettext(
            "%(tries)d try in one day, %(waiting)d still waiting for judges",
            "%(tries)d tries in one day, %(waiting)d still waiting for judges",
            parts.tries,
        )
        return sentence % values
    if days == 1:
        sentence = ngettext("%(tries)d try in one day", "%(tries)d tries in one day", parts.tries)
        return sentence % values
    if parts.waiting:
        sentence = ngettext(
            "%(tries)d try in %(days)d days, %(waiting)d still waiting for judges",
            "%(tries)d tries in %(days)d days, %(waiting)d still waiting for judges",
            parts.tries,
        )
        return sentence % values
    sentence = ngettext(
        "%(tries)d try in %(days)d days", "%(tries)d tries in %(days)d days", parts.tries
    )
    return sentence % values


def describe_agreement(share: float, high: float, threshold: float | None) -> str:
    """Return a sentence about how often recent votes match the result.

    share: the share of matching votes. high: the upper end of its interval. threshold: the share
    that decides an example, or None. All are from 0 to 1.
    """
    values = {"share": format_percent(share, 0), "threshold": format_percent(threshold or 0, 0)}
    # Votes that agree less than the rule asks for rarely decide an example.
    if threshold is not None and high < threshold:
        return (
            _("%(share)s of votes match the result, below the %(threshold)s needed to decide")
            % values
        )
    return _("%(share)s of votes match the result") % values
