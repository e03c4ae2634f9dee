"""Forms with which owners create and change evaluation sets.

A file is previewed first. Until it is added it is stored as an upload, so that it is chosen once.
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
from core.web.refusals import as_form_error
from evaluation.contract import MIB
from evaluation.isolation.uploads.chunked import add_file, assemble, discard, open_uploads
from evaluation.models import EvaluationSet, EvaluationSetVersion, Upload
from evaluation.test_sets.parsing import SetFile
from evaluation.test_sets.services import EDITABLE_FIELDS, create_set_with_version, make_version
from evaluation.test_sets.writing import Preview, preview
from tasks.line_files import FileError
from tasks.models import Task

MAX_FILE_BYTES = 200 * MIB
SESSION_KEY = "evaluation-set-upload"
"""Under which the session names the upload that the form previews."""


class FileForm(forms.Form):
    """A form for a file of examples.

    After the first submission, `upload` identifies the stored file.
    """

    file = forms.FileField(
        required=False,
        label=_("File with the examples"),
        help_text=_(
            "JSON lines (also .gz), CSV or Parquet, up to 200 MB. A line is an example: what "
            "models read, by the names of the configuration, and the right answer."
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
        """Store the submitted file, or find the one that an earlier submission stored."""
        file, upload_id = self.cleaned_data.get("file"), self.cleaned_data.get("upload")
        uploads = open_uploads(self.user)
        if file is None:
            self._find_stored(uploads, upload_id)
            return
        if SESSION_KEY in self.session:
            # Another file takes the place of the one before, which would count in the quota.
            for former_upload in uploads.filter(pk=self.session[SESSION_KEY]):
                discard(former_upload)
        with as_form_error(self, field="file"):
            if file.size > MAX_FILE_BYTES:
                raise Refused(gettext("It is too large for this page. Use add_evaluation_set."))
            self.stored = add_file(self.user, file.name, file.size, file)
            self.session[SESSION_KEY] = str(self.stored.pk)

    def _find_stored(self, uploads: QuerySet[Upload], upload_id: UUID | None) -> None:
        if upload_id:
            self.stored = uploads.filter(pk=upload_id).first()
        if self.stored is None and "file" not in self.errors:
            message = gettext("Choose a file.")
            if upload_id:
                message = gettext("Choose the file again.")
            self.add_error("file", message)

    def fill_preview(self) -> None:
        """Fill `preview`. If the file cannot be read at all, add an error to the file field."""
        if self.stored is None:
            return
        with as_form_error(self, FileError, field="file"), self._rows() as rows:
            self.preview = preview(rows)
        # The file cannot be read; the field has the error.
        if self.preview is None:
            return
        if self.preview.errors:
            message = gettext("Some lines are wrong. Mend them and choose the file again.")
            self.add_error("file", message)
        elif not self.preview.size:
            self.add_error("file", gettext("There is no example in it."))

    @property
    def is_good(self) -> bool:
        """Whether the previewed file can be added."""
        if self.preview is None:
            return False
        return bool(self.preview.size) and not self.preview.errors

    def add(self) -> EvaluationSetVersion | None:
        """Store the file's examples as a version and return it; None if `errors` says why not."""
        try:
            with self._rows() as rows:
                version = self.make(rows)
        except (FileError, Refused) as error:
            self.add_error(None, str(error))
            return None
        assert self.stored is not None
        discard(self.stored)
        return version

    @abstractmethod
    def make(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples. Raises Refused, FileError."""

    @contextmanager
    def _rows(self) -> Iterator[SetFile]:
        assert self.stored is not None
        # The pieces of the upload as one file on this machine.
        with assemble(self.stored) as path:
            yield SetFile(path, self.stored.file_name, self.task.config)


class AboutForm(forms.Form):
    """A form for a set's description and for who may see the set."""

    access = forms.ChoiceField(
        label=_("Who sees it"), choices=EvaluationSet.Access.choices, widget=forms.RadioSelect
    )
    may_leave = forms.BooleanField(
        required=False,
        label=_("Its inputs may leave"),
        help_text=_(
            "Who sees the set may download the inputs and submit predictions, and remote "
            "models are sent the inputs. The right answers never leave. Your consent is logged, "
            "and a sealed set is marked as exposed once its inputs have left."
        ),
    )
    answers_public = forms.BooleanField(
        required=False,
        label=_("Its right answers are public"),
        help_text=_(
            "Scores are shown exactly, and by slice. Otherwise the set is sealed: scores are "
            "rounded, and each person is shown only some results, so that nobody can work the "
            "right answers out."
        ),
    )
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=5000,
        widget=forms.Textarea({"rows": 4}),
        help_text=_("Where it comes from, in Markdown."),
    )

    @property
    def about(self) -> dict[str, Any]:
        """The valid form's values as arguments for `create_set` and `change_set`."""
        return {name: self.cleaned_data[name] for name in EDITABLE_FIELDS}


class NewSetForm(AboutForm, FileForm):
    """A form for a new set with its first version."""

    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Letters, digits, hyphens and underscores, such as reviews-2024."),
    )
    field_order = ["name", "file", "access", "may_leave", "answers_public", "description", "upload"]

    def clean_name(self) -> str:
        """Return the name. Raises ValidationError if the task already has a set with this name."""
        name: str = self.cleaned_data["name"]
        if self.task.evaluation_sets.filter(name=name).exists():
            raise forms.ValidationError(_("This task has a set of that name; choose another."))
        return name

    def make(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples as the first version of a new set."""
        about = {"task": self.task, "actor": self.user, "name": self.cleaned_data["name"]}
        return create_set_with_version(rows, **about, **self.about)


class VersionForm(FileForm):
    """A form for the next version of a set. Assign `evaluation_set` before use."""

    evaluation_set: EvaluationSet

    def make(self, rows: SetFile) -> EvaluationSetVersion:
        """Store the examples as the next version of the set."""
        return make_version(self.evaluation_set, rows, self.user)
