"""A container image, uploaded or pulled from a registry."""

import shutil
from functools import partial
from pathlib import Path

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.files.bounded import run_bounded
from evaluation.contract import NotNow
from evaluation.heartbeat import call_with_beat
from evaluation.isolation.inference.precheck import SubmissionRefused
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.sandbox.choose import NO_ENGINE_MESSAGE, has_engine
from evaluation.isolation.uploads.chunked import assemble_upload
from evaluation.isolation.uploads.image_archives import check_image_archive
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import UNPACKING_BOUNDS, ReceivedModel
from evaluation.submissions.requirements import PINNED_IMAGE_PATTERN, Problem, Sources
from evaluation.task_shape import make_runnable


class ImageForm(SubmitForm):
    """A form for a container image: its archive, or its name in a registry."""

    file_help = _("The output of docker save. Or enter a registry image below.")
    is_file_needed = False
    source = forms.CharField(
        label=_("Or an image in a registry"),
        max_length=500,
        help_text=_("With its digest: registry/name@sha256:…"),
        required=False,
    )
    adapter = forms.ChoiceField(
        label=_("Protocol"),
        choices=Submission.Adapter.choices,
        widget=forms.RadioSelect,
        initial=Submission.Adapter.JSONL,
    )


class Image(SubmissionKind, name="image"):
    """Any code in a container that reads JSON lines and writes JSON lines."""

    label = _("a Docker image")
    place = 2
    title = _("Docker image")
    words = _("Any code that reads and writes JSON lines.")
    details = _("It runs without a network. Images for dynalab and Dynabench 2.0 work too.")
    answers = "sandbox"
    is_image = True
    may_use_gpu = True
    form = ImageForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return None if there is a file, or a name with its digest; otherwise the problem."""
        if sources.has_upload or PINNED_IMAGE_PATTERN.fullmatch(sources.source):
            return None
        return "source", gettext_noop(
            "Upload the image (docker save), or enter its name with the digest: "
            "registry/name@sha256:… (64 digits). The digest makes sure that the image stays the "
            "same."
        )

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Load or pull the image into the container engine, and check its metadata.

        The digest is stored at once, so that a refused image is removed from the engine. Raises
        NotNow without an engine, and ImageRefused, ArchiveRefused or SubmissionRefused.
        """
        from evaluation.isolation.sandbox import images  # loads Docker's library

        if not has_engine():
            raise NotNow(NO_ENGINE_MESSAGE)
        archive = None
        if submission.upload:
            archive = folder / "image.tar"
            with assemble_upload(submission.upload, heartbeat.beat) as path:
                run_bounded(partial(check_image_archive, path), UNPACKING_BOUNDS, heartbeat.beat)
                shutil.move(path, archive)
            image = call_with_beat(partial(images.load_image, archive), heartbeat.beat)
        else:
            hosts = settings.SUBMISSION_PRIVATE_HOSTS
            image = images.pull_image(submission.source, hosts, heartbeat.beat)
        facts = images.inspect_image(image)
        # Stored before the checks, because cleanup only removes images whose digest is in a
        # row, and refused ones have to be removed too.
        Submission.objects.filter(pk=submission.pk).update(digest=facts.id)
        if problems := images.find_image_problems(facts):
            raise SubmissionRefused("\n".join(problems))
        model = make_runnable(submission.task.config, image=facts.id, adapter=submission.adapter)
        return ReceivedModel(facts.id, facts.size, archive, model)
