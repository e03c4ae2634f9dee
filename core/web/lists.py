"""Show lists in pages, so that the last row of every list can be reached.

The URL says which rows are shown, by the same names everywhere:

- `page`: the number of the page, from 1 (`list_page`)
- `after`: the id of the last row of the previous page, for lists whose rows disappear while
  somebody works through them, and for lists that are too long to count (`select_rows_after`)
- `sort`: the column to sort by, with `-` before it for descending order
- `format`: the whole list as a file

Every other name is a filter, called by what it filters, such as `round` (`ListFilter`). The pager's
links keep the filters; changing a filter returns to the first page.
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

PAGE_PARAMETER = "page"
AFTER_PARAMETER = "after"
MAX_PAGE_ROWS = 100
"""The maximum number of rows on a page, and the default of `list_page`."""
MAX_NUMBER_DIGITS = 9
"""The maximum number of digits of a page number. More would overflow the database's OFFSET."""
MAX_ID_DIGITS = 18
"""The maximum number of digits of an id. More would overflow the database's column."""

Row = TypeVar("Row")
RowModel = TypeVar("RowModel", bound=Model)


class InvalidListQuery(Http404):
    """Raised if the URL has a page number, an id or a filter that the list does not accept.

    The response is a 404 with the reason and a link to the beginning of the list.

    link: the query string that opens the list at its beginning.
    """

    def __init__(self, message: str, *, link: str) -> None:
        super().__init__(message)
        self.link = link


@dataclass(frozen=True)
class ListPage(Generic[Row]):
    """The rows of one page of a list, and the query strings of the links to other pages.

    parameter: the name of the page's parameter in the URL. number: the page's number; None if pages
    are found by the last row of the previous page. total: the number of pages; None if unknown.
    start: how many rows precede those shown. first, previous, next: query strings; "" if there is
    no such page.
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
    """Rows that can be counted only by reading all of them.

    read: returns the rows from one index up to, but not including, another.
    """

    read: Callable[[int, int], Sequence[Row]]

    def __getitem__(self, part: slice) -> Sequence[Row]:
        return self.read(part.start, part.stop)


def list_page(
    request: HttpRequest,
    rows: QuerySet[Any, Row] | Sequence[Row] | RowStream[Row],
    *,
    size: int = MAX_PAGE_ROWS,
    name: str = "",
) -> ListPage[Row]:
    """Return the page of `rows` that the URL asks for. Raises InvalidListQuery.

    Makes one query, and a second one to count the rows if more follow.

    name: distinguishes several lists on one page. The parameter is then `name-page`.
    """
    parameter = f"{name}-{PAGE_PARAMETER}" if name else PAGE_PARAMETER
    return get_numbered_page(
        rows,
        request.GET.get(parameter, ""),
        partial(build_link_with_parameter, request, parameter),
        size=size,
        parameter=parameter,
    )


def get_numbered_page(
    rows: QuerySet[Any, Row] | Sequence[Row] | RowStream[Row],
    text: str,
    build_link: Callable[[str], str],
    *,
    size: int = MAX_PAGE_ROWS,
    parameter: str = PAGE_PARAMETER,
) -> ListPage[Row]:
    """Return page number `text` of `rows`; the first page if `text` is "". Raises InvalidListQuery.

    build_link: a function that returns the query string of a page, given its number as text.
    """
    number = _parse_page_number(text, build_link)
    size = min(size, MAX_PAGE_ROWS)
    start = (number - 1) * size
    # One more than the page shows tells whether another page follows.
    rows_and_next = list(rows[start : start + size + 1])
    # An empty list has a first page, so that it can say that it is empty.
    if number > 1 and not rows_and_next:
        raise _build_no_page_error(number, _count_pages(rows, size), build_link)
    # Without a further page, this one is the last, and no count is needed.
    total: int | None = number
    previous_query = next_query = ""
    if number == 2:
        previous_query = build_link("")
    elif number > 2:
        previous_query = build_link(str(number - 1))
    if len(rows_and_next) > size:
        total = _count_pages(rows, size)
        next_query = build_link(str(number + 1))
    return ListPage(
        rows_and_next[:size],
        parameter,
        number,
        total,
        start,
        previous=previous_query,
        next=next_query,
    )


def _count_pages(rows: Any, size: int) -> int | None:
    """Return the number of pages of the rows; None if the rows cannot be counted."""
    match rows:
        case RowStream():
            return None
        case QuerySet():
            return ceil(rows.count() / size)
    return ceil(len(rows) / size)


def read_after(request: HttpRequest) -> int:
    """Return the id after which the page begins; 0 for the first page. Raises InvalidListQuery."""
    text = request.GET.get(AFTER_PARAMETER, "")
    if not text:
        return 0
    if not _is_number(text, MAX_ID_DIGITS):
        message = _("The position in the URL isn't valid. Go to the start of the list.")
        raise InvalidListQuery(
            message, link=build_link_with_parameter(request, AFTER_PARAMETER, "")
        )
    return int(text)


def select_rows_after(
    request: HttpRequest, rows: QuerySet[RowModel], *, size: int = MAX_PAGE_ROWS
) -> ListPage[RowModel]:
    """Return the page that begins after the row named in the URL. One query.

    Raises InvalidListQuery.

    rows: ordered by id, from the oldest or from the newest.
    """
    after_id = read_after(request)
    # The order decides on which side of the last row the next ones are.
    is_newest_first = "-pk" in rows.query.order_by
    if after_id:
        rows = rows.filter(pk__lt=after_id) if is_newest_first else rows.filter(pk__gt=after_id)
    size = min(size, MAX_PAGE_ROWS)
    # One more than the page shows tells whether another page follows.
    rows_and_next = list(rows[: size + 1])
    shown_rows = rows_and_next[:size]
    last_id = shown_rows[-1].pk if len(rows_and_next) > size else None
    return build_page_after(request, shown_rows, last_id)


def build_page_after(
    request: HttpRequest, rows: Sequence[Row], last_id: int | None
) -> ListPage[Row]:
    """Return a page whose rows follow the row named in the URL.

    last_id: the id of the page's last row if more rows follow, otherwise None.
    """
    return ListPage(
        rows,
        AFTER_PARAMETER,
        first=build_link_with_parameter(request, AFTER_PARAMETER, "")
        if request.GET.get(AFTER_PARAMETER)
        else "",
        next=build_link_with_parameter(request, AFTER_PARAMETER, str(last_id)) if last_id else "",
    )


class ListFilter(forms.Form):
    """The filters of a list, read from the URL.

    Creating it raises InvalidListQuery for a value that no link or form of the site offers.
    """

    are_all_optional = True  # so none says it

    def __init__(self, request: HttpRequest, **choices: Iterable[tuple[Any, str]]) -> None:
        """Read the filters from the request.

        choices: the choices of fields, by name, if they come from the database. Raises
        InvalidListQuery.
        """
        values = {name: field.initial for name, field in self.base_fields.items()}
        for name in self.base_fields:
            if name in request.GET:
                values[name] = request.GET[name]
        # With the defaults in place, so that the form shows what is chosen.
        super().__init__(values, auto_id="filter-%s")
        for name, names in choices.items():
            self.fields[name].choices = [("", _("All")), *names]  # type: ignore[attr-defined]
        for name in self.errors:
            message = _("The filter “%(filter)s” doesn't have this value. Choose another value.")
            raise InvalidListQuery(
                message % {"filter": self.fields[name].label},
                link=build_link_with_parameter(request, name, ""),
            )

    @property
    def chosen_values(self) -> dict[str, Any]:
        """Return the values of the filters that are set, by name."""
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    @property
    def is_changed(self) -> bool:
        """Return whether a filter is set to a value other than its initial one."""
        return any(
            value != (self.fields[name].initial or "") for name, value in self.chosen_values.items()
        )

    @property
    def query(self) -> str:
        """Return the filters that are set as a query string."""
        return "?" + urlencode(self.chosen_values)


def build_link_with_parameter(request: HttpRequest, name: str, value: str) -> str:
    """Return the query string with one parameter replaced, or removed if `value` is ""."""
    query: QueryDict = request.GET.copy()
    query.pop(name, None)
    if value:
        query[name] = value
    return f"?{query.urlencode()}"


def _parse_page_number(text: str, build_link: Callable[[str], str]) -> int:
    if not text:
        return 1
    if not _is_number(text, MAX_NUMBER_DIGITS) or int(text) == 0:
        raise InvalidListQuery(
            _("The page number in the URL isn't valid. Go to the first page."), link=build_link("")
        )
    return int(text)


def _is_number(text: str, max_digits: int) -> bool:
    # isdecimal alone accepts digits of every script, and int takes any length.
    return text.isascii() and text.isdecimal() and len(text) <= max_digits


def _build_no_page_error(
    number: int, total: int | None, build_link: Callable[[str], str]
) -> InvalidListQuery:
    message = _("This list doesn't have page %(number)d. Go to the first page.") % {
        "number": number
    }
    if total is not None:
        message = ngettext(
            "Page %(number)d doesn't exist. This list has %(total)d page.",
            "Page %(number)d doesn't exist. This list has %(total)d pages.",
            total,
        ) % {"total": total, "number": number}
    return InvalidListQuery(message, link=build_link(""))
