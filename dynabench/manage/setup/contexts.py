"""The owners' pages that import rows from a file or the hub: preview them, then store them.

Rows are contexts of a round, examples that people judge, or labelled rows for a training run.
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

from core.accounts.people import get_person
from core.errors import Refused
from core.web.bodies import FORM_BYTES, limit_body
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from core.web.throttles import is_used_up
from dynabench.manage.access import find_owned_round
from evaluation.training.labelled import (
    find_labelled_fields,
    preview_labelled_rows,
    request_labelled_training,
)
from tasks.config.schema import TaskConfig
from tasks.contexts.archives import MAX_ARCHIVE_BYTES
from tasks.contexts.columns import Fields, are_field_names, guess_matching
from tasks.contexts.files import Summary
from tasks.contexts.forms import (
    HubForm,
    MatchForm,
    UploadForm,
    build_initial_values,
    build_preview_context,
    read_matching,
)
from tasks.contexts.services import import_contexts, preview_contexts, undo_import
from tasks.contexts.uploads import StoredUpload, UploadExpired, find_upload, store_upload
from tasks.datasets.reading import RowsQuery
from tasks.datasets.spool import spool_rows
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.line_files import FileError
from tasks.models import Round
from tasks.permissions import can_edit
from validation.imports.judged import find_judged_fields, preview_rows, store_rows


@dataclass(frozen=True)
class RowImport:
    """A kind of import of rows, with the functions that preview and store the rows.

    fields: returns the fields that the rows fill. preview: reads rows and returns their summary.
    store: stores the rows and returns the number of new ones. done_message: the message
    after storing. finished_states: the states of a round in which nothing may be imported.
    next_page: the view name of the page to show next.
    """

    fields: Callable[[TaskConfig], Fields]
    preview: Callable[..., Summary]
    store: Callable[..., int]
    done_message: str | Promise
    finished_states: tuple[str, ...]
    next_page: str = "own:dashboard"


def _store_contexts(**values: Any) -> int:
    return import_contexts(**values).stored_count


def _store_rows(**values: Any) -> int:
    return store_rows(**values).new_count


def _request_training(**values: Any) -> int:
    return len(request_labelled_training(**values).rows or ())


# By the name that stands in the address.
ROW_IMPORTS = {
    "contexts": RowImport(
        lambda config: config,
        preview_contexts,
        _store_contexts,
        gettext_lazy("Texts imported: %(number)d."),
        Round.FINISHED_STATES,
    ),
    "rows": RowImport(
        find_judged_fields,
        preview_rows,
        _store_rows,
        gettext_lazy("Examples imported: %(number)d. People can judge them now."),
        (Round.State.RELEASED,),
    ),
    "labelled": RowImport(
        find_labelled_fields,
        preview_labelled_rows,
        _request_training,
        gettext_lazy(
            "Training on %(number)d rows is queued. Open the training run to follow its progress."
        ),
        (),
        "evaluation:trainings",
    ),
}


@limit_body(MAX_ARCHIVE_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def choose_file(request: HttpRequest, code: str, number: int, import_kind: str) -> HttpResponse:
    """Show the upload form, or after an upload a preview of its rows. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    form = UploadForm(request.POST or None, request.FILES or None)
    preview: dict[str, Any] = {}
    if form.is_valid():
        file = form.cleaned_data["file"]
        with show_as_form_error(form, FileError, field="file"):
            preview = _build_preview(request, round, import_kind, file.chunks, file.name)
    return _show_page(request, round, import_kind, preview, form=form)


@require_POST
def choose_hub_dataset(
    request: HttpRequest, code: str, number: int, import_kind: str
) -> HttpResponse:
    """Show a preview of the rows of a data set on the hub. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    form = HubForm(request.POST)
    preview: dict[str, Any] = {}
    if form.is_valid():
        with show_as_form_error(form, FileError, field="dataset"):
            if is_used_up("hub", request.user.pk):  # the hub counts the site, not the person
                raise Refused(
                    _("You've sent too many requests to the hub. Wait an hour."), status=429
                )
            values = dict(form.cleaned_data)
            query = RowsQuery(
                source=values.pop("dataset"), is_plain=import_kind != "contexts", **values
            )
            with spool_rows(query, is_on_hub=True, use_form_limits=True) as (summary, rows):
                name = f"{summary.title}.jsonl"
                preview = _build_preview(
                    request, round, import_kind, lambda: [rows.read_bytes()], name, summary.terms
                )
    return _show_page(request, round, import_kind, preview, hub=form)


@require_POST
def match_columns(request: HttpRequest, code: str, number: int, import_kind: str) -> HttpResponse:
    """Show a preview of the rows with another assignment of columns to fields. Stores no rows."""
    round = find_owned_round(request, code, number, can_edit)
    with show_as_message(request, UploadExpired, FileError):
        upload, summary = _reread_upload(request, round, import_kind)
        fields = ROW_IMPORTS[import_kind].fields(round.task.config)
        form = MatchForm(request.POST, columns=summary.columns, config=fields)
        values = {"ticket": request.POST["ticket"], "match": form, "file_name": upload.file_name}
        return _show_page(
            request, round, import_kind, values | build_preview_context(round, summary, fields)
        )
    return redirect(f"own:{import_kind}", code, number)


@require_POST
def store_previewed_rows(
    request: HttpRequest, code: str, number: int, import_kind: str
) -> HttpResponse:
    """Store the valid rows of the preview."""
    round = find_owned_round(request, code, number, can_edit)
    with show_as_message(request, UploadExpired, FileError):
        upload, summary = _reread_upload(request, round, import_kind)
        # The licence and source of a data set are kept with its rows.
        options = {
            "file_name": upload.file_name,
            "terms": upload.terms,
            "actor": get_person(request),
        }
        new_count = ROW_IMPORTS[import_kind].store(round=round, summary=summary, **options)
        upload.discard()  # what was stored could be stored twice from it
        messages.success(request, ROW_IMPORTS[import_kind].done_message % {"number": new_count})
        if summary.error_count:
            warning = ngettext(
                "%(n)d line had an error and was skipped.",
                "%(n)d lines had errors and were skipped.",
                summary.error_count,
            )
            messages.warning(request, warning % {"n": summary.error_count})
        return redirect(ROW_IMPORTS[import_kind].next_page, code)
    return redirect(f"own:{import_kind}", code, number)


@require_POST
def undo_context_import(request: HttpRequest, code: str, number: int, pk: int) -> HttpResponse:
    """Remove the contexts of one import while none of them has been shown to people."""
    round = find_owned_round(request, code, number, can_edit)
    batch = get_object_or_404(round.batches.select_related("round__task"), pk=pk)
    with show_as_message(request):
        # Refused once a context of the file was given to somebody.
        count = undo_import(batch=batch, actor=get_person(request))
        messages.success(request, _("Texts removed: %(number)d.") % {"number": count})
    return redirect("own:contexts", code, number)


def _build_preview(
    request: HttpRequest,
    round: Round,
    import_kind: str,
    chunks: Callable[[], Iterable[bytes]],
    name: str,
    terms: Terms = UNKNOWN_TERMS,
) -> dict[str, Any]:
    """Return the template's values for a file's preview, with a guessed field for each column.

    The file is stored until the person imports its rows. chunks: returns the file's bytes, piece by
    piece.
    """
    fields, preview = (
        ROW_IMPORTS[import_kind].fields(round.task.config),
        ROW_IMPORTS[import_kind].preview,
    )
    summary = preview(round=round, lines=chunks(), file_name=name)
    matching = guess_matching(summary.columns, fields)
    if summary.columns and not are_field_names(summary.columns, fields):
        # The first reading took columns by their names; this one takes the guessed ones.
        summary = preview(round=round, lines=chunks(), file_name=name, matching=matching)
    upload_values: dict[str, Any] = {"round": round, "user": get_person(request), "terms": terms}
    # Kept, so that the person need not send the file again to store it.
    ticket = store_upload(chunks=chunks(), file_name=name, **upload_values)
    form = MatchForm(initial=build_initial_values(matching), columns=summary.columns, config=fields)
    values = {"ticket": ticket, "match": form, "file_name": name, "terms": terms}
    return values | build_preview_context(round, summary, fields)


def _reread_upload(
    request: HttpRequest, round: Round, import_kind: str
) -> tuple[StoredUpload, Summary]:
    """Return the upload that the ticket identifies, and its preview with the submitted columns.

    Raises UploadExpired or FileError.
    """
    user = get_person(request)
    upload = find_upload(ticket=request.POST.get("ticket", ""), round=round, user=user)
    options: dict[str, Any] = {"lines": upload.iter_lines(), "file_name": upload.file_name}
    matching = read_matching(request.POST, ROW_IMPORTS[import_kind].fields(round.task.config))
    return upload, ROW_IMPORTS[import_kind].preview(round=round, matching=matching, **options)


def _show_page(
    request: HttpRequest,
    round: Round,
    import_kind: str,
    preview: dict[str, Any],
    form: UploadForm | None = None,
    hub: HubForm | None = None,
) -> HttpResponse:
    config = round.task.config
    forms = {"form": form or UploadForm(), "hub": hub or HubForm()}
    values = {
        "task": round.task,
        "round": round,
        "config": config,
        "import_kind": import_kind,
        **forms,
    }
    values["there"] = round.contexts.filter(is_retired=False).count()
    values["examples"] = round.examples.count()
    # The latest first, with how many contexts each still has.
    values["batches"] = round.batches.annotate(brought=Count("context")).order_by("-pk")
    values["is_over"] = round.state in ROW_IMPORTS[import_kind].finished_states
    values |= {f"{name}_url": f"own:{import_kind}-{name}" for name in ("hub", "match", "store")}
    values["choose_url"] = f"own:{import_kind}"
    with show_as_message(request):  # where no row fits the task, the page says so
        values["fields"] = ROW_IMPORTS[import_kind].fields(config).context
    status = get_form_status(form, hub, preview.get("match"))
    return render(request, f"own/setup/{import_kind}.html", values | preview, status=status)
