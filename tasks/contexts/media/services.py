"""Writes about media: storing what was sent, noting what is used, deleting what nobody needs."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import Case, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import Annotator
from core.errors import Invalid
from core.files.bounded import MIB, Bounds, OutOfBounds, bounded
from core.files.decoding import DECODERS, MAX_BYTES, TOO_MANY_BYTES, BadMedia, Decoded
from core.files.storage.stored import files_in, folders_in
from core.periodic import tidied_daily
from tasks.models import Context, Media, Task
from tasks.questions import is_named_in_examples

DECODING_BOUNDS = Bounds(30, 896 * MIB)
"""40 megapixels in RGBA, upright and on white, are there four times."""
TOO_OFTEN_MESSAGE = gettext_noop(
    "You have sent many files. Wait an hour, or use one that you sent before."
)
UNUSED_PERIOD = timedelta(days=1)


def decode_upload(kind: str, data: bytes) -> Decoded:
    """Decode an uploaded file to its stored form. Raises Invalid.

    kind: image or audio.
    """
    if len(data) > MAX_BYTES:
        raise Invalid(_(TOO_MANY_BYTES))
    try:
        return bounded(partial(DECODERS[kind], data), DECODING_BOUNDS)
    except (BadMedia, OutOfBounds) as error:
        raise Invalid(_(str(error))) from None


def store_media(
    *, task: Task, kind: str, data: bytes, sent_by: Annotator | None = None
) -> dict[str, Any]:
    """Store a picture or recording, and return its value without `alt`. Equal files share a row.

    An unused file is deleted after a day. Takes no lock: the file is stored before its row.
    Raises Invalid.
    """
    decoded_file = decode_upload(kind, data)
    return store_decoded(task=task, decoded_file=decoded_file, sent_by=sent_by)


def store_decoded(
    *, task: Task, decoded_file: Decoded, sent_by: Annotator | None = None
) -> dict[str, Any]:
    """Store a decoded file and return its value, as `store_media` does."""
    # Of the re-encoded file: equal pictures have one digest, whatever their metadata was.
    digest = hashlib.sha256(decoded_file.data).hexdigest()
    # An update first: a file that is there needs no second copy, and its day begins again.
    same_media = Media.objects.filter(task=task, digest=digest)
    if not same_media.update(kept_from=timezone.now(), sent_by=_choose_owner(sent_by)):
        about = {
            "mime": decoded_file.mime,
            "size": len(decoded_file.data),
            "about": dict(decoded_file.about),
        }
        media = Media(task=task, digest=digest, sent_by=sent_by, **about)
        media.file.save(f"{digest}.{media.ending}", ContentFile(decoded_file.data), save=False)
        try:
            with transaction.atomic():
                media.save(force_insert=True)
        except BaseException as error:
            media.file.delete(save=False)
            if not isinstance(error, IntegrityError):  # else somebody stored the same meanwhile
                raise
    return build_value(same_media.get())


def _choose_owner(sender: Annotator | None) -> Case | None:
    """Return the new owner of a file that is sent again: the sender, or nobody while it is unused.

    Then both senders may see an unused file, and it is not deleted when one of them leaves.
    """
    if sender is None:
        return None
    # Decided in the database, by the row as it is at the update, and not by what was read before.
    of_both = When(~Q(sent_by=sender), is_used=False, then=Value(None))
    return Case(of_both, default=Value(sender.pk))


def build_value(media: Media) -> dict[str, Any]:
    """Return the value that a context or example stores for the file, without its description."""
    return {
        "digest": media.digest,
        "mime": media.mime,
        "bytes": media.size,
        **media.about,
    }


def keep_media(*, task: Task, digests: Collection[str], is_used: bool) -> None:
    """Keep the files for another day or, if `is_used`, permanently. Locks the rows.

    Raises Invalid if one of them no longer exists.
    """
    if not digests:
        return
    now: dict[str, Any] = {"kept_from": timezone.now()}
    now |= {"is_used": True, "is_withdrawn": False} if is_used else {}
    if _update(task, digests, **now) < len(set(digests)):
        raise Invalid(_("A picture or recording is not stored any more. Add it once more."))


def touch_media(*, task: Task, digests: Collection[str]) -> None:
    """Keep the files of a draft for another day. Locks the rows."""
    if digests:
        _update(task, digests, kept_from=timezone.now())


@transaction.atomic
def _update(task: Task, digests: Collection[str], **now: Any) -> int:
    """Update the rows and return their number.

    The rows are locked first: an update by itself would lock them in no particular order.
    """
    # 1. Lock the rows in the order of their ids.
    there = list(_lock_rows(task, digests).values_list("pk", flat=True))
    # 2. Update what is locked.
    return Media.objects.filter(pk__in=there).update(**now)


@tidied_daily(why="Media that no text uses is not kept.")
def tidy_media(most: int) -> int:
    """Delete up to `most` files that nobody has used for a day; return how many."""
    # The index `media_unused` serves this query: most rows are used.
    old = Media.objects.filter(is_used=False, kept_from__lt=timezone.now() - UNUSED_PERIOD)
    return delete_media(old.filter(pk__in=old.values("pk")[:most]))


@tidied_daily(why="A write that broke off leaves files without a row.")
def tidy_orphans(most: int) -> int:
    """Delete up to `most` files that have had no row for a day; return how many.

    Such files remain when a process is killed after storing the file and before saving its row, or
    when its transaction fails.
    """
    unused_before, count = timezone.now() - UNUSED_PERIOD, 0
    for folder in _iter_folders():
        names = files_in(folder)
        stored_names = set(Media.objects.filter(file__in=names).values_list("file", flat=True))
        for name in names:
            if (
                name in stored_names
                or count == most
                or default_storage.get_modified_time(name) > unused_before
            ):
                continue
            # A file of a day ago without a row belongs to no upload that is still running.
            default_storage.delete(name)
            count += 1
    return count


def _iter_folders() -> Iterator[str]:
    """Yield the storage folders that contain files of tasks."""
    for task in folders_in("tasks"):
        media = f"tasks/{task}/media"
        yield from (f"{media}/{name}" for name in folders_in(media))


def delete_unreferenced_file(*, task: Task, digest: str, leaver: Annotator | None = None) -> None:
    """Delete a file that no context and no example of the task refers to. Locks its row.

    A file that somebody other than `leaver` has sent since then is kept for a day.
    """
    with transaction.atomic():
        media = _lock_rows(task, [digest]).first()
        # Looked up under the lock: an example that names the file needs the row to be stored.
        if media is None or is_referenced(task, digest):
            return
        if media.sent_by_id in (None, leaver and leaver.pk):
            delete_media(Media.objects.filter(pk=media.pk))
        else:
            Media.objects.filter(pk=media.pk).update(is_used=False)


def hide_withdrawn_media(*, task: Task, digests: Collection[str]) -> None:
    """Hide the files to which only withdrawn examples refer. Locks the rows.

    Call it in the transaction that withdraws the examples.
    """
    # Locked, so that an example that is stored at this moment is seen, or sees the change.
    used = _lock_rows(task, digests).filter(is_used=True)
    hidden = []
    for media in used:
        if not is_referenced(task, media.digest, retracted=False):
            hidden.append(media.pk)
    Media.objects.filter(pk__in=hidden).update(is_withdrawn=True)


def _lock_rows(task: Task, digests: Collection[str]) -> QuerySet[Media]:
    """Return the rows, locked in the order of their ids to prevent deadlocks."""
    rows = Media.objects.filter(task=task, digest__in=digests)
    return rows.select_for_update(of=("self",)).order_by("pk")


def is_referenced(task: Task, digest: str, *, retracted: bool = True) -> bool:
    """Return whether a context, an example or the configuration of the task refers to the file.

    retracted: whether retracted examples count.
    """
    # As text: the JSON is different for each task, and a digest occurs nowhere by accident.
    contexts = Context.objects.filter(round__task=task).annotate(text=Cast("fields", TextField()))
    if contexts.filter(text__contains=digest).exists():
        return True
    if is_named_in_examples(task, digest, retracted):
        return True
    return digest in task.config_text


def delete_media(chosen_media: QuerySet[Media]) -> int:
    """Delete the rows and, after the transaction, their files; return how many. Locks the rows."""
    with transaction.atomic():
        rows = list(chosen_media.select_for_update(of=("self",)).order_by("pk"))
        for media in rows:
            # The file goes after the row: a rollback would leave a row without its file.
            transaction.on_commit(partial(media.file.storage.delete, str(media.file.name)))
        Media.objects.filter(pk__in=[media.pk for media in rows]).delete()
    return len(rows)


def list_context_digests(contexts: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the digests of the pictures and recordings in contexts."""
    digests: set[str] = set()
    for fields in contexts:
        digests |= list_digests(fields.values())
    return digests


def list_digests(values: Iterable[Any]) -> set[str]:
    """Return the digests of the pictures and recordings among the values."""
    digests = set()
    for value in values:
        # Requests send what they like, also a mapping without a digest.
        if isinstance(value, Mapping) and isinstance(value.get("digest"), str):
            digests.add(value["digest"])
    return digests
