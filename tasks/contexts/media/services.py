"""Store uploaded media, record which files are used, and delete unused ones."""

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
from core.files.bounded import MIB, Bounds, OutOfBounds, run_bounded
from core.files.decoding import DECODERS, MAX_BYTES, TOO_MANY_BYTES_MESSAGE, BadMedia, DecodedMedia
from core.files.storage.stored import list_files, list_folders
from core.periodic import register_daily_tidying
from tasks.models import Context, Media, Task
from tasks.questions import is_named_in_examples

DECODING_BOUNDS = Bounds(30, 896 * MIB)
"""The limits for decoding. A picture of 40 megapixels in RGBA is in memory four times."""
TOO_OFTEN_MESSAGE = gettext_noop(
    "You've sent many files. Wait an hour, or reuse one you sent before."
)
UNUSED_PERIOD = timedelta(days=1)


def decode_upload(kind: str, data: bytes) -> DecodedMedia:
    """Return an uploaded file in its stored form. Raises Invalid.

    kind: image or audio.
    """
    if len(data) > MAX_BYTES:
        raise Invalid(_(TOO_MANY_BYTES_MESSAGE))
    try:
        return run_bounded(partial(DECODERS[kind], data), DECODING_BOUNDS)
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
    *, task: Task, decoded_file: DecodedMedia, sent_by: Annotator | None = None
) -> dict[str, Any]:
    """Store a decoded file and return its value without `alt`. See `store_media`."""
    # Of the re-encoded file: equal pictures have one digest, whatever their metadata was.
    digest = hashlib.sha256(decoded_file.data).hexdigest()
    # An update first: a file that is there needs no second copy, and its day begins again.
    same_media = Media.objects.filter(task=task, digest=digest)
    if not same_media.update(kept_from=timezone.now(), sent_by=_choose_owner(sent_by)):
        media_facts = {
            "mime": decoded_file.mime,
            "size": len(decoded_file.data),
            "about": dict(decoded_file.about),
        }
        media = Media(task=task, digest=digest, sent_by=sent_by, **media_facts)
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
    """Return the new owner of a file that is sent again, as an expression for the update.

    The owner is the sender, or nobody if the file is unused and somebody else sent it first. Then
    both may see the file, and it stays if one of them leaves.
    """
    if sender is None:
        return None
    # Decided in the database, by the row as it is at the update, and not by what was read before.
    shared_case = When(~Q(sent_by=sender), is_used=False, then=Value(None))
    return Case(shared_case, default=Value(sender.pk))


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

    Raises Invalid if a file no longer exists.
    """
    if not digests:
        return
    new_values: dict[str, Any] = {"kept_from": timezone.now()}
    new_values |= {"is_used": True, "is_withdrawn": False} if is_used else {}
    if _update_media(task, digests, **new_values) < len(set(digests)):
        raise Invalid(_("A picture or recording is no longer stored. Upload it again."))


def touch_media(*, task: Task, digests: Collection[str]) -> None:
    """Keep the files of a draft for another day. Locks the rows."""
    if digests:
        _update_media(task, digests, kept_from=timezone.now())


@transaction.atomic
def _update_media(task: Task, digests: Collection[str], **new_values: Any) -> int:
    """Set the fields `new_values` in the rows of these files; return how many rows there are.

    The rows are locked first, because an update alone would lock them in no particular order.
    """
    # 1. Lock the rows in the order of their ids.
    locked_pks = list(_lock_rows(task, digests).values_list("pk", flat=True))
    # 2. Update what is locked.
    return Media.objects.filter(pk__in=locked_pks).update(**new_values)


@register_daily_tidying(why="Media that no text uses is not kept.")
def tidy_media(max_rows: int) -> int:
    """Delete up to `max_rows` files that have been unused for a day, and return how many."""
    # The index `media_unused` serves this query: most rows are used.
    expired_media = Media.objects.filter(
        is_used=False, kept_from__lt=timezone.now() - UNUSED_PERIOD
    )
    return delete_media(expired_media.filter(pk__in=expired_media.values("pk")[:max_rows]))


@register_daily_tidying(why="A write that broke off leaves files without a row.")
def tidy_orphans(max_rows: int) -> int:
    """Delete up to `max_rows` files that have had no row for a day; return how many.

    Such files remain if a process is killed between storing a file and its row, or if its
    transaction fails.
    """
    unused_before, count = timezone.now() - UNUSED_PERIOD, 0
    for folder in _iter_folders():
        names = list_files(folder)
        stored_names = set(Media.objects.filter(file__in=names).values_list("file", flat=True))
        for name in names:
            if (
                name in stored_names
                or count == max_rows
                or default_storage.get_modified_time(name) > unused_before
            ):
                continue
            # A file of a day ago without a row belongs to no upload that is still running.
            default_storage.delete(name)
            count += 1
    return count


def _iter_folders() -> Iterator[str]:
    """Yield the storage folders with the media files of tasks."""
    for task in list_folders("tasks"):
        media_folder = f"tasks/{task}/media"
        yield from (f"{media_folder}/{name}" for name in list_folders(media_folder))


def delete_unreferenced_file(*, task: Task, digest: str, leaver: Annotator | None = None) -> None:
    """Delete a file that no context and no example of the task refers to. Locks its row.

    If somebody other than `leaver` has sent the file since, it is kept for a day.
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
    used_media = _lock_rows(task, digests).filter(is_used=True)
    hidden_pks = []
    for media in used_media:
        if not is_referenced(task, media.digest, include_retracted=False):
            hidden_pks.append(media.pk)
    Media.objects.filter(pk__in=hidden_pks).update(is_withdrawn=True)


def _lock_rows(task: Task, digests: Collection[str]) -> QuerySet[Media]:
    """Return the rows, locked in the order of their ids to prevent deadlocks."""
    rows = Media.objects.filter(task=task, digest__in=digests)
    return rows.select_for_update(of=("self",)).order_by("pk")


def is_referenced(task: Task, digest: str, *, include_retracted: bool = True) -> bool:
    """Return whether a context, an example or the task's configuration refers to the file.

    include_retracted: whether retracted examples count.
    """
    # As text: the JSON is different for each task, and a digest occurs nowhere by accident.
    contexts = Context.objects.filter(round__task=task).annotate(text=Cast("fields", TextField()))
    if contexts.filter(text__contains=digest).exists():
        return True
    if is_named_in_examples(task, digest, include_retracted):
        return True
    return digest in task.config_text


def delete_media(media_rows: QuerySet[Media]) -> int:
    """Delete the rows and, after the commit, their files; return how many. Locks the rows."""
    with transaction.atomic():
        rows = list(media_rows.select_for_update(of=("self",)).order_by("pk"))
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
