"""Store contexts in a round, retire them, and undo imports."""

import shutil
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.files.bounded import MIB, Bounds, OutOfBounds, run_bounded
from core.files.decoding import MEASURE_KEYS, DecodedMedia
from tasks.config.components import list_names
from tasks.contexts.archives import summarise_archive
from tasks.contexts.columns import Fields, Matching
from tasks.contexts.files import MediaFiles, Summary, hash_context, summarise_file
from tasks.contexts.media.services import (
    build_value,
    delete_unreferenced_file,
    keep_media,
    list_context_digests,
    store_decoded,
)
from tasks.contexts.uploads import MAX_BYTES
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.line_files import FileError
from tasks.models import Context, ContextBatch, Media, Round, Task
from tasks.questions import build_used_contexts_condition

READ_SECONDS, MEMORY_BYTES = 300.0, 512 * MIB  # to read a file
ARCHIVE_MEMORY_BYTES = 1280 * MIB  # of memory to read an archive, a picture at a time
MEMORY_FACTOR = 16  # bytes of memory besides that a byte of a file may take


@transaction.atomic
def store_contexts(
    *,
    round: Round,
    rows: Iterable[Mapping[str, Any]],
    file_name: str,
    actor: User | None = None,
    terms: Terms = UNKNOWN_TERMS,
) -> ContextBatch:
    """Store checked rows (context fields, `tag`, `metadata`) as one batch, and return it.

    A context that the round already has is skipped, because its digest is unique. Takes no lock.
    Raises Invalid if a row refers to a picture or recording that the task does not have.
    """
    batch = ContextBatch.objects.create(
        round=round, file_name=file_name, imported_by=actor, **terms._asdict()
    )
    names = list_names(round.task.config.context)
    contexts = []
    for row in rows:
        fields = {}
        for name in names:
            if name in row:
                fields[name] = row[name]
        contexts.append(
            Context(
                round=round,
                batch=batch,
                fields=fields,
                tag=row.get("tag") or "",
                metadata=row.get("metadata") or {},
                digest=hash_context(fields),
            )
        )
    digests = list_context_digests(context.fields for context in contexts)
    # Before the rows: this locks the files, so that the sweeper cannot delete one that a context
    # is about to name.
    keep_media(task=round.task, digests=digests, is_used=True)
    # The unique digest leaves out contexts that the round has, also those that another import
    # stores at this moment.
    Context.objects.bulk_create(contexts, batch_size=500, ignore_conflicts=True)
    log(actor, "contexts.imported", round, file=file_name, rows=len(contexts))
    return batch


@transaction.atomic
def set_retired(*, contexts: QuerySet[Context], is_retired: bool, actor: User) -> int:
    """Retire or restore contexts; return how many. Takes no lock."""
    # The ids first: after the update a condition on `is_retired` would no longer match the rows.
    context_pks = list(contexts.values_list("pk", flat=True))
    first_context = contexts.select_related("round__task").first()
    count = Context.objects.filter(pk__in=context_pks).update(is_retired=is_retired)
    action = "contexts.returned"
    if is_retired:
        action = "contexts.retired"
    log(actor, action, f"{count} contexts", about=first_context, contexts=context_pks)
    return count


def find_used_contexts() -> QuerySet[Context]:
    """Return the contexts that were assigned, written about or reported."""
    return Context.objects.filter(build_used_contexts_condition())


def preview_contexts(
    *, round: Round, lines: Iterable[bytes], file_name: str, matching: Matching | None = None
) -> Summary:
    """Return what the file would add to the round. Raises Refused, FileError.

    matching: the field that each column fills; None if the columns are named like fields.

    A separate process reads the untrusted file within limits. The files of an archive are decoded
    into a folder that is deleted with the summary.
    """
    if round.state in Round.FINISHED_STATES:
        message = _("Round %(number)d has ended, so you can't add texts to it.")
        raise Refused(message % {"number": round.number})
    config = round.task.config
    if not config.context:
        raise Refused(_("The task's configuration has no context fields. Add one first."))
    stored_digests = set(round.contexts.values_list("digest", flat=True))
    return read_untrusted_file(lines, file_name, config, round.task, stored_digests, matching)


def read_untrusted_file(
    lines: Iterable[bytes],
    file_name: str,
    config: Fields,
    task: Task,
    stored_digests: Collection[str] = (),
    matching: Matching | None = None,
) -> Summary:
    """Return the summary of an untrusted file, read in a process with limits. Raises FileError.

    config: the fields that columns fill. stored_digests: digests of the rows that exist already.
    """
    files = Media.objects.filter(task=task) if task.config.media_fields else ()
    media = {media_row.digest: build_value(media_row) for media_row in files}
    try:
        if file_name.lower().endswith(".zip"):
            arguments = {
                "config": config,
                "stored_digests": stored_digests,
                "media": media,
                "matching": matching,
            }
            return _read_archive(lines, partial(_summarise_archive, **arguments))
        # In memory here, since a separate process gets it whole; the upload is limited before.
        data = b"".join(lines)
        bounds = Bounds(READ_SECONDS, MEMORY_BYTES + MEMORY_FACTOR * len(data))
        read_summary = partial(
            summarise_file, data, file_name, config, stored_digests, MediaFiles(media), matching
        )
        # A file can make any reader of tables or pictures hang or grow, so another process reads
        # it, with a limit of time and memory.
        return run_bounded(read_summary, bounds)
    except OutOfBounds as error:
        raise FileError(str(error)) from None


_summarise_archive = partial(summarise_archive, max_bytes=MAX_BYTES)


def _read_archive(lines: Iterable[bytes], summary_reader: Callable[..., Summary]) -> Summary:
    """Return the summary of an archive. Its decoded files are deleted together with the summary."""
    # The decoded files are large, so they stay on disk until the import stores them.
    folder = Path(mkdtemp(dir=settings.SPOOL))
    path = folder / "archive.zip"
    try:
        with path.open("wb") as file:
            file.writelines(lines)
        summary = run_bounded(
            partial(summary_reader, path, folder), Bounds(READ_SECONDS, ARCHIVE_MEMORY_BYTES)
        )
    except BaseException:
        shutil.rmtree(folder)
        raise
    path.unlink()
    summary.folder = folder
    # The folder goes when nobody holds the summary any more, also when a request fails.
    weakref.finalize(summary, shutil.rmtree, folder, ignore_errors=True)
    return summary


def import_contexts(
    *,
    round: Round,
    summary: Summary,
    file_name: str,
    actor: User | None,
    terms: Terms = UNKNOWN_TERMS,
) -> Summary:
    """Store the new rows of a preview, set its `stored_count`, and return it. Takes no lock.

    Digests are unique, so a context is never stored twice. The files of an archive are stored
    before the rows. If storing the rows fails, the files are deleted after a day.
    """
    # 1. Store the files of an archive. They are unused until a context names them.
    for digest, value in summary.files.items():
        assert summary.folder
        media_facts = {}
        for name in MEASURE_KEYS:
            if name in value:
                media_facts[name] = value[name]
        decoded_file = DecodedMedia(
            (summary.folder / digest).read_bytes(), value["mime"], media_facts
        )
        store_decoded(task=round.task, decoded_file=decoded_file)
    if summary.rows:
        rows = [row.values for row in summary.rows]
        batch_values: dict[str, Any] = {
            "file_name": file_name[-200:],
            "actor": actor,
            "terms": terms,
        }
        # 2. Store the contexts that name them.
        batch = store_contexts(round=round, rows=rows, **batch_values)
        # 3. Count what was stored: another import may have stored some rows first.
        summary.stored_count = Context.objects.filter(batch=batch).count()
    return summary


@transaction.atomic
def undo_import(*, batch: ContextBatch, actor: User | None) -> int:
    """Delete a batch with its contexts, and return how many contexts it had.

    Locks the round, as assigning a context does. Raises Refused if a context was used.
    """
    # Assigning a context locks the same row, so none is assigned between the check and the delete.
    round = Round.objects.select_for_update(of=("self",)).get(pk=batch.round_id)
    used_count = find_used_contexts().filter(batch=batch).distinct().count()
    if used_count:
        message = _(
            "People have used texts of %(batch)s (%(used)d), so you can't undo this import. "
            "Retire texts instead."
        )
        raise Refused(message % {"batch": batch, "used": used_count}, code="used")
    contexts = Context.objects.filter(batch=batch)
    # Read before the rows go: afterwards nobody knows which files they named.
    fields = list(contexts.values_list("fields", flat=True))
    count = len(fields)
    contexts.delete()
    batch.delete()
    for digest in list_context_digests(fields):
        delete_unreferenced_file(task=round.task, digest=digest)
    log(actor, "contexts.undone", round, file=batch.file_name, rows=count)
    return count
