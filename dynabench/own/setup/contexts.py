"""The owners' page about a round's contexts: choose a file, see what it brings, store it."""

from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dynabench.accounts.people import person
from dynabench.lib.bodies import FORM_BYTES, takes
from dynabench.lib.refusals import as_form_error, as_message
from dynabench.own.access import owned_round
from tasks.contexts.archives import MAX_ARCHIVE_BYTES
from tasks.contexts.columns import Matching, fits, guess
from tasks.contexts.files import Summary
from tasks.contexts.forms import MatchForm, UploadForm, initial_of, matching_in, preview_values
from tasks.contexts.services import FINISHED, import_contexts, preview_contexts, undo_import
from tasks.contexts.uploads import KeptUpload, UploadGone, keep_upload, kept_upload
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import can_edit


@takes(MAX_ARCHIVE_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def contexts(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Choose a file of contexts, then see what it would bring; nothing is stored."""
    round = owned_round(request, code, number, can_edit)
    form = UploadForm(request.POST or None, request.FILES or None)
    shown: dict[str, Any] = {}
    if form.is_valid():
        file = form.cleaned_data["file"]
        with as_form_error(form, FileError, field="file"):
            found, matching = _guessed(round, file)
            kept: dict[str, Any] = {"round": round, "user": person(request)}
            shown["ticket"] = keep_upload(chunks=file.chunks(), file_name=file.name, **kept)
            about: dict[str, Any] = {"columns": found.columns, "config": round.task.config}
            shown["match"] = MatchForm(initial=initial_of(matching), **about)
            shown |= {**preview_values(round, found), "file_name": file.name}
    return _page(request, round, form, shown)


@require_POST
def contexts_match(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """See what the upload would bring if its columns filled other fields; nothing is stored."""
    round = owned_round(request, code, number, can_edit)
    with as_message(request, UploadGone, FileError):
        upload, found = _read_again(request, round)
        match = MatchForm(request.POST, columns=found.columns, config=round.task.config)
        shown = {"ticket": request.POST["ticket"], "match": match, "file_name": upload.file_name}
        return _page(request, round, UploadForm(), shown | preview_values(round, found))
    return redirect("own:contexts", code, number)


@require_POST
def contexts_store(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Store the good rows of the upload that the person has seen."""
    round = owned_round(request, code, number, can_edit)
    with as_message(request, UploadGone, FileError):
        upload, found = _read_again(request, round)
        name = upload.file_name
        import_contexts(round=round, found=found, file_name=name, actor=person(request))
        upload.forget()
        messages.success(request, _("New contexts: %(number)d.") % {"number": found.stored})
        return redirect("own:dashboard", code)
    return redirect("own:contexts", code, number)


@require_POST
def contexts_undo(request: HttpRequest, code: str, number: int, pk: int) -> HttpResponse:
    """Take out what one file brought, while nobody was given any of it."""
    round = owned_round(request, code, number, can_edit)
    batch = get_object_or_404(round.batches.select_related("round__task"), pk=pk)
    with as_message(request):
        count = undo_import(batch=batch, actor=person(request))
        messages.success(request, _("Contexts taken out: %(number)d.") % {"number": count})
    return redirect("own:contexts", code, number)


def _guessed(round: Round, file: UploadedFile) -> tuple[Summary, Matching]:
    """What the file brings, and the field that each column seems to fill."""
    about: dict[str, Any] = {"round": round, "file_name": file.name}
    found = preview_contexts(lines=file.chunks(), **about)
    matching = guess(found.columns, round.task.config)
    if found.columns and not fits(found.columns, round.task.config):
        found = preview_contexts(lines=file.chunks(), matching=matching, **about)
    return found, matching


def _read_again(request: HttpRequest, round: Round) -> tuple[KeptUpload, Summary]:
    """The upload of the ticket, read with the sent columns. Raises UploadGone, FileError."""
    who = person(request)
    upload = kept_upload(ticket=request.POST.get("ticket", ""), round=round, user=who)
    about: dict[str, Any] = {"lines": upload.lines(), "file_name": upload.file_name}
    matching = matching_in(request.POST, round.task.config)
    return upload, preview_contexts(round=round, matching=matching, **about)


def _page(
    request: HttpRequest, round: Round, form: UploadForm, shown: dict[str, Any]
) -> HttpResponse:
    values = {"task": round.task, "round": round, "form": form, "config": round.task.config}
    values["there"] = round.contexts.filter(is_retired=False).count()
    values["batches"] = round.batches.annotate(brought=Count("context")).order_by("-pk")
    values["is_over"] = round.state in FINISHED
    match = shown.get("match")
    is_wrong = form.errors or (match and match.errors)
    return render(
        request, "own/setup/contexts.html", values | shown, status=422 if is_wrong else 200
    )
