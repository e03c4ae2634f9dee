"""The message on an author's next page that a catch was confirmed. It is shown once."""

from django.contrib import messages
from django.http import HttpRequest
from django.utils import timezone

from core.accounts.people import get_person
from core.accounts.services import get_annotator
from dynabench.catches.confirmation import CARD_LIFETIME, find_confirmed_catch
from dynabench.notices.models import Digest
from dynabench.notices.services import note_announced_catch


def announce_confirmed_catch(request: HttpRequest) -> None:
    """Announce the newest catch confirmed since the last announcement, on the next page.

    Catches confirmed more than CARD_LIFETIME ago are not announced. Two queries, and four more if
    there is a catch.
    """
    user = get_person(request)
    # Older ones are no news to somebody who was away.
    told_at = Digest.objects.filter(user=user).values_list("caught_at", flat=True).first()
    since = max(filter(None, [told_at, timezone.now() - CARD_LIFETIME]))
    confirmed = find_confirmed_catch(get_annotator(user), since)
    if confirmed and note_announced_catch(user=user, decided_at=confirmed.decided_at):
        messages.success(request, f"{confirmed.announcement} “{confirmed.text}”")
