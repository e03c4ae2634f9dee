"""A person's news and open assignments, the newest first, and their number in the menu.

The number is stored in the session: counted at sign-in and on the page of news, and again by the
next page once it is FRESH old. So other pages read it without a query.
"""

from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils import timezone

from core.accounts.models import User
from core.accounts.people import person
from core.web.htmx import htmx_partial
from dynabench.notices.assignments import AssignmentNews, list_own_assignment_news
from dynabench.notices.kinds.examples import SENT_BACK
from dynabench.notices.models import Digest
from dynabench.notices.news import find_news
from dynabench.notices.registry import News
from dynabench.notices.services import note_seen

SESSION_KEY = "inbox"
"""The key of the number in the session."""
MAX_COUNT_AGE = timedelta(minutes=5)
"""How long the number is not counted again."""
Item = News | AssignmentNews


def list_items(user: User, now: datetime) -> list[Item]:
    """Return the person's news of the past week and their unfinished assignments."""
    items: list[Item] = list(find_news(now, user))
    items += list_own_assignment_news(user, now)
    return sorted(items, key=lambda item: item.began_at, reverse=True)


def see_items(request: HttpRequest) -> list[Item]:
    """Return the items for the page that lists them, and mark them as seen."""
    user, now = person(request), timezone.now()
    items = list_items(user, now)
    note_seen(user=user, now=now)
    _store_number(request, sum(map(_needs_work, items)), now)
    return items


def renew_number(request: HttpRequest) -> None:
    """Recount the items that wait for the signed-in person; about fourteen queries."""
    user, now = person(request), timezone.now()
    # None: they have never looked, so everything is new.
    seen_at = Digest.objects.filter(user=user).values_list("seen_at", flat=True).first()
    number = 0
    for item in list_items(user, now):
        if _needs_work(item) or seen_at is None or item.began_at > seen_at:
            number += 1
    _store_number(request, number, now)


def get_menu_number(request: HttpRequest) -> int:
    """Return the cached number of waiting items; for a full page, recount an old one."""
    # None: nobody is signed in, or they signed in before this was counted.
    number, counted_at = request.session.get(SESSION_KEY, (0, None))
    # Not in answers to forms or parts of pages, which show no menu, or the one that is there.
    if counted_at is None or request.method != "GET" or htmx_partial(request):
        return int(number)
    if datetime.fromisoformat(counted_at) < timezone.now() - MAX_COUNT_AGE:
        renew_number(request)
    return int(request.session[SESSION_KEY][0])


def _needs_work(item: Item) -> bool:
    """Return whether an item counts until it is done; other items count until they are read."""
    if isinstance(item, AssignmentNews):
        return item.assignment.person_id is not None
    return item.kind == SENT_BACK


def _store_number(request: HttpRequest, number: int, now: datetime) -> None:
    """Store the menu's number in the session, with the time of counting."""
    request.session[SESSION_KEY] = (number, now.isoformat())
