"""Sessions in the database, read by a query that is prepared: every page reads one."""

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import CharField, DateTimeField
from django.utils import timezone

from core.data.prepared import PreparedRead, Slot

STANDING = PreparedRead(
    lambda: Session.objects.filter(
        session_key=Slot("key", CharField()), expire_date__gt=Slot("now", DateTimeField())
    )
)


class SessionStore(db.SessionStore):
    """Django's store in the database.

    It keeps that one's name, which is part of the salt of what sessions hold. Nothing is cached: a
    session that was ended elsewhere is over at the next request.
    """

    def _get_session_from_db(self) -> Session | None:
        """Return the row of a session that stands; else forget its key."""
        row = STANDING.first(key=self.session_key, now=timezone.now())
        if row is None:
            self._session_key = None
        return row
