"""A person's news and open assignments, the newest first, and their number for the menu.

The session stores the number, so most pages read it without a query. It is counted at sign-in, on
the page of news, and by the next page once it is older than MAX_COUNT_AGE.
"""

from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils import timezone

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.htmx import is_htmx_partial
from dynabench.notices.assignments import AssignmentNews, list_own_assignment_news
from dynabench.notices.catches import announce_confirmed_catch
from dynabench.notices.kinds.examples import SENT_BACK
from dynabench.notices.models import Digest
from dynabench.notices.news import find_news
from dynabench.notices.registry import News
from dynabench.notices.services import note_news_seen

SESSION_KEY = "inbox"
"""The session's key of the number."""
MAX_COUNT_AGE = timedelta(minutes=5)
"""The age after which the next page counts again."""
InboxItem = News | AssignmentNews


def list_inbox_items(user: User, now: datetime) -> list[InboxItem]:
    """Return the person's news of the past week and their unfinished assignments, newest first."""
    items: list[InboxItem] = list(find_news(now, user))
    items += list_own_assignment_news(user, now)
    return sorted(items, key=lambda item: item.began_at, reverse=True)


def open_inbox(request: HttpRequest) -> list[InboxItem]:
    """Return the items for the page that lists them, and mark them as seen.

    Also renews the menu's number.
    """
    user, now = get_person(request), timezone.now()
    items = list_inbox_items(user, now)
    note_news_seen(user=user, now=now)
    _store_count(request, sum(map(_needs_work, items)), now)
    return items


def recount_items(request: HttpRequest) -> None:
    """Count the items that wait for the signed-in person, and store the number in the session.

    Also announces a catch that was confirmed meanwhile. About fourteen queries.
    """
    user, now = get_person(request), timezone.now()
    announce_confirmed_catch(request)
    # None: they have never looked, so everything is new.
    seen_at = Digest.objects.filter(user=user).values_list("seen_at", flat=True).first()
    count = 0
    for item in list_inbox_items(user, now):
        if _needs_work(item) or seen_at is None or item.began_at > seen_at:
            count += 1
    _store_count(request, count, now)


def get_item_count(request: HttpRequest) -> int:
    """Return the number of waiting items from the session; 0 if it has none.

    An outdated number is counted again if the request is for a full page.
    """
    # None: nobody is signed in, or they signed in before this was counted.
    count, counted_at = request.session.get(SESSION_KEY, (0, None))
    # Not in answers to forms or parts of pages, which show no menu, or the one that is there.
    if counted_at is None or request.method != "GET" or is_htmx_partial(request):
        return int(count)
    if datetime.fromisoformat(counted_at) < timezone.now() - MAX_COUNT_AGE:
        recount_items(request)
    return int(request.session[SESSION_KEY][0])


def _needs_work(item: InboxItem) -> bool:
    """Return whether an item counts until its work is done.

    Other items count until they are read.
    """
    if isinstance(item, AssignmentNews):
        return item.assignment.person_id is not None
    return item.kind == SENT_BACK


def _store_count(request: HttpRequest, count: int, now: datetime) -> None:
    """Store the menu's number in the session, with the time of counting."""
    request.session[SESSION_KEY] = (count, now.isoformat())
