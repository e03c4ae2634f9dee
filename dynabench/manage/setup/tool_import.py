"""The owners' page that takes examples with answers from other tools: see, then store."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import person
from core.web.bodies import FORM_BYTES, takes
from core.web.htmx import form_status
from core.web.refusals import as_form_error, as_message
from dynabench.manage.access import find_owned_round
from tasks.contexts.uploads import MAX_BYTES, UploadGone, find_upload, store_upload
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import can_edit
from validation.imports.tool_files import (
    HISTORY,
    LAYOUTS,
    ImportResult,
    ReadOptions,
    import_answers,
)

TOOL_TITLES = {
    "dynabench": gettext_lazy("A round that Dynabench exported"),
    "argilla": "Argilla",
    "doccano": "doccano",
    "label_studio": "Label Studio",
    "potato": "Potato",
    HISTORY: gettext_lazy("JSON lines with one example and its votes each"),
}
TOOLS_FIRST = list(TOOL_TITLES) + sorted(LAYOUTS - TOOL_TITLES.keys())


class ToolForm(forms.Form):
    """A form for a file of another tool and the way to read it."""

    layout = forms.ChoiceField(
        label=gettext_lazy("Where the file is from"),
        choices=[(name, TOOL_TITLES.get(name, name)) for name in TOOLS_FIRST],
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("As the tool exported it, also packed. Maximum 20 MB."),
    )
    question = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Whose answers are the votes, where a tool asked several."),
    )
    judge = forms.BooleanField(
        label=gettext_lazy("People judge these examples here"),
        required=False,
        help_text=gettext_lazy("They are added to the queue, and answers in the file count too."),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(_("The file is larger than 20 MB. Split it."))
        return file

    @property
    def reading(self) -> ReadOptions:
        """Return the file's layout, the question to read, and whether people judge its examples."""
        values = self.cleaned_data
        return ReadOptions(values["layout"], values["question"], values["judge"])


class StoreForm(ToolForm):
    """A form with the same choices for a file that was uploaded before."""

    file = None  # type: ignore[assignment]
    ticket = forms.CharField()


@takes(MAX_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def tool_import(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the upload form; after an upload, show a preview. Stores no examples."""
    round = find_owned_round(request, code, number, can_edit)
    form = ToolForm()
    if request.method == "POST":
        form = ToolForm(request.POST, request.FILES)
    preview: dict[str, Any] = {}
    if form.is_valid():
        file = form.cleaned_data["file"]
        with as_form_error(form, FileError, field="file"):
            ticket = store_upload(
                chunks=file.chunks(), file_name=file.name, round=round, user=person(request)
            )
            # The whole import in a transaction that is rolled back: what it shows is what storing
            # does.
            brought = _import(request, round, ticket, form.reading, dry_run=True)
            preview = {"brought": brought, "ticket": ticket, "file_name": file.name}
    values = {"task": round.task, "round": round, "form": form, **preview}
    values["is_over"] = round.state == Round.State.RELEASED
    return render(request, "own/setup/tool_import.html", values, status=form_status(form))


@require_POST
def tool_import_store(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Store the examples of the preview."""
    round = find_owned_round(request, code, number, can_edit)
    form = StoreForm(request.POST)
    with as_message(request, UploadGone, FileError):
        if not form.is_valid():
            # Only a form that was made by hand has errors here.
            raise UploadGone(_("This preview is too old. Choose the file again."))
        ticket = form.cleaned_data["ticket"]
        import_result = _import(request, round, ticket, form.reading, dry_run=False)
        find_upload(ticket=ticket, round=round, user=person(request)).forget()
        message = _("Examples imported: %(number)d.")
        messages.success(request, message % {"number": import_result.summary.new})
        return redirect("own:dashboard", code)
    return redirect("own:tool-import", code, number)


def _import(
    request: HttpRequest, round: Round, ticket: str, reading: ReadOptions, *, dry_run: bool
) -> ImportResult:
    """Read the uploaded file and store its examples, unless `dry_run`.

    Raises UploadGone, FileError, Refused.
    """
    user = person(request)
    upload = find_upload(ticket=ticket, round=round, user=user)
    if not upload.path.exists():
        raise UploadGone(_("The upload is not kept any more. Choose the file again."))
    about = {"path": upload.path, "file_name": upload.file_name, "actor": user}
    return import_answers(round=round, wanted=reading, dry_run=dry_run, **about)  # type: ignore[arg-type]
