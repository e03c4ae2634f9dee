"""Writes about images of programs: somebody brings one, a worker checks it, an owner allows it.

The locks are listed in docs/locking.md.
"""

import re

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Invalid, Refused
from core.jobs.queue import enqueue
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.adversaries.models import Adversary, AdversaryImage
from dynabench.adversaries.services import find_kind
from evaluation.isolation.uploads.chunked import (
    check_upload_complete,
    discard_upload,
    select_open_uploads,
)
from evaluation.models import Upload
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.submissions.requirements import PINNED_IMAGE_PATTERN

State = AdversaryImage.State
CLIENT_DIGEST = re.compile(r"\.[0-9a-f]{64}(?=\.|$)")
"""What the Python client writes into the names of files, so that it can resume an upload."""


def bring_image(
    *, adversary: Adversary, actor: User, source: str = "", upload: Upload | None = None
) -> AdversaryImage:
    """Queue the check of an image: a name in a registry with its digest, or an uploaded archive.

    An image that an editor of the task brings is allowed at once. Locks the adversary, so that two
    images at once don't take one number. Raises Refused and Invalid.
    """
    if upload:
        check_upload_complete(upload)
    elif not PINNED_IMAGE_PATTERN.fullmatch(source):
        message = _("Upload an archive, or enter an image with its digest: name@sha256:…")
        raise Invalid(message, field="source")
    if upload and source:
        raise Invalid(_("Choose either a file or an image in a registry."), field="source")
    with transaction.atomic():
        locked_adversary = (
            Adversary.objects.select_for_update(of=("self",), no_key=True)
            .select_related("task")
            .get(pk=adversary.pk)
        )
        if not find_kind(locked_adversary).is_container:
            raise Refused(_("This adversary doesn’t run in a container."), code="no_container")
        if locked_adversary.retired_at:
            raise Refused(_("This adversary is retired. Create another one."))
        if locked_adversary.images.filter(state__in=UNFINISHED_STATES).exists():
            message = _("An image is being checked. Wait until this is done.")
            raise Refused(message, code="checking")
        # Under the lock: another request may have used the file just now.
        if upload and not select_open_uploads(actor).filter(pk=upload.pk).exists():
            raise Invalid(_("This file was already used. Upload it again."), field="upload")
        last_number = locked_adversary.images.aggregate(last=Max("number"))["last"] or 0
        is_allowed = can_run_adversaries(actor, locked_adversary.task)
        image = AdversaryImage.objects.create(
            adversary=locked_adversary,
            number=last_number + 1,
            source=source,
            upload=upload,
            file_name=CLIENT_DIGEST.sub("", upload.file_name) if upload else "",
            requested_by=actor,
            allowed_at=timezone.now() if is_allowed else None,
            allowed_by=actor if is_allowed else None,
        )
        log(actor, "adversary.image_brought", locked_adversary, image=image.number)
        enqueue(image.function, image.pk)
    return image


@transaction.atomic
def allow_image(*, image: AdversaryImage, actor: User) -> None:
    """Allow runs with a checked image. Takes no lock: the first one to allow it counts.

    Raises Refused if its check has not succeeded.
    """
    checked_rows = AdversaryImage.objects.filter(pk=image.pk, state=State.DONE)
    if not checked_rows.exists():
        raise Refused(_("Only a checked image can be allowed."), code="unchecked")
    if checked_rows.filter(allowed_at=None).update(allowed_at=timezone.now(), allowed_by=actor):
        log(actor, "adversary.image_allowed", image.adversary, image=image.number)


def discard_unused_archives() -> int:
    """Delete the uploaded archives that no run will load again; return how many.

    These are of retired adversaries, of images that failed their check, and of those that a newer
    allowed image has replaced. Takes the lock of `discard_upload`, one after another.
    """
    newer_images = AdversaryImage.objects.filter(
        adversary=OuterRef("adversary"), pk__gt=OuterRef("pk"), state=State.DONE
    )
    is_replaced = Exists(newer_images.filter(allowed_at__isnull=False))
    is_unused = Q(adversary__retired_at__isnull=False) | ~Q(state=State.DONE) | is_replaced
    is_awaited = Q(state__in=UNFINISHED_STATES) | Q(runs__state__in=UNFINISHED_STATES)
    count = 0
    for upload in Upload.objects.filter(
        pk__in=AdversaryImage.objects.filter(is_unused).exclude(is_awaited).values("upload")
    ):
        discard_upload(upload)
        count += 1
    return count
