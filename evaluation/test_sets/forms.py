"""Forms with which owners create and change evaluation sets.

A file is previewed first. Until it is added it is stored as an upload, so that people choose it
only once.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.sessions.backends.base import SessionBase
from django.db.models import QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.accounts.models import User
from core.errors import Refused
from core.web.lists import ListFilter
from core.web.refusals import show_as_form_error
from evaluation.contract import MIB
from evaluation.isolation.uploads.chunked import (
    add_file,
    assemble_upload,
    discard_upload,
    select_open_uploads,
)
from evaluation.models import EvaluationSet, EvaluationSetVersion, Upload
from evaluation.test_sets.parsing import SetFile
from evaluation.test_sets.services import EDITABLE_FIELDS, create_set_with_version, make_version
from evaluation.test_sets.writing import Preview, preview_file
from tasks.line_files import FileError
from tasks.models import Task

MAX_FILE_BYTES = 200 * MIB
SESSION_KEY = "evaluation-set-upload"
"""The session key of the upload that the form previews."""


class FileForm(forms.Form):
    """A form for a file of examples.

    After the first submission, `upload` identifies the stored file.
    """

    file = forms.FileField(
        required=False,
        label=_("Examples file"),
        help_text=_(
            "JSON lines (also .gz), CSV or Parquet, up to 200 MB. Each line is one example with "
            "the fields that models read and the right answer."
        ),
    )
    upload = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        task: Task,
        user: User,
        session: SessionBase,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, files, use_required_attribute=False)
        self.task, self.user, self.session = task, user, session
        self.fields["file"].widget.is_required_by_task = True  # type: ignore[attr-defined]
        self.stored: Upload | None = None
        self.preview: Preview | None = None

    def clean(self) -> None:
        """Store the submitted file, or find the one that an earlier submission stored.

        A new file replaces the one stored before, which is deleted.
        """
        file, upload_id = self.cleaned_data.get("file"), self.cleaned_data.get("upload")
        uploads = select_open_uploads(self.user)
        if file is None:
            self._find_stored_upload(uploads, upload_id)
            return
        if SESSION_KEY in self.session:
            # Another file replaces the previous one, which would count in the quota.
            for former_upload in uploads.filter(pk=self.session[SESSION_KEY]):
                discard_upload(former_upload)
        with show_as_form_error(self, field="file"):
            if file.size > MAX_FILE_BYTES:
                raise Refused(
                    gettext(
                        "The file is too large for this page. Use the command "
                        "add_evaluation_set instead."
                    )
                )
            self.stored = add_file(self.user, file.name, file.size, file)
            self.session[SESSION_KEY] = str(self.stored.pk)

    def _find_stored_upload(self, uploads: QuerySet[Upload], upload_id: UUID | None) -> None:
        if upload_id:
            self.stored = uploads.filter(pk=upload_id).first()
        if self.stored is None and "file" not in self.errors:
            message = gettext("Choose a file.")
            if upload_id:
                message = gettext("Your upload is no longer available. Choose the file again.")
            self.add_error("file", message)

    def fill_preview(self) -> None:
        """Fill `preview`, if there is a file.

        Adds an error to the file field if the file cannot be read, has wrong lines or has no
        examples.
        """
        if self.stored is None:
            return
        with show_as_form_error(self, FileError, field="file"), self._open_rows() as rows:
            self.preview = preview_file(rows)
        # The file cannot be read; the field has the error.
        if self.preview is None:
            return
        if self.preview.errors:
            message = gettext("Some lines are wrong. Fix them and choose the file again.")
            self.add_error("file", message)
        elif not self.preview.size:
            self.add_error("file", gettext("The file contains no examples."))

    @property
    def can_be_added(self) -> bool:
        """Return whether the previewed file can be added."""
        if self.preview is None:
            return False
        return bool(self.preview.size) and not self.preview.errors

    def store_version(self) -> EvaluationSetVersion | None:
        """Store the file's examples as a version and return it; None if `errors` says why not.

        If it is stored, the upload is deleted.
        """
        try:
            with self._open_rows() as rows:
                version = self.make_version(rows)
        except (FileError, Refused) as error:
            self.add_error(None, str(error))
            return None
        assert self.stored is not None
        discard_upload(self.stored)
        return version

    @abstractmethod
    def make_version(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples as a version of the form's set. Raises Refused and FileError."""

    @contextmanager
    def _open_rows(self) -> Iterator[SetFile]:
        assert self.stored is not None
        # The pieces of the upload as one file on this machine.
        with assemble_upload(self.stored) as path:
            yield SetFile(path, self.stored.file_name, self.task.config)


class AboutForm(forms.Form):
    """A form for a set's description and for who may see the set."""

    access = forms.ChoiceField(
        label=_("Who can see this set"),
        choices=EvaluationSet.Access.choices,
        widget=forms.RadioSelect,
    )
    may_leave = forms.BooleanField(
        required=False,
        label=_("Inputs can leave the site"),
        help_text=_(
            "Everyone who sees the set can download the inputs and submit predictions, and remote "
            "models receive the inputs. Right answers never leave. We log your consent, and mark "
            "a sealed set as exposed when its inputs first leave."
        ),
    )
    answers_public = forms.BooleanField(
        required=False,
        label=_("Right answers are public"),
        help_text=_(
            "Shows exact scores, also by slice. Otherwise the set is sealed: scores are rounded "
            "and limited, so that people can't work out the right answers."
        ),
    )
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=5000,
        widget=forms.Textarea({"rows": 4}),
        help_text=_("Where do the examples come from? In Markdown."),
    )

    @property
    def about(self) -> dict[str, Any]:
        """Return the valid form's values as arguments for `create_set` and `change_set`."""
        return {name: self.cleaned_data[name] for name in EDITABLE_FIELDS}


class NewSetForm(AboutForm, FileForm):
    """A form for a new set with its first version."""

    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Letters, numbers, hyphens and underscores: reviews-2024"),
    )
    field_order = ["name", "file", "access", "may_leave", "answers_public", "description", "upload"]

    def clean_name(self) -> str:
        """Return the name. Raises ValidationError if the task already has a set with this name."""
        name: str = self.cleaned_data["name"]
        if self.task.evaluation_sets.filter(name=name).exists():
            raise forms.ValidationError(
                _("This task already has a test set with this name. Choose another.")
            )
        return name

    def make_version(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples as the first version of a new set."""
        about = {"task": self.task, "actor": self.user, "name": self.cleaned_data["name"]}
        return create_set_with_version(rows, **about, **self.about)


class VersionForm(FileForm):
    """A form for the next version of a set. Assign `evaluation_set` before use."""

    evaluation_set: EvaluationSet

    def make_version(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples as the next version of the set."""
        return make_version(self.evaluation_set, rows, self.user)


class ItemFilter(ListFilter):
    """Chooses the order of a set's items."""

    order = forms.ChoiceField(
        required=False,
        # Translators: which examples come first
        label=_("First"),
        initial="doubtful",
        choices=[
            ("doubtful", _("Labels that may be wrong")),
            ("drifted", _("Changed for later models")),
            ("translated", _("Different from their translation")),
            ("hard", _("Hardest for models")),
            ("telling", _("Examples that tell models apart")),
            ("ambiguous", _("Examples on which people disagree")),
            ("set", _("Order of the set")),
        ],
    )
