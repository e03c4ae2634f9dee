"""Authors and validators by pseudonym, with the evidence. Nothing here pays or excludes."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, get_args

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from core.accounts.models import Annotator
from core.accounts.people import shown_name
from core.web.downloads import csv_file
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_task
from tasks.models import Round, Task
from validation.consensus.gold_check import Check
from validation.rates.rates import Rate, Undefined, rate
from validation.statistics.people import (
    AuthorStatistics,
    ValidatorStatistics,
    author_statistics,
    validator_statistics,
)

CHECK_WORDS = {
    # Translators: the check is passed
    Check.PASS: _("pass"),
    Check.FAIL: _("fail: look at their examples"),
    Check.UNKNOWN: _("unknown"),
}
Person = AuthorStatistics | ValidatorStatistics


def check_labels(author: AuthorStatistics) -> Check:
    """Return FAIL if more than half of the decisions contradict the author's labels (95 %)."""
    return _compare_with_half(author.label_flip, bad_if_high=True)


def check_agreement(validator: ValidatorStatistics) -> Check:
    """Return FAIL if more than half of others' votes on the same examples differ (95 %)."""
    return _compare_with_half(validator.reliability, bad_if_high=False)


def _compare_with_half(share: Rate | Undefined, *, bad_if_high: bool) -> Check:
    """Return PASS or FAIL by the side of one half on which the interval lies.

    Returns UNKNOWN if the interval includes one half or is undefined.
    """
    if isinstance(share, Undefined) or share.low <= 0.5 <= share.high:
        return Check.UNKNOWN
    is_high = share.low > 0.5
    if is_high == bad_if_high:
        return Check.FAIL
    return Check.PASS


def _build_author_sort_key(author: AuthorStatistics) -> tuple[float, int]:
    """Return the sort key of authors: most surely contradicted first, then most tries."""
    flip_rate = author.label_flip
    surely_flipped = 0.0
    if not isinstance(flip_rate, Undefined):
        surely_flipped = flip_rate.low
    return -surely_flipped, -author.tries


def _build_validator_sort_key(validator: ValidatorStatistics) -> tuple[bool, bool, float, int]:
    """Return the sort key of validators, those whose work needs review first.

    Failed gold and votes without reading come first, then sure disagreement, then most votes.
    """
    reliability = validator.reliability
    surely_differs = 0.0
    if not isinstance(reliability, Undefined):
        surely_differs = 1 - reliability.high
    has_read = validator.reading_check is not Check.FAIL
    return validator.gold_check is not Check.FAIL, has_read, -surely_differs, -validator.votes


class RoundFilter(ListFilter):
    """A form for the round whose people are shown; empty for all rounds."""

    round = forms.TypedChoiceField(coerce=int, required=False, label=_("Round"))

    def __init__(self, request: HttpRequest, task: Task) -> None:
        all_rounds = list(task.rounds.order_by("-number"))
        words = gettext("Round %(number)d")
        choices = [(round.number, words % {"number": round.number}) for round in all_rounds]
        super().__init__(request, round=choices)
        number = self.cleaned_data["round"]
        self.rounds = [round for round in all_rounds if number in ("", round.number)]


@require_safe
def annotators(request: HttpRequest, code: str) -> HttpResponse:
    """Show authors and validators, those whose work needs review first."""
    task = find_owned_task(request, code)
    filters = RoundFilter(request, task)
    author_page = list_page(request, list_authors(filters.rounds), name="authors")
    validator_page = list_page(request, list_validators(filters.rounds), name="validators")
    values = {
        "task": task,
        "filters": filters,
        "authors": [_build_author_row(author) for author in author_page],
        "author_page": author_page,
        "validators": [_build_validator_row(validator) for validator in validator_page],
        "validator_page": validator_page,
    }
    return render(request, "own/annotators.html", values)


def _build_author_row(author: AuthorStatistics) -> tuple[Any, ...]:
    """Return (pseudonym, result of the label check in words, all numbers)."""
    return shown_name(author.annotator), CHECK_WORDS[check_labels(author)], author


def _build_validator_row(validator: ValidatorStatistics) -> tuple[Any, ...]:
    """Return (pseudonym, three check results in words, share of skipped examples, all numbers)."""
    return (
        shown_name(validator.annotator),
        CHECK_WORDS[validator.gold_check],
        CHECK_WORDS[check_agreement(validator)],
        CHECK_WORDS[validator.reading_check],
        compute_skip_rate(validator),
        validator,
    )


@require_safe
def annotators_file(request: HttpRequest, code: str, who: str) -> HttpResponse:
    """Download the table of authors or validators as CSV. Unknown numbers are empty."""
    task = find_owned_task(request, code)
    rounds = RoundFilter(request, task).rounds
    people: Sequence[Person]
    if who == "authors":
        people = list_authors(rounds)
        columns = list(_list_columns(AuthorStatistics))
    else:
        people = list_validators(rounds)
        columns = list(_list_columns(ValidatorStatistics))
    lines: list[list[Any]] = [["_".join(path) for path in columns]]
    for row in people:
        lines.append([_format_cell(row, path) for path in columns])
    return csv_file(lines, f"{task.code}-{who}.csv")


def _list_columns(kind: type[Person]) -> Iterator[tuple[str, ...]]:
    """Yield the attribute path of each column; a rate is followed by its interval and its n."""
    for field in fields(kind):
        yield (field.name,)
        if Rate in get_args(field.type):
            for bound in ("low", "high", "n"):
                yield (field.name, bound)


def _format_cell(person: Person, path: tuple[str, ...]) -> Any:
    """Return a person's value at a path of `_list_columns`, formatted for the file."""
    value = getattr(person, path[0])
    match value:
        case Undefined():
            return ""
        case Rate():
            bound = path[1] if len(path) > 1 else "value"
            return getattr(value, bound)
        case Check():
            return value.value
        case Annotator():
            return shown_name(value)
    return value


def list_authors(rounds: Sequence[Round]) -> list[AuthorStatistics]:
    """Return the authors of the rounds, those with the most surely contradicted labels first."""
    return sorted(author_statistics(rounds), key=_build_author_sort_key)


def list_validators(rounds: Sequence[Round]) -> list[ValidatorStatistics]:
    """Return the validators of the rounds, those whose work needs review first."""
    return sorted(validator_statistics(rounds), key=_build_validator_sort_key)


def compute_skip_rate(validator: ValidatorStatistics) -> Rate | Undefined:
    """Return the validator's share of skipped examples among those answered or skipped."""
    return rate(validator.skips, validator.votes + validator.skips)
