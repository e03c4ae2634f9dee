"""Store sessions in the database and read them with a prepared query, as every page reads one."""

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import CharField, DateTimeField
from django.utils import timezone

from core.data.prepared import PreparedRead, Slot

ACTIVE_SESSION = PreparedRead(
    lambda: Session.objects.filter(
        session_key=Slot("key", CharField()), expire_date__gt=Slot("now", DateTimeField())
    )
)


class SessionStore(db.SessionStore):
    """Django's database session store without a cache.

    A session that was ended elsewhere is invalid at the next request. The class name equals
    Django's, because it is part of the salt with which sessions are signed.
    """

    def _get_session_from_db(self) -> Session | None:
        """Return the row of a valid session. Otherwise drop the session key and return None."""
        row = ACTIVE_SESSION.first(key=self.session_key, now=timezone.now())
        if row is None:
            self._session_key = None
        return row
