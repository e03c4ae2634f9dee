"""The owners' pages that take rows from a file or a hub: see what they bring, then store it.

Rows are contexts of a round, or examples that people judge.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.people import person
from core.errors import Refused
from core.web.bodies import FORM_BYTES, takes
from core.web.htmx import form_status
from core.web.refusals import as_form_error, as_message
from core.web.throttles import is_used_up
from dynabench.manage.access import find_owned_round
from evaluation.training.labelled import (
    find_labelled_fields,
    preview_labelled,
    request_labelled_training,
)
from tasks.config.schema import TaskConfig
from tasks.contexts.archives import MAX_ARCHIVE_BYTES
from tasks.contexts.columns import Fields, are_fields, guess_matching
from tasks.contexts.files import Summary
from tasks.contexts.forms import (
    HubForm,
    MatchForm,
    UploadForm,
    build_initial,
    build_preview_context,
    read_matching,
)
from tasks.contexts.services import FINISHED_STATES, import_contexts, preview_contexts, undo_import
from tasks.contexts.uploads import StoredUpload, UploadGone, find_upload, store_upload
from tasks.datasets.reading import RowsQuery
from tasks.datasets.spool import spool_rows
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import can_edit
from validation.imports.judged import judged_fields, preview_rows, store_rows


@dataclass(frozen=True)
class Desk:
    """An import page for rows: its fields, its preview, and the function that stores the rows.

    store: returns the number of new rows. done: the message after storing. over: states of a round
    in which nothing is imported. after: the page of the task to show next.
    """

    fields: Callable[[TaskConfig], Fields]
    preview: Callable[..., Summary]
    store: Callable[..., int]
    done: str | Promise
    over: tuple[str, ...]
    after: str = "own:dashboard"


def _store_contexts(**values: Any) -> int:
    return import_contexts(**values).stored


def _store_rows(**values: Any) -> int:
    return store_rows(**values).new


def _train(**values: Any) -> int:
    return len(request_labelled_training(**values).rows or ())


# By the name that stands in the address.
DESKS = {
    "contexts": Desk(
        lambda config: config,
        preview_contexts,
        _store_contexts,
        gettext_lazy("New contexts: %(number)d."),
        FINISHED_STATES,
    ),
    "rows": Desk(
        judged_fields,
        preview_rows,
        _store_rows,
        gettext_lazy("New examples, which people judge now: %(number)d."),
        (Round.State.RELEASED,),
    ),
    "labelled": Desk(
        find_labelled_fields,
        preview_labelled,
        _train,
        gettext_lazy(
            "A training on %(number)d rows waits for its turn. Open it to see how far it is."
        ),
        (),
        "evaluation:trainings",
    ),
}


@takes(MAX_ARCHIVE_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def choose_file(request: HttpRequest, code: str, number: int, desk: str) -> HttpResponse:
    """Show the upload form; after an upload, show a preview of its rows. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    form = UploadForm(request.POST or None, request.FILES or None)
    preview: dict[str, Any] = {}
    if form.is_valid():
        file = form.cleaned_data["file"]
        with as_form_error(form, FileError, field="file"):
            preview = _build_preview(request, round, desk, file.chunks, file.name)
    return _show_page(request, round, desk, preview, form=form)


@require_POST
def choose_of_hub(request: HttpRequest, code: str, number: int, desk: str) -> HttpResponse:
    """Show a preview of the rows of a data set on the hub. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    form = HubForm(request.POST)
    preview: dict[str, Any] = {}
    if form.is_valid():
        with as_form_error(form, FileError, field="dataset"):
            if is_used_up("hub", request.user.pk):  # the hub counts the site, not the person
                raise Refused(_("You asked the hub often. Wait an hour."), status=429)
            values = dict(form.cleaned_data)
            query = RowsQuery(where=values.pop("dataset"), is_plain=desk != "contexts", **values)
            with spool_rows(query, of_hub=True, is_page=True) as (summary, rows):
                name = f"{summary.title}.jsonl"
                preview = _build_preview(
                    request, round, desk, lambda: [rows.read_bytes()], name, summary.terms
                )
    return _show_page(request, round, desk, preview, hub=form)


@require_POST
def match_columns(request: HttpRequest, code: str, number: int, desk: str) -> HttpResponse:
    """Show a preview of the rows with another assignment of columns to fields. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    with as_message(request, UploadGone, FileError):
        upload, summary = _reread_upload(request, round, desk)
        fields = DESKS[desk].fields(round.task.config)
        form = MatchForm(request.POST, columns=summary.columns, config=fields)
        values = {"ticket": request.POST["ticket"], "match": form, "file_name": upload.file_name}
        return _show_page(
            request, round, desk, values | build_preview_context(round, summary, fields)
        )
    return redirect(f"own:{desk}", code, number)


@require_POST
def store_rows_seen(request: HttpRequest, code: str, number: int, desk: str) -> HttpResponse:
    """Store the valid rows of the preview."""
    round = find_owned_round(request, code, number, can_edit)
    with as_message(request, UploadGone, FileError):
        upload, summary = _reread_upload(request, round, desk)
        # The licence and source of a data set are kept with its rows.
        about = {"file_name": upload.file_name, "terms": upload.terms, "actor": person(request)}
        new = DESKS[desk].store(round=round, found=summary, **about)
        upload.forget()  # what was stored could be stored twice from it
        messages.success(request, DESKS[desk].done % {"number": new})
        if summary.error_count:
            warning = ngettext(
                "%(n)d line had an error and was left out.",
                "%(n)d lines had errors and were left out.",
                summary.error_count,
            )
            messages.warning(request, warning % {"n": summary.error_count})
        return redirect(DESKS[desk].after, code)
    return redirect(f"own:{desk}", code, number)


@require_POST
def contexts_undo(request: HttpRequest, code: str, number: int, pk: int) -> HttpResponse:
    """Remove the contexts of one import while none of them has been shown to people."""
    round = find_owned_round(request, code, number, can_edit)
    batch = get_object_or_404(round.batches.select_related("round__task"), pk=pk)
    with as_message(request):
        # Refused once a context of the file was given to somebody.
        count = undo_import(batch=batch, actor=person(request))
        messages.success(request, _("Contexts taken out: %(number)d.") % {"number": count})
    return redirect("own:contexts", code, number)


def _build_preview(
    request: HttpRequest,
    round: Round,
    desk: str,
    chunks: Callable[[], Iterable[bytes]],
    name: str,
    terms: Terms = UNKNOWN_TERMS,
) -> dict[str, Any]:
    """Return the preview of a file, with a guessed field for each column.

    Keeps the file until the person stores it.
    """
    fields, preview = DESKS[desk].fields(round.task.config), DESKS[desk].preview
    summary = preview(round=round, lines=chunks(), file_name=name)
    matching = guess_matching(summary.columns, fields)
    if summary.columns and not are_fields(summary.columns, fields):
        # The first reading took columns by their names; this one takes the guessed ones.
        summary = preview(round=round, lines=chunks(), file_name=name, matching=matching)
    about: dict[str, Any] = {"round": round, "user": person(request), "terms": terms}
    # Kept, so that the person need not send the file again to store it.
    ticket = store_upload(chunks=chunks(), file_name=name, **about)
    form = MatchForm(initial=build_initial(matching), columns=summary.columns, config=fields)
    values = {"ticket": ticket, "match": form, "file_name": name, "terms": terms}
    return values | build_preview_context(round, summary, fields)


def _reread_upload(request: HttpRequest, round: Round, desk: str) -> tuple[StoredUpload, Summary]:
    """Return the upload of the ticket, and its preview with the submitted columns.

    Raises UploadGone, FileError.
    """
    who = person(request)
    upload = find_upload(ticket=request.POST.get("ticket", ""), round=round, user=who)
    about: dict[str, Any] = {"lines": upload.lines(), "file_name": upload.file_name}
    matching = read_matching(request.POST, DESKS[desk].fields(round.task.config))
    return upload, DESKS[desk].preview(round=round, matching=matching, **about)


def _show_page(
    request: HttpRequest,
    round: Round,
    desk: str,
    preview: dict[str, Any],
    form: UploadForm | None = None,
    hub: HubForm | None = None,
) -> HttpResponse:
    config = round.task.config
    forms = {"form": form or UploadForm(), "hub": hub or HubForm()}
    values = {"task": round.task, "round": round, "config": config, "desk": desk, **forms}
    values["there"] = round.contexts.filter(is_retired=False).count()
    values["examples"] = round.examples.count()
    # The latest first, with how many contexts each still has.
    values["batches"] = round.batches.annotate(brought=Count("context")).order_by("-pk")
    values["is_over"] = round.state in DESKS[desk].over
    values |= {f"{name}_url": f"own:{desk}-{name}" for name in ("hub", "match", "store")}
    values["choose_url"] = f"own:{desk}"
    with as_message(request):  # where no row fits the task, the page says so
        values["fields"] = DESKS[desk].fields(config).context
    status = form_status(form, hub, preview.get("match"))
    return render(request, f"own/setup/{desk}.html", values | preview, status=status)
