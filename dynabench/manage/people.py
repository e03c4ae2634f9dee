"""Authors and validators by pseudonym, with evidence about their work.

The pages only inform: they do not affect payments, and exclude no person.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, get_args

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from core.accounts.models import Annotator
from core.accounts.people import get_shown_name
from core.web.downloads import respond_with_csv
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_task
from tasks.models import Round, Task
from validation.consensus.gold_check import Check
from validation.rates.rates import Rate, Undefined, compute_rate
from validation.statistics.people import (
    AuthorStatistics,
    ValidatorStatistics,
    list_author_statistics,
    list_validator_statistics,
)

CHECK_WORDS = {
    # Translators: the check is passed
    Check.PASS: _("OK"),
    Check.UNKNOWN: _("Not enough data"),
}
PersonStatistics = AuthorStatistics | ValidatorStatistics


def check_labels(author: AuthorStatistics) -> Check:
    """Return FAIL if clearly more than half of the decisions contradict the author's labels.

    PASS if clearly less than half do. UNKNOWN if the 95% interval includes one half, or there is no
    rate.
    """
    return _compare_with_half(author.label_flip, is_high_bad=True)


def check_agreement(validator: ValidatorStatistics) -> Check:
    """Return FAIL if clearly more than half of others' votes on the same examples differ.

    PASS if clearly less than half do. UNKNOWN if the 95% interval includes one half, or there is no
    rate.
    """
    return _compare_with_half(validator.reliability, is_high_bad=False)


def _compare_with_half(share: Rate | Undefined, *, is_high_bad: bool) -> Check:
    """Return PASS or FAIL, depending on whether the interval is above or below one half.

    Return UNKNOWN if the interval includes one half or the share is undefined.
    """
    # Nobody is accused by an interval that chance alone explains.
    if isinstance(share, Undefined) or share.low <= 0.5 <= share.high:
        return Check.UNKNOWN
    is_high = share.low > 0.5
    if is_high == is_high_bad:
        return Check.FAIL
    return Check.PASS


def _build_author_sort_key(author: AuthorStatistics) -> tuple[float, int]:
    """Return the sort key of authors.

    The highest lower bound of the rate of contradicted labels comes first, then the most tries.
    """
    flip_rate = author.label_flip
    min_flip_rate = 0.0
    if not isinstance(flip_rate, Undefined):
        # By the lower bound, so that one flip of one example does not lead the list.
        min_flip_rate = flip_rate.low
    return -min_flip_rate, -author.tries


def _build_validator_sort_key(validator: ValidatorStatistics) -> tuple[bool, bool, float, int]:
    """Return the sort key of validators; those whose work most needs a check come first.

    Judges who failed the gold check come first, then those who vote without reading. Next come the
    highest lower bound of disagreement with others, and the most votes.
    """
    reliability = validator.reliability
    min_difference = 0.0
    if not isinstance(reliability, Undefined):
        # By the upper bound, so that few votes do not lead the list.
        min_difference = 1 - reliability.high
    has_read = validator.reading_check is not Check.FAIL
    return validator.gold_check is not Check.FAIL, has_read, -min_difference, -validator.votes


class RoundFilter(ListFilter):
    """A form for the round whose people are shown; all rounds if empty."""

    round = forms.TypedChoiceField(coerce=int, required=False, label=_("Round"))

    def __init__(self, request: HttpRequest, task: Task) -> None:
        all_rounds = list(task.rounds.order_by("-number"))
        words = gettext("Round %(number)d")
        choices = [(round.number, words % {"number": round.number}) for round in all_rounds]
        super().__init__(request, round=choices)
        number = self.cleaned_data["round"]
        self.choices = all_rounds
        self.rounds = [round for round in all_rounds if number in ("", round.number)]


@require_safe
def show_annotators(request: HttpRequest, code: str) -> HttpResponse:
    """Show authors and validators. Those whose work needs a check come first."""
    task = find_owned_task(request, code)
    filters = RoundFilter(request, task)
    author_page = list_page(request, list_authors(filters.rounds), name="authors")
    validator_page = list_page(request, list_validators(filters.rounds), name="validators")
    values = {
        "task": task,
        "filters": filters,
        "rounds": filters.choices,
        "authors": [_build_author_row(author) for author in author_page],
        "author_page": author_page,
        # Where typing is never measured, the column would be empty.
        "knows_pasting": any(isinstance(author.paste_share, Rate) for author in author_page),
        "has_duplicates": any(author.duplicates for author in author_page),
        "validators": [_build_validator_row(validator) for validator in validator_page],
        "validator_page": validator_page,
    }
    return render(request, "own/annotators.html", values)


class CheckChip(NamedTuple):
    """What a person's checks say, as a chip. name: the name of the outcome."""

    words: str
    name: str


def _build_author_row(author: AuthorStatistics) -> tuple[Any, ...]:
    """Return (pseudonym, chip of the check, statistics)."""
    chip = _summarise_checks({gettext("Labels"): check_labels(author)})
    return get_shown_name(author.annotator), chip, author


def _build_validator_row(validator: ValidatorStatistics) -> tuple[Any, ...]:
    """Return (pseudonym, chip of the checks, share of skipped examples, statistics)."""
    checks = {
        # Translators: examples with a known answer, for checking judges
        gettext("Gold items"): validator.gold_check,
        gettext("Agreement"): check_agreement(validator),
        # Translators: noun: how long people read
        gettext("Reading time"): validator.reading_check,
    }
    return (
        get_shown_name(validator.annotator),
        _summarise_checks(checks),
        compute_skip_rate(validator),
        validator,
    )


def _summarise_checks(checks: Mapping[str, Check]) -> CheckChip:
    """Return one chip for a person's checks, by their titles.

    It names the failed checks. If none failed, it says OK if a check was passed, or that data is
    missing.
    """
    failed_titles = [title for title, check in checks.items() if check is Check.FAIL]
    if failed_titles:
        return CheckChip(", ".join(failed_titles), Check.FAIL.value)
    if Check.PASS in checks.values():
        return CheckChip(str(CHECK_WORDS[Check.PASS]), Check.PASS.value)
    return CheckChip(str(CHECK_WORDS[Check.UNKNOWN]), Check.UNKNOWN.value)


@require_safe
def export_annotators(request: HttpRequest, code: str, who: str) -> HttpResponse:
    """Download the table of authors or validators as CSV. Unknown numbers are empty."""
    task = find_owned_task(request, code)
    rounds = RoundFilter(request, task).rounds
    people: Sequence[PersonStatistics]
    if who == "authors":
        people = list_authors(rounds)
        columns = list(_list_columns(AuthorStatistics))
    else:
        people = list_validators(rounds)
        columns = list(_list_columns(ValidatorStatistics))
    lines: list[list[Any]] = [["_".join(path) for path in columns]]
    for row in people:
        lines.append([_format_cell(row, path) for path in columns])
    return respond_with_csv(lines, f"{task.code}-{who}.csv")


def _list_columns(kind: type[PersonStatistics]) -> Iterator[tuple[str, ...]]:
    """Yield the attribute path of each column. A rate is followed by its interval and its n."""
    for field in fields(kind):
        yield (field.name,)
        if Rate in get_args(field.type):
            for bound in ("low", "high", "n"):
                yield (field.name, bound)


def _format_cell(person: PersonStatistics, path: tuple[str, ...]) -> Any:
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
            return get_shown_name(value)
    return value


def list_authors(rounds: Sequence[Round]) -> list[AuthorStatistics]:
    """Return the authors of the rounds, in the order of `_build_author_sort_key`."""
    return sorted(list_author_statistics(rounds), key=_build_author_sort_key)


def list_validators(rounds: Sequence[Round]) -> list[ValidatorStatistics]:
    """Return the validators of the rounds, the ones whose work most needs a check first."""
    return sorted(list_validator_statistics(rounds), key=_build_validator_sort_key)


def compute_skip_rate(validator: ValidatorStatistics) -> Rate | Undefined:
    """Return the share of skipped examples among all that the validator answered or skipped."""
    return compute_rate(validator.skips, validator.votes + validator.skips)
