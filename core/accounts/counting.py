"""Count quotas and seen results for a person, not for an account.

An account can be deleted and created again within minutes. So each confirmed address leaves a keyed
hash (`AddressMark`), which survives the deletion. An account that confirms a marked address counts
as the same person. Nothing here refers to a pseudonym or to what somebody wrote.
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
from core.data.encryption import UnreadableSecret, decrypt, encrypt
from core.days import get_today
from core.mail.mailboxes import normalise_address
from core.periodic import register_daily_tidying

logger = logging.getLogger(__name__)
KEY_PURPOSE = "address marks"
SPENT_SQL = """
(SELECT COALESCE(SUM(s.number), 0) FROM accounts_spentquota s
 JOIN accounts_personaccount p ON p.person_id = s.person_id
 JOIN accounts_annotator a ON a.user_id = p.user_id
 WHERE a.id = %s AND s.quota = %s AND s.day = %s)
"""
"""The result of `count_spent_today` as an SQL expression, for use in a larger statement.

Parameters: the annotator's id, the quota's name, the day.
"""


def find_counted_person(user: User) -> CountedPerson:
    """Return the counted person to whom the account's quotas and seen scores belong.

    If the account has none yet, calls `assign_counted_person`, which creates one and takes locks.
    """
    link = PersonAccount.objects.filter(user=user).select_related("person").first()
    return link.person if link else assign_counted_person(user)


@transaction.atomic
def assign_counted_person(user: User) -> CountedPerson:
    """Return the account's counted person, after marking its confirmed addresses.

    Creates a person if there is none. People who share a marked address are merged. Locks the user,
    then these people in the order of their ids.
    """
    # Without it, two tabs of one account would make two people.
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    digests = _hash_known_addresses(user)
    people = _lock_people(user, digests)
    person = people[0] if people else CountedPerson.objects.create()
    for other in people[1:]:
        _merge_people(other, person)
    PersonAccount.objects.get_or_create(user=user, defaults={"person": person})
    marks = [AddressMark(digest=digest, person=person) for digest in sorted(digests)]
    # An address may have its mark by now, of this person or of another.
    AddressMark.objects.bulk_create(marks, ignore_conflicts=True)
    # Another account may have marked one of them since `_lock_people` looked.
    if AddressMark.objects.filter(digest__in=digests).exclude(person=person).exists():
        return assign_counted_person(user)
    return person


def lock_counted_person(user: User) -> CountedPerson:
    """Lock and return the account's counted person, creating one if there is none.

    Call it in a transaction.
    """
    while True:
        person = _lock_person(find_counted_person(user).pk)
        if person:
            return person
        # It was joined with another one, which the account's row names by now.


def _lock_person(pk: Any) -> CountedPerson | None:
    people = CountedPerson.objects.select_for_update(of=("self",), no_key=True)
    return people.filter(pk=pk).first()


def _lock_people(user: User, digests: set[str]) -> list[CountedPerson]:
    """Lock and return the counted people of an account and of address hashes, oldest first.

    The exclusive lock waits until rows that refer to them are inserted, so that `_merge_people`
    sees the rows.
    """
    while True:
        person_ids = {
            *AddressMark.objects.filter(digest__in=digests).values_list("person", flat=True),
            *PersonAccount.objects.filter(user=user).values_list("person", flat=True),
        }
        locked_people = CountedPerson.objects.select_for_update(of=("self",)).filter(
            pk__in=person_ids
        )
        # In one order everywhere, so that two requests never wait for each other.
        people = list(locked_people.order_by("pk"))
        # A missing one was joined with another in the meantime: read again who counts.
        if len(people) == len(person_ids):
            return sorted(people, key=lambda person: (person.created_at, person.pk))


def _merge_people(merged_person: CountedPerson, person: CountedPerson) -> None:
    """Merge `merged_person` into `person`. Both are locked."""
    # All of them, so that a table added later is not forgotten.
    for relation in CountedPerson._meta.related_objects:
        # The base manager, because a model's own manager may hide rows.
        rows = relation.related_model._base_manager.filter(**{relation.field.name: merged_person})
        rows.update(**{relation.field.name: person})
    merged_person.delete()


# Addresses


def _hash_known_addresses(user: User) -> set[str]:
    """Return the hashes of the account's confirmed addresses.

    If the site does not require confirmation, an account without a confirmed address has the hash
    of its sign-up address. It has none if another account is already counted under that address:
    otherwise a stranger could use up that person's quotas.
    """
    confirmed_addresses = EmailAddress.objects.filter(user=user, verified=True)
    digests = {
        _hash_address(address) for address in confirmed_addresses.values_list("email", flat=True)
    }
    if digests or settings.ACCOUNT_EMAIL_VERIFICATION == "mandatory":
        return digests
    signup_digest = _hash_address(user.email)
    other_accounts = PersonAccount.objects.filter(person__marks__digest=signup_digest).exclude(
        user=user
    )
    return set() if other_accounts.exists() else {signup_digest}


def count_confirmed_address(*, instance: EmailAddress, raw: bool = False, **_kwargs: Any) -> None:
    """Assign an account to its counted person when an address is confirmed. A signal receiver.

    On sites that do not require confirmation, every stored address has this effect.
    """
    # `raw`: rows come from a fixture, and those that they name may not be there yet.
    is_confirmed = instance.verified or settings.ACCOUNT_EMAIL_VERIFICATION != "mandatory"
    if is_confirmed and not raw:
        assign_counted_person(instance.user)


def _hash_address(address: str) -> str:
    # With a key, because a plain hash can be tried out with lists of known addresses.
    return hmac.new(_derive_key(), normalise_address(address).encode(), hashlib.sha256).hexdigest()


def _derive_key() -> bytes:
    """Return the key for the hashes of addresses, creating it if it is missing.

    It is random and stored encrypted, so that it survives a change of SECRET_KEY. If no known
    SECRET_KEY decrypts it, a new key replaces it, and all earlier marks are lost.
    """
    defaults = {"sealed": encrypt(secrets.token_hex(32))}
    # Of two processes that need it at once, the second gets the first one's key.
    row, _is_new = SiteKey.objects.get_or_create(name=KEY_PURPOSE, defaults=defaults)
    try:
        return decrypt(row.sealed).encode()
    except UnreadableSecret:
        logger.error("No SECRET_KEY reads the key of address marks; those until now are lost.")
        # On condition: of several processes that cannot read it one stores a new key.
        SiteKey.objects.filter(pk=row.pk, sealed=row.sealed).update(**defaults)
        return _derive_key()


def is_key_lost() -> bool:
    """Return whether no known SECRET_KEY decrypts the key, so that the marks are useless."""
    try:
        return any(not decrypt(row.sealed) for row in SiteKey.objects.filter(name=KEY_PURPOSE))
    except UnreadableSecret:
        return True


# Quotas of a day


def build_quota_name(action: str, task_id: int) -> str:
    """Return the name of a task's daily quota for an action, such as tries."""
    return f"{action}:{task_id}"


def store_spent_quotas(user: User, spent_by_quota: Mapping[str, int]) -> None:
    """Store how much of each quota an account that is being deleted has used today.

    spent_by_quota: the amounts used, by the name of the quota. Call this function in the
    transaction that deletes the account. Locks the user, so that two requests to delete the account
    store the amounts once.
    """
    spent_numbers = {quota: number for quota, number in spent_by_quota.items() if number}
    # The second request waits here, and then finds no row.
    locked_user = User.objects.select_for_update(of=("self",)).filter(pk=user.pk).first()
    if not (spent_numbers and locked_user):
        return
    person = find_counted_person(user)
    SpentQuota.objects.bulk_create(
        SpentQuota(person=person, quota=quota, number=number, day=get_today())
        for quota, number in spent_numbers.items()
    )


def count_spent_today(user_id: int | None, quota: str) -> int:
    """Return how much of a quota the person used today with accounts that are now deleted."""
    spent_quotas = SpentQuota.objects.filter(
        person__accounts__user=user_id, quota=quota, day=get_today()
    )
    return spent_quotas.aggregate(number=Sum("number"))["number"] or 0


# Tidying


@register_daily_tidying(why="Marks of deleted accounts are kept for a limited time.")
@transaction.atomic
def tidy_counted_people(limit: int) -> int:
    """Delete up to `limit` people without accounts or quotas, and their marks; return how many.

    First deletes the spent quotas of former days, without a limit. Locks the people, because
    somebody may be signing up with a marked address.
    """
    # First: quotas of former days would keep their people from being idle.
    SpentQuota.objects.filter(day__lt=get_today()).delete()
    idle_ids = _select_idle_people().order_by("pk").values_list("pk", flat=True)[:limit]
    # Skipped if locked: somebody who is signing up is not idle, and tidying need not wait.
    unlocked_people = CountedPerson.objects.select_for_update(of=("self",), skip_locked=True)
    locked_ids = list(unlocked_people.filter(pk__in=list(idle_ids)).values_list("pk", flat=True))
    # Looked at again under the lock: a lock reads the row anew, not what points at it.
    deleted_ids = list(_select_idle_people().filter(pk__in=locked_ids).values_list("pk", flat=True))
    CountedPerson.objects.filter(pk__in=deleted_ids).delete()
    return len(deleted_ids)


def _select_idle_people() -> QuerySet[CountedPerson]:
    """Return the people to whom no account, model or quota refers.

    Address marks are not taken into account.
    """
    idle_people = CountedPerson.objects.all()
    for relation in CountedPerson._meta.related_objects:
        if relation.related_model is not AddressMark:
            idle_people = idle_people.filter(**{f"{relation.name}__isnull": True})
    return idle_people
