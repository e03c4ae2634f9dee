"""Who results shown and quotas count for: a person, by the addresses that they confirmed.

An account is deleted and made again within minutes. So a confirmed address leaves a keyed hash
(`AddressMark`), which stays after the deletion; an account that confirms a marked address counts
for the same person. Nothing here points at a pseudonym or at what somebody wrote.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, Sum

from core.accounts.models import (
    AddressMark,
    CountedPerson,
    PersonAccount,
    SiteKey,
    SpentQuota,
    User,
)
from core.data.encryption import Unreadable, decrypt, encrypt
from core.days import today
from core.mail.mailboxes import normal_address
from core.periodic import tidied_daily

logger = logging.getLogger(__name__)
KEY = "address marks"
SPENT_SQL = """
(SELECT COALESCE(SUM(s.number), 0) FROM accounts_spentquota s
 JOIN accounts_personaccount p ON p.person_id = s.person_id
 JOIN accounts_annotator a ON a.user_id = p.user_id
 WHERE a.id = %s AND s.quota = %s AND s.day = %s)
"""
"""`spent_today` for a statement that counts more: an annotator's id, a quota's name, the day."""


def find_counted_person(user: User) -> CountedPerson:
    """Return the person under whom the account's quotas and seen scores are counted.

    Creates the person the first time, and then locks as `settle_counted_person` does.
    """
    link = PersonAccount.objects.filter(user=user).select_related("person").first()
    return link.person if link else settle_counted_person(user)


@transaction.atomic
def settle_counted_person(user: User) -> CountedPerson:
    """Return the person that the account counts for, after marking its confirmed addresses.

    People who share a marked address are merged. Locks the user, then these people in the order of
    their ids.
    """
    # Without it, two tabs of one account would make two people.
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    digests = _known_digests(user)
    people = _lock_people(user, digests)
    person = people[0] if people else CountedPerson.objects.create()
    for other in people[1:]:
        _join(other, person)
    PersonAccount.objects.get_or_create(user=user, defaults={"person": person})
    marks = [AddressMark(digest=digest, person=person) for digest in sorted(digests)]
    # An address may have its mark by now, of this person or of another.
    AddressMark.objects.bulk_create(marks, ignore_conflicts=True)
    # Another account may have marked one of them since `_lock_people` looked.
    if AddressMark.objects.filter(digest__in=digests).exclude(person=person).exists():
        return settle_counted_person(user)
    return person


def lock_counted_person(user: User) -> CountedPerson:
    """Lock and return the person that the account counts for. Call it in a transaction."""
    while True:
        person = _lock_person(find_counted_person(user).pk)
        if person:
            return person
        # It was joined with another one, which the account's row names by now.


def _lock_person(pk: Any) -> CountedPerson | None:
    people = CountedPerson.objects.select_for_update(of=("self",), no_key=True)
    return people.filter(pk=pk).first()


def _lock_people(user: User, digests: set[str]) -> list[CountedPerson]:
    """Lock and return the people of an account and of these marks, the oldest first.

    The exclusive lock waits for rows that are being inserted for them, so that `_join` sees these.
    """
    while True:
        person_ids = {
            *AddressMark.objects.filter(digest__in=digests).values_list("person", flat=True),
            *PersonAccount.objects.filter(user=user).values_list("person", flat=True),
        }
        locked = CountedPerson.objects.select_for_update(of=("self",)).filter(pk__in=person_ids)
        people = list(locked.order_by("pk"))
        # A missing one was joined with another in the meantime: read again who counts.
        if len(people) == len(person_ids):
            return sorted(people, key=lambda one: (one.created_at, one.pk))


def _join(merged_person: CountedPerson, person: CountedPerson) -> None:
    """Merge `merged_person` into `person`. Both are locked."""
    # All of them, so that a table added later is not forgotten.
    for relation in CountedPerson._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{relation.field.name: merged_person})
        rows.update(**{relation.field.name: person})
    merged_person.delete()


# Addresses


def _known_digests(user: User) -> set[str]:
    """Return the hashes of the account's confirmed addresses.

    On a site that does not ask for confirmation, an account without a confirmed address has the
    hash of its sign-up address, unless another account counts for the same person: otherwise a
    stranger could use up that person's quotas.
    """
    confirmed = EmailAddress.objects.filter(user=user, verified=True)
    digests = {_digest(address) for address in confirmed.values_list("email", flat=True)}
    if digests or settings.ACCOUNT_EMAIL_VERIFICATION == "mandatory":
        return digests
    signed_up = _digest(user.email)
    others = PersonAccount.objects.filter(person__marks__digest=signed_up).exclude(user=user)
    return set() if others.exists() else {signed_up}


def note_address(*, instance: EmailAddress, raw: bool = False, **_named: Any) -> None:
    """Settle whom an account counts for after one of its addresses is confirmed; a receiver."""
    # `raw`: rows come from a fixture, and those that they name may not be there yet.
    is_confirmed = instance.verified or settings.ACCOUNT_EMAIL_VERIFICATION != "mandatory"
    if is_confirmed and not raw:
        settle_counted_person(instance.user)


def _digest(address: str) -> str:
    return hmac.new(_key(), normal_address(address).encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    """Return the key for the hashes of addresses.

    It is random and stored encrypted, so that it survives a change of SECRET_KEY.
    """
    defaults = {"sealed": encrypt(secrets.token_hex(32))}
    row, _is_new = SiteKey.objects.get_or_create(name=KEY, defaults=defaults)
    try:
        return decrypt(row.sealed).encode()
    except Unreadable:
        logger.error("No SECRET_KEY reads the key of address marks; those until now are lost.")
        # On condition: of several processes that cannot read it one stores a new key.
        SiteKey.objects.filter(pk=row.pk, sealed=row.sealed).update(**defaults)
        return _key()


def is_key_lost() -> bool:
    """Return whether no known SECRET_KEY decrypts the key, so that the marks are useless."""
    try:
        return any(not decrypt(row.sealed) for row in SiteKey.objects.filter(name=KEY))
    except Unreadable:
        return True


# Quotas of a day


def quota_name(action: str, task_id: int) -> str:
    """Return the name of a task's daily quota of an action, such as tries."""
    return f"{action}:{task_id}"


def keep_spent(user: User, numbers: Mapping[str, int]) -> None:
    """Store how much of each quota an account that is being deleted has used today.

    numbers: by quota name. Call it in the transaction that deletes the account. Locks the user, so
    that two requests to delete it store this once.
    """
    spent = {quota: number for quota, number in numbers.items() if number}
    # The second request waits here, and then finds no row.
    locked = User.objects.select_for_update(of=("self",)).filter(pk=user.pk).first()
    if not (spent and locked):
        return
    person = find_counted_person(user)
    SpentQuota.objects.bulk_create(
        SpentQuota(person=person, quota=quota, number=number, day=today())
        for quota, number in spent.items()
    )


def spent_today(user_id: int | None, quota: str) -> int:
    """Return how much of a quota the person used today with accounts that are now deleted."""
    spent = SpentQuota.objects.filter(person__accounts__user=user_id, quota=quota, day=today())
    return spent.aggregate(number=Sum("number"))["number"] or 0


# Tidying


@tidied_daily(why="Marks of deleted accounts are kept for a limited time.")
@transaction.atomic
def tidy_counted_people(limit: int) -> int:
    """Delete up to `limit` people for whom nothing counts any more, with marks; return how many.

    Locks them, because somebody may be signing up with a marked address.
    """
    # First: quotas of former days would keep their people from being idle.
    SpentQuota.objects.filter(day__lt=today()).delete()
    idle_ids = _idle_people().order_by("pk").values_list("pk", flat=True)[:limit]
    free = CountedPerson.objects.select_for_update(of=("self",), skip_locked=True)
    locked = list(free.filter(pk__in=list(idle_ids)).values_list("pk", flat=True))
    # Looked at again under the lock: a lock reads the row anew, not what points at it.
    gone = list(_idle_people().filter(pk__in=locked).values_list("pk", flat=True))
    CountedPerson.objects.filter(pk__in=gone).delete()
    return len(gone)


def _idle_people() -> QuerySet[CountedPerson]:
    """Return the people to whom no account, model or quota refers. Marks do not count."""
    idle_people = CountedPerson.objects.all()
    for relation in CountedPerson._meta.related_objects:
        if relation.related_model is not AddressMark:
            idle_people = idle_people.filter(**{f"{relation.name}__isnull": True})
    return idle_people
