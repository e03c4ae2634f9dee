"""Authors and validators by pseudonym, with the evidence. Nothing here pays or excludes."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, get_args

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from core.accounts.models import Annotator
from core.accounts.people import shown_name
from core.web.downloads import csv_file
from dynabench.manage.access import owned_task
from tasks.models import Round, Task
from validation.rules.gold_check import Check
from validation.rules.rates import Rate, Undefined, rate
from validation.statistics.people import (
    AuthorStatistics,
    ValidatorStatistics,
    author_statistics,
    validator_statistics,
)

MOST_SHOWN = 100
"""People in a table; the file has all of them."""
WORDS = {
    Check.PASS: _("pass"),
    Check.FAIL: _("fail: look at their examples"),
    Check.UNKNOWN: _("unknown"),
}
Person = AuthorStatistics | ValidatorStatistics


def labels_check(author: AuthorStatistics) -> Check:
    """Return FAIL if most decisions surely (95 %) contradict the author's labels."""
    return _half(author.label_flip, bad_if_high=True)


def agreement_check(validator: ValidatorStatistics) -> Check:
    """Return FAIL if most of the other people's votes on the same examples surely (95 %) differ."""
    return _half(validator.reliability, bad_if_high=False)


def _half(share: Rate | Undefined, *, bad_if_high: bool) -> Check:
    """Return the side of one half on which an interval lies; UNKNOWN while it includes one half."""
    if isinstance(share, Undefined) or share.low <= 0.5 <= share.high:
        return Check.UNKNOWN
    return Check.FAIL if (share.low > 0.5) == bad_if_high else Check.PASS


def _need_of_author(author: AuthorStatistics) -> tuple[float, int]:
    """Return the key that sorts authors: most surely contradicted first, then the most tries."""
    flipped = author.label_flip
    return -(0 if isinstance(flipped, Undefined) else flipped.low), -author.tries


def _need_of_validator(validator: ValidatorStatistics) -> tuple[bool, bool, float, int]:
    """Return the key that sorts validators, those first whose work needs a look.

    Failed gold and votes without reading come first, then sure disagreement, then most votes.
    """
    agreed = validator.reliability
    surely_differs = 0 if isinstance(agreed, Undefined) else 1 - agreed.high
    has_read = validator.reading_check is not Check.FAIL
    return validator.gold_check is not Check.FAIL, has_read, -surely_differs, -validator.votes


@require_safe
def annotators(request: HttpRequest, code: str) -> HttpResponse:
    """Show authors and validators, those first whose work needs a look."""
    task = owned_task(request, code)
    rounds, named = _rounds(request, task)
    authors, validators = authors_of(named or rounds), validators_of(named or rounds)
    values = {
        "task": task,
        "rounds": rounds,
        "chosen": named[0] if named else None,
        "authors": [
            (shown_name(one.annotator), WORDS[labels_check(one)], one)
            for one in authors[:MOST_SHOWN]
        ],
        "validators": [
            (
                shown_name(one.annotator),
                WORDS[one.gold_check],
                WORDS[agreement_check(one)],
                WORDS[one.reading_check],
                skipped(one),
                one,
            )
            for one in validators[:MOST_SHOWN]
        ],
        "counts": {"authors": len(authors), "validators": len(validators)},
    }
    return render(request, "own/annotators.html", values)


@require_safe
def annotators_file(request: HttpRequest, code: str, who: str) -> HttpResponse:
    """Download all rows of one of the two tables as CSV. Unknown numbers are empty."""
    task = owned_task(request, code)
    rounds, named = _rounds(request, task)
    read = authors_of if who == "authors" else validators_of
    people: Sequence[Person] = read(named or rounds)
    columns = list(_columns(AuthorStatistics if who == "authors" else ValidatorStatistics))
    names = ["_".join(path) for path in columns]
    cells = ([_cell(one, path) for path in columns] for one in people)
    return csv_file([names, *cells], f"{task.code}-{who}.csv")


def _columns(kind: type[Person]) -> Iterator[tuple[str, ...]]:
    """Yield the paths to what a row holds; after a share come its interval and its n."""
    for one in fields(kind):
        yield (one.name,)
        if Rate in get_args(one.type):
            yield from ((one.name, part) for part in ("low", "high", "n"))


def _cell(person: Person, path: tuple[str, ...]) -> Any:
    name, *part = path
    value = getattr(person, name)
    if isinstance(value, Undefined):
        return ""
    if isinstance(value, Rate):
        return getattr(value, *part) if part else value.value
    if isinstance(value, Check):
        return value.value
    return shown_name(value) if isinstance(value, Annotator) else value


def _rounds(request: HttpRequest, task: Task) -> tuple[list[Round], list[Round]]:
    """Return all rounds of the task, and those that the address asks for.

    The second list is empty where it asks for none; then all rounds are meant.
    """
    rounds = list(task.rounds.order_by("-number"))
    named = [round for round in rounds if str(round.number) == request.GET.get("round")]
    return rounds, named


def authors_of(rounds: Sequence[Round]) -> list[AuthorStatistics]:
    """Return the authors of the rounds, those first whose labels were most surely contradicted."""
    return sorted(author_statistics(rounds), key=_need_of_author)


def validators_of(rounds: Sequence[Round]) -> list[ValidatorStatistics]:
    """Return the validators of the rounds, those first whose work needs a look."""
    return sorted(validator_statistics(rounds), key=_need_of_validator)


def skipped(one: ValidatorStatistics) -> Rate | Undefined:
    """Return the share of examples that the validator skipped, of those answered or skipped."""
    return rate(one.skips, one.votes + one.skips)
