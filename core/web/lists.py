"""Show a list in pages, so that its last row can be reached on every page of the site.

The address says which rows are shown, by the same names everywhere:

- `page`: the number of the page, from 1 (`list_page`)
- `after`: the row behind which the page begins, for lists whose rows go while somebody works
  through them, and for those that are too long to count (`rows_after`)
- `sort`: the column to sort by, with `-` before it for the other direction
- `format`: the whole list as a file

Every other name is a filter, called by what it filters, such as `round` (`ListFilter`). Links of
the pager keep filters; a changed filter begins at the first page.
`templates/components/pages.html` shows the links.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django import forms
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

PAGE = "page"
AFTER = "after"
LARGEST_PAGE = 100
"""No page has more rows, whatever a list asks for."""
LONGEST_NUMBER = 9
"""Digits of the number of a page. Larger ones would not fit the database's OFFSET."""
LONGEST_ID = 18
"""Digits of an id. Larger ones would not fit the database's column."""

Row = TypeVar("Row")
RowModel = TypeVar("RowModel", bound=Model)


class NoSuchRows(Http404):
    """An address that asks for rows in a way that the list does not understand.

    Answered with 404, the reason, and a link to the beginning of the list.

    link: the query that opens the list where it begins.
    """

    def __init__(self, message: str, *, link: str) -> None:
        super().__init__(message)
        self.link = link


@dataclass(frozen=True)
class ListPage(Generic[Row]):
    """The rows of one page of a list, and the queries of the links to its other pages.

    parameter: the name in the address. number: the page's number; None where pages are found by
    the last row of the page before. total: how many pages there are; None: unknown. start: how
    many rows come before those shown. first, previous, next: "" where there is no such page.
    """

    rows: Sequence[Row]
    parameter: str
    number: int | None = None
    total: int | None = None
    start: int = 0
    first: str = ""
    previous: str = ""
    next: str = ""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def has_others(self) -> bool:
        """Return whether the list has rows that are not on this page."""
        return bool(self.first or self.previous or self.next)


@dataclass(frozen=True)
class RowStream(Generic[Row]):
    """Rows that nobody can count without reading all of them. read: returns those of two places."""

    read: Callable[[int, int], Sequence[Row]]

    def __getitem__(self, part: slice) -> Sequence[Row]:
        return self.read(part.start, part.stop)


def list_page(
    request: HttpRequest,
    rows: QuerySet[Any, Row] | Sequence[Row] | RowStream[Row],
    *,
    size: int = LARGEST_PAGE,
    name: str = "",
) -> ListPage[Row]:
    """Return the page of `rows` that the address asks for. Raises NoSuchRows.

    One query, and a second one to count where more rows follow.

    name: tells the lists of one page apart; its pages are then asked for by `name-page`.
    """
    parameter = f"{name}-{PAGE}" if name else PAGE
    return numbered_page(
        rows,
        request.GET.get(parameter, ""),
        partial(with_parameter, request, parameter),
        size=size,
        parameter=parameter,
    )


def numbered_page(
    rows: QuerySet[Any, Row] | Sequence[Row] | RowStream[Row],
    text: str,
    link: Callable[[str], str],
    *,
    size: int = LARGEST_PAGE,
    parameter: str = PAGE,
) -> ListPage[Row]:
    """Return the page of `rows` whose number is `text`; "": the first. Raises NoSuchRows.

    link: returns the query of a page by the text of its number.
    """
    number = _page_number(text, link)
    size = min(size, LARGEST_PAGE)
    start = (number - 1) * size
    # One more than the page shows tells whether another page follows.
    some_rows = list(rows[start : start + size + 1])
    if number > 1 and not some_rows:
        raise _no_page(number, _count_pages(rows, size), link)
    total: int | None = number
    previous_query = next_query = ""
    if number == 2:
        previous_query = link("")
    elif number > 2:
        previous_query = link(str(number - 1))
    if len(some_rows) > size:
        total = _count_pages(rows, size)
        next_query = link(str(number + 1))
    return ListPage(
        some_rows[:size],
        parameter,
        number,
        total,
        start,
        previous=previous_query,
        next=next_query,
    )


def _count_pages(rows: Any, size: int) -> int | None:
    """Return how many pages the rows make; None: they cannot be counted."""
    match rows:
        case RowStream():
            return None
        case QuerySet():
            return ceil(rows.count() / size)
    return ceil(len(rows) / size)


def read_after(request: HttpRequest) -> int:
    """Return the id behind which the address begins; 0: the beginning. Raises NoSuchRows."""
    text = request.GET.get(AFTER, "")
    if not text:
        return 0
    if not _is_number(text, LONGEST_ID):
        message = _("The address contains no valid place in this list.")
        raise NoSuchRows(message, link=with_parameter(request, AFTER, ""))
    return int(text)


def rows_after(
    request: HttpRequest, rows: QuerySet[RowModel], *, size: int = LARGEST_PAGE
) -> ListPage[RowModel]:
    """Return the page that begins behind the row of the address. Raises NoSuchRows. One query.

    rows: ordered by id, from the oldest or from the newest.
    """
    after_id = read_after(request)
    is_newest_first = "-pk" in rows.query.order_by
    if after_id:
        rows = rows.filter(pk__lt=after_id) if is_newest_first else rows.filter(pk__gt=after_id)
    size = min(size, LARGEST_PAGE)
    some_rows = list(rows[: size + 1])
    shown_rows = some_rows[:size]
    last = shown_rows[-1].pk if len(some_rows) > size else None
    return page_after(request, shown_rows, last)


def page_after(request: HttpRequest, rows: Sequence[Row], last_id: int | None) -> ListPage[Row]:
    """Return a page that begins behind a row.

    last_id: the id of its last row where others follow, else None.
    """
    return ListPage(
        rows,
        AFTER,
        first=with_parameter(request, AFTER, "") if request.GET.get(AFTER) else "",
        next=with_parameter(request, AFTER, str(last_id)) if last_id else "",
    )


class ListFilter(forms.Form):
    """The filters of a list, read from its address. `chosen` has those that are set.

    A value that no link or form of ours offers raises NoSuchRows when the filters are made.
    """

    are_all_optional = True  # so none says it

    def __init__(self, request: HttpRequest, **choices: Iterable[tuple[Any, str]]) -> None:
        """Read the filters. choices: those of fields whose choices only the database knows."""
        values = {name: field.initial for name, field in self.base_fields.items()}
        for name in self.base_fields:
            if name in request.GET:
                values[name] = request.GET[name]
        # With the defaults in place, so that the form shows what is chosen.
        super().__init__(values, auto_id="filter-%s")
        for name, names in choices.items():
            self.fields[name].choices = [("", _("All")), *names]  # type: ignore[attr-defined]
        for name in self.errors:
            message = _("The filter “%(filter)s” has no such value.")
            raise NoSuchRows(
                message % {"filter": self.fields[name].label},
                link=with_parameter(request, name, ""),
            )

    @property
    def chosen(self) -> dict[str, Any]:
        """Return the filters that are set, by name."""
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    @property
    def query(self) -> str:
        """Return the filters that are set as the end of an address."""
        return "?" + urlencode(self.chosen)


def with_parameter(request: HttpRequest, name: str, value: str) -> str:
    """Return the query of the address with one parameter replaced; "": without it."""
    query: QueryDict = request.GET.copy()
    query.pop(name, None)
    if value:
        query[name] = value
    return f"?{query.urlencode()}"


def _page_number(text: str, link: Callable[[str], str]) -> int:
    if not text:
        return 1
    if not _is_number(text, LONGEST_NUMBER) or int(text) == 0:
        raise NoSuchRows(_("The address contains no valid page number."), link=link(""))
    return int(text)


def _is_number(text: str, longest: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= longest


def _no_page(number: int, total: int | None, link: Callable[[str], str]) -> NoSuchRows:
    message = _("This list has no page %(number)d.") % {"number": number}
    if total is not None:
        message = ngettext(
            "There is no page %(number)d. This list has %(total)d page.",
            "There is no page %(number)d. This list has %(total)d pages.",
            total,
        ) % {"total": total, "number": number}
    return NoSuchRows(message, link=link(""))
