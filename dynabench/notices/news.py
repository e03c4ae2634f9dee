"""News for people about their own work, read from the rows of that work."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Q

from core.accounts.models import PANEL_ADDRESS_ENDING, User
from dynabench.notices.registry import News, list_news_kinds

RECENT_TIME = timedelta(days=7)


def find_news(now: datetime, user: User | None = None) -> Iterator[News]:
    """Yield the past week's news, for one person or for everybody who can get email.

    Eight queries.
    """
    for kind in list_news_kinds():
        yield from kind.read_news(now, user)


def build_user_filter(path: str, user: User | None) -> Q:
    """Return a condition for the rows of the person, or of all active people with an email address.

    Panel participants have no email address. path: the lookup of the user.
    """
    # On a page the person is signed in, so nothing else has to hold.
    if user is not None:
        return Q(**{path: user})
    return Q(**{f"{path}__is_active": True}) & ~Q(
        **{f"{path}__email__endswith": PANEL_ADDRESS_ENDING}
    )
