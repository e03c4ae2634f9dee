"""News for people about their own work, read from its rows, for digests and a page."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Q

from core.accounts.models import PANEL_PEOPLE, User
from dynabench.notices.registry import News, all_news

RECENT = timedelta(days=7)


def news(now: datetime, user: User | None = None) -> Iterator[News]:
    """Yield what is new within a week, for one person or for everybody who gets mails.

    Eight queries.
    """
    for kind in all_news():
        yield from kind.read(now, user)


def is_of(path: str, user: User | None) -> Q:
    """Return the condition that rows are this person's, or anybody's who has an address.

    People who came from a panel have none.
    """
    # On a page the person is signed in, so nothing else has to hold.
    if user is not None:
        return Q(**{path: user})
    return Q(**{f"{path}__is_active": True}) & ~Q(**{f"{path}__email__endswith": PANEL_PEOPLE})
