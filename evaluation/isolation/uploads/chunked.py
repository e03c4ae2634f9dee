"""Files that arrive in pieces, so that an interrupted upload can be resumed."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.people import has_confirmed_address
from core.errors import Refused, Unavailable
from core.files.storage.disk import NO_ROOM, WAIT_SECONDS, check_room, scratch
from core.files.storage.stored import files_in, folders_in
from evaluation.contract import GIB, MIB, Beat
from evaluation.isolation.uploads.allowances import gib_of
from evaluation.isolation.uploads.archives import ByteSource
from evaluation.models import HandedAnswers, Submission, Upload, UploadPiece
from evaluation.models.jobs import UNFINISHED

PIECE_BYTES = 16 * MIB
MAX_OPEN_UPLOADS = 5
BLOCK_BYTES = MIB
FOLDER = "uploads"  # of the storage, as `piece_path` says
logger = logging.getLogger(__name__)


class UploadRefused(Refused):
    """Raised when a file or piece cannot be stored. The message says why and what to do."""

    code = "upload"
    status = 422
    field = "upload"


class WrongOffset(UploadRefused):
    """Raised when a piece does not start at `offset`, where the previous piece ended."""

    code = "offset"
    status = 409
    field = "offset"

    def __init__(self, offset: int) -> None:
        super().__init__(f"{offset} bytes are here. Send what comes after them.")
        self.offset = offset


@transaction.atomic
def begin_upload(
    owner: User, file_name: str, size: int, *, most_open: int = MAX_OPEN_UPLOADS
) -> Upload:
    """Begin an upload of `size` bytes. Locks the user, because of the limits.

    most_open: how many unsubmitted files the person may have. Raises UploadRefused, and Unavailable
    if the disk or the site's budget has no room.
    """
    if not 0 < size <= settings.LARGEST_UPLOAD_BYTES:
        max_gib = settings.LARGEST_UPLOAD_BYTES / GIB
        raise UploadRefused(
            _("A file has from 1 byte to %(most)g GiB; this one has %(size)d bytes.")
            % {"most": max_gib, "size": size}
        )
    check_room(size)
    check_budget(size)
    # From here on one tab after another: each would see that there is room for its own file.
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    if size > (left_bytes := remaining_bytes(owner)):
        raise UploadRefused(_describe_full_quota(owner, left_bytes))
    if open_uploads(owner).count() >= most_open:
        raise UploadRefused(
            _(
                "You have %(number)d files here that you have not submitted. Submit one, discard "
                "one, or wait: each is kept for %(days)d days."
            )
            % {"number": most_open, "days": settings.KEEP_UPLOADS_DAYS}
        )
    name = Path("".join(filter(str.isprintable, file_name)).replace("\\", "/")).name or "file"
    return Upload.objects.create(owner=owner, file_name=name[-200:], size=size)


def open_uploads(owner: User) -> QuerySet[Upload]:
    """Select a person's uploads, oldest first, that belong to no submission or pending run."""
    free = Upload.objects.exclude(are_waiting_answers())
    return free.filter(owner=owner, submission__isnull=True).order_by("begun_at")


def are_waiting_answers() -> Exists:
    """Return the condition for uploads with answers to a run that is not scored yet.

    Such uploads are not deleted before that.
    """
    waits = Q(run__state__in=UNFINISHED)
    return Exists(HandedAnswers.objects.filter(waits, upload=OuterRef("pk")))


def max_upload_bytes(owner: User) -> int:
    """Return the maximum size of a person's next file, in bytes."""
    return min(settings.LARGEST_UPLOAD_BYTES, remaining_bytes(owner))


def remaining_bytes(owner: User) -> int:
    """Return how many more bytes a person may store in uploads and model files."""
    return max(0, _quota_bytes(owner) - stored_bytes(owner))


def stored_bytes(owner: User) -> int:
    """Return the bytes that a person stores: uploads, by their announced size, and model files."""
    uploads = Upload.objects.filter(owner=owner).aggregate(n=Sum("size"))["n"] or 0
    models = Submission.objects.filter(owner=owner).exclude(file="")
    return uploads + (models.aggregate(n=Sum("size"))["n"] or 0)


def site_bytes() -> int:
    """Return the bytes that everybody stores: uploads, by their announced size, and model files."""
    uploads = Upload.objects.aggregate(n=Sum("size"))["n"] or 0
    return uploads + (Submission.objects.exclude(file="").aggregate(n=Sum("size"))["n"] or 0)


def check_budget(size: int) -> None:
    """Raise Unavailable if `size` more bytes would exceed MODELS_GIB (0: no limit) for the site.

    Takes no lock: uploads that begin at the same moment may together exceed the limit.
    """
    if settings.MODELS_BYTES and site_bytes() + size > settings.MODELS_BYTES:
        logger.error("No room for %d bytes: MODELS_GIB is reached.", size)
        raise Unavailable(NO_ROOM, status=507, wait=WAIT_SECONDS)


def check_stored(upload: Upload | None, owner: User, size: int) -> None:
    """Check that a person may store `size` bytes in place of an upload. Locks the user.

    Call this in the transaction that stores them, because a file unpacks to more than was sent.
    Raises UploadRefused.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    left_bytes = remaining_bytes(owner)
    if upload:  # it goes as soon as its files are stored
        left_bytes += upload.size
    if size > left_bytes:
        raise UploadRefused(_describe_full_quota(owner, left_bytes))


def _quota_bytes(owner: User) -> int:
    if (own_gib := gib_of(owner)) is not None:
        return own_gib * GIB
    if has_confirmed_address(owner):
        return settings.QUOTA_BYTES
    return settings.UNCONFIRMED_QUOTA_BYTES


def _describe_full_quota(owner: User, left_bytes: int) -> str:
    words = _(
        "Your files here may have %(most)g GiB in all, and %(left)d bytes are left of that. "
        "Discard an upload, or withdraw a model."
    )
    message = words % {"most": _quota_bytes(owner) / GIB, "left": left_bytes}
    if has_confirmed_address(owner):
        return message
    return f"{message} {_('Confirm your address for more.')}"


def received_bytes(upload: Upload) -> int:
    """Return the number of bytes received, which is the offset of the next piece."""
    return upload.pieces.aggregate(n=Sum("size"))["n"] or 0


def check_complete(upload: Upload) -> None:
    """Raise UploadRefused unless all bytes have been received."""
    if (here := received_bytes(upload)) != upload.size:
        message = _("%(here)d of %(size)d bytes are here. Send the rest.")
        raise UploadRefused(message % {"here": here, "size": upload.size})


def add_piece(upload: Upload, offset: int, stream: ByteSource, size: int | None = None) -> int:
    """Store the bytes of a stream from `offset` on; return the offset of the next piece.

    A piece that was already stored changes nothing. The file is stored before the upload is locked;
    of two pieces with the same offset, the first one counts. size: the announced number of bytes;
    fewer mean that the connection broke. Raises WrongOffset, UploadRefused, and Unavailable or
    OSError if the storage fails.
    """
    next_offset = received_bytes(upload)
    if offset != next_offset:
        # The answer to this piece was lost, so the client sends it once more.
        if upload.pieces.filter(offset=offset).exists():
            return next_offset
        raise WrongOffset(next_offset)
    max_bytes = min(PIECE_BYTES, upload.size - offset)
    check_room(max_bytes)
    # Counted on this disk before it goes to the storage, which would keep half a piece.
    with NamedTemporaryFile(dir=settings.SPOOL) as spool:
        count = _copy(stream, spool, max_bytes)
        if size not in (None, count) or not count:
            raise UploadRefused(
                _("%(count)d bytes of %(size)d came. Send the piece again.")
                % {"count": count, "size": size or 1}
            )
        piece = UploadPiece(upload=upload, offset=offset, size=count)
        spool.seek(0)
        piece.file.save("piece", File(spool), save=False)
    # The file is stored before the lock, which other tabs wait for; of two, one is deleted again.
    try:
        is_first = _store_piece(piece)
    except BaseException:
        piece.file.delete(save=False)
        raise
    if not is_first:
        piece.file.delete(save=False)
    return received_bytes(upload)


def _copy(stream: ByteSource, target: IO[bytes], max_bytes: int) -> int:
    count = 0
    while block := _read(stream):
        count += len(block)
        if count > max_bytes:
            raise UploadRefused(
                _(
                    "The piece is too large: %(most)d bytes at most fit here. A piece has at most "
                    "%(size)d MiB, and all of them as many bytes as were announced."
                )
                % {"most": max_bytes, "size": PIECE_BYTES // MIB}
            )
        target.write(block)
    return count


def _read(stream: ByteSource) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except OSError:
        raise UploadRefused(_("The connection broke. Send the piece again.")) from None


@transaction.atomic
def _store_piece(piece: UploadPiece) -> bool:
    """Store a piece's row; return False if another piece with its offset came first.

    Locks the upload.
    """
    try:
        locked_upload = Upload.objects.select_for_update(of=("self",)).get(pk=piece.upload_id)
    except Upload.DoesNotExist:
        raise UploadRefused(_("The upload was discarded meanwhile. Begin a new one.")) from None
    if received_bytes(locked_upload) != piece.offset:
        return False
    piece.save(force_insert=True)
    return True


def add_file(
    owner: User, file_name: str, size: int, stream: ByteSource, *, most_open: int = MAX_OPEN_UPLOADS
) -> Upload:
    """Store a whole file at once, as a plain form sends it. Locks and raises as `begin_upload`."""
    upload = begin_upload(owner, file_name, size, most_open=most_open)
    for offset in range(0, size, PIECE_BYTES):
        add_piece(upload, offset, _NextBytes(stream, PIECE_BYTES))
    return upload


class _NextBytes:
    """A source of the next `left_bytes` bytes of a stream."""

    def __init__(self, stream: ByteSource, left_bytes: int) -> None:
        self._stream, self._left = stream, left_bytes

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(min(size, self._left))
        self._left -= len(block)
        return block


@contextmanager
def assemble(upload: Upload, beat: Beat = lambda: None) -> Iterator[Path]:
    """Yield the path of a temporary file with the complete upload.

    Raises UploadRefused, and Unavailable if the disk has no room.
    """
    check_complete(upload)
    check_room(upload.size)
    with scratch() as folder:
        path = folder / "upload"
        with path.open("wb") as target:
            for piece in upload.pieces.order_by("offset"):
                beat()
                with piece.file.open("rb") as source:
                    shutil.copyfileobj(source, target, BLOCK_BYTES)
        yield path


def discard(upload: Upload) -> None:
    """Delete an upload and its pieces. Locks the upload, so that later pieces find none."""
    with transaction.atomic():
        locked_uploads = Upload.objects.select_for_update(of=("self",)).filter(pk=upload.pk)
        pieces: list[UploadPiece] = []
        for locked_upload in locked_uploads:
            pieces += locked_upload.pieces.all()
        locked_uploads.delete()
    # Files after their rows: if the process dies in between, `purge_old_uploads` finds them.
    for piece in pieces:
        piece.file.delete(save=False)


def purge_old_uploads() -> int:
    """Delete uploads older than KEEP_UPLOADS_DAYS that wait for no check; return how many.

    Also deletes stored pieces without an upload, which remain after a process was killed or an
    account was deleted.
    """
    old_rows = Upload.objects.filter(
        begun_at__lt=timezone.now() - timedelta(days=settings.KEEP_UPLOADS_DAYS)
    )
    without_check = Q(submission__isnull=True) | ~Q(submission__state__in=UNFINISHED)
    old_uploads = list(old_rows.filter(without_check))
    for upload in old_uploads:
        discard(upload)
    folders = folders_in(FOLDER)
    with_row = Upload.objects.filter(pk__in=folders).values_list("pk", flat=True)
    for folder in set(folders) - set(map(str, with_row)):
        path = f"{FOLDER}/{folder}"
        for name in files_in(path):
            default_storage.delete(name)
        default_storage.delete(path)
    return len(old_uploads)
