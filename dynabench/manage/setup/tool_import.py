"""The owners' page for importing answered examples from other tools, after a preview."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import get_person
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.access import find_owned_round
from tasks.contexts.uploads import MAX_BYTES, UploadExpired, find_upload, store_upload
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import can_edit
from validation.imports.tool_files import (
    HISTORY_LAYOUT,
    LAYOUTS,
    ImportResult,
    ReadOptions,
    import_answers,
)

TOOL_TITLES = {
    "dynabench": gettext_lazy("Round exported from Dynabench"),
    "argilla": "Argilla",
    "doccano": "doccano",
    "label_studio": "Label Studio",
    "potato": "Potato",
    "opentelemetry": gettext_lazy("Traces from OpenTelemetry (OTLP JSON)"),
    "langfuse": gettext_lazy("Traces from Langfuse"),
    "inspect_logs": gettext_lazy("Logs from Inspect"),
    "atif": gettext_lazy("Agent trajectories (ATIF)"),
    HISTORY_LAYOUT: gettext_lazy("JSON lines, one example with its votes per line"),
}
LAYOUT_NAMES = list(TOOL_TITLES) + sorted(LAYOUTS - TOOL_TITLES.keys())


class ToolForm(forms.Form):
    """A form for a file from another tool, and how to read it."""

    layout = forms.ChoiceField(
        label=gettext_lazy("File format"),
        choices=[(name, TOOL_TITLES.get(name, name)) for name in LAYOUT_NAMES],
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("The exported file, compressed or not. Maximum 20 MB."),
    )
    question = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=200,
        required=False,
        help_text=gettext_lazy(
            "If the tool asked several questions, enter the question whose answers are the votes."
        ),
    )
    judge = forms.BooleanField(
        label=gettext_lazy("Let people judge these examples here"),
        required=False,
        help_text=gettext_lazy("We add them to the queue. Answers in the file count as votes too."),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(
                _("The file is larger than 20 MB. Split it into smaller files.")
            )
        return file

    @property
    def read_options(self) -> ReadOptions:
        """Return how to read the file: its layout, the question, and whether people judge."""
        values = self.cleaned_data
        return ReadOptions(values["layout"], values["question"], values["judge"])


class StoreForm(ToolForm):
    """A form with the same choices for a file that was uploaded before."""

    file = None  # type: ignore[assignment]
    ticket = forms.CharField()


@limit_body(MAX_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def show_tool_import(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the upload form; after an upload, show a preview. Stores no examples."""
    round = find_owned_round(request, code, number, can_edit)
    form = ToolForm()
    if request.method == "POST":
        form = ToolForm(request.POST, request.FILES)
    preview: dict[str, Any] = {}
    if form.is_valid():
        file = form.cleaned_data["file"]
        with show_as_form_error(form, FileError, field="file"):
            ticket = store_upload(
                chunks=file.chunks(), file_name=file.name, round=round, user=get_person(request)
            )
            # The whole import in a transaction that is rolled back: what it shows is what storing
            # does.
            import_result = _import_file(request, round, ticket, form.read_options, dry_run=True)
            preview = {"brought": import_result, "ticket": ticket, "file_name": file.name}
    values = {"task": round.task, "round": round, "form": form, **preview}
    values["is_over"] = round.state == Round.State.RELEASED
    return render(request, "own/setup/tool_import.html", values, status=get_form_status(form))


@require_POST
def store_tool_import(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Store the examples of the preview."""
    round = find_owned_round(request, code, number, can_edit)
    form = StoreForm(request.POST)
    with show_as_message(request, UploadExpired, FileError):
        if not form.is_valid():
            # Only a form that was made by hand has errors here.
            raise UploadExpired(_("This preview has expired. Choose the file again."))
        ticket = form.cleaned_data["ticket"]
        import_result = _import_file(request, round, ticket, form.read_options, dry_run=False)
        find_upload(ticket=ticket, round=round, user=get_person(request)).discard()
        message = _("Examples imported: %(number)d.")
        messages.success(request, message % {"number": import_result.summary.new_count})
        return redirect("own:dashboard", code)
    return redirect("own:tool-import", code, number)


def _import_file(
    request: HttpRequest, round: Round, ticket: str, read_options: ReadOptions, *, dry_run: bool
) -> ImportResult:
    """Read the uploaded file and store its examples, unless `dry_run`.

    Raises UploadExpired, FileError or Refused.
    """
    user = get_person(request)
    upload = find_upload(ticket=ticket, round=round, user=user)
    if not upload.path.exists():
        raise UploadExpired(_("The upload has expired. Choose the file again."))
    arguments = {"path": upload.path, "file_name": upload.file_name, "actor": user}
    return import_answers(round=round, read_options=read_options, dry_run=dry_run, **arguments)  # type: ignore[arg-type]
