"""Pages on which a task's owners manage its evaluation sets."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.text.markdown import render_markdown
from core.web.bodies import FORM_BYTES, limit_body
from core.web.downloads import respond_with_csv, respond_with_lines
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.test_sets.forms import (
    MAX_FILE_BYTES,
    AboutForm,
    FileForm,
    ItemFilter,
    NewSetForm,
    VersionForm,
)
from evaluation.test_sets.items import (
    MAX_ITEMS,
    MIN_MODELS,
    add_texts,
    count_marks,
    find_fit,
    iterate_csv_rows,
    select_items,
)
from evaluation.test_sets.selectors import (
    find_estimated_ids,
    select_open_versions,
    yield_input_lines,
)
from evaluation.test_sets.services import EDITABLE_FIELDS, change_set, record_inputs_taken
from evaluation.test_sets.shown_scores import describe_disclosure
from evaluation.test_sets.source_services import make_requested_round_version
from tasks.access import find_task, find_task_and_editor, require_permission
from tasks.models import Task
from tasks.permissions import can_download, can_read
from validation.judging.queue import count_waiting_examples

Source = EvaluationSet.Source


def _find_set(task: Task, name: str) -> EvaluationSet:
    return get_object_or_404(task.evaluation_sets.select_related("round__task"), name=name)


@require_safe
def show_sets(request: HttpRequest, code: str) -> HttpResponse:
    """Show all sets of the task, each with its newest version."""
    task = find_task_and_editor(request, code)[0]
    rows = task.evaluation_sets.prefetch_related("versions")
    sets_with_versions = []
    for evaluation_set in rows:
        sets_with_versions.append((evaluation_set, list(evaluation_set.versions.all())))
    return render(request, "evaluation/sets.html", {"task": task, "sets": sets_with_versions})


@limit_body(MAX_FILE_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def add_set(request: HttpRequest, code: str) -> HttpResponse:
    """Create a set from a file: show a preview first, then add it."""
    task, user = find_task_and_editor(request, code)
    form_data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = NewSetForm(task, user, request.session, *form_data)
    form.fields["access"].initial = EvaluationSet.Access.SCORING
    if version := _add_or_preview(request, form):
        return redirect("evaluation:set", code=code, name=version.evaluation_set.name)
    values = {"task": task, "form": form, "answer": task.config.answer_field}
    return render(request, "evaluation/set_new.html", values, status=get_form_status(form))


def _add_or_preview(request: HttpRequest, form: FileForm) -> EvaluationSetVersion | None:
    """Store the version if the request confirms it, and return it.

    Otherwise fill the form's preview and return None.
    """
    if request.method != "POST":
        return None
    if form.is_valid() and "add" in request.POST:
        version = form.store_version()
        if version:
            messages.success(request, _build_stored_message(version))
            return version
    # A preview, even after an error, because it says which lines are wrong.
    form.fill_preview()
    return None


@require_http_methods(["GET", "POST"])
def show_set(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Show a set with its versions and the form for its access settings."""
    task, user = find_task_and_editor(request, code)
    evaluation_set = _find_set(task, name)
    initial = {field: getattr(evaluation_set, field) for field in EDITABLE_FIELDS}
    form = AboutForm(request.POST or None, initial=initial, use_required_attribute=False)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            change_set(evaluation_set=evaluation_set, actor=user, **form.about)
            messages.success(request, _("%(set)s saved.") % {"set": evaluation_set})
            return redirect("evaluation:set", code=code, name=name)
    rows = evaluation_set.versions.select_related("dataset__round__task", "evaluation_set__task")
    versions = list(rows.order_by("-version"))
    values: dict[str, Any] = {"task": task, "one": evaluation_set}
    values |= {"form": form, "versions": versions}
    # Only versions of released rounds have one, so for other sets the column would be empty.
    values["has_datasets"] = any(version.dataset for version in versions)
    values["description"] = render_markdown(evaluation_set.description)
    values["estimated_ids"] = find_estimated_ids(versions)
    values["sealed"] = None
    values["may_read"] = can_read(user, task)
    if versions and versions[0].is_sealed:
        values["sealed"] = describe_disclosure(versions[0])
    round = evaluation_set.round
    if round and round.state == "closed":
        values |= {"can_download": True, "waiting": count_waiting_examples([round])[round.pk]}
    return render(request, "evaluation/set.html", values, status=get_form_status(form))


@limit_body(MAX_FILE_BYTES + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def add_set_version(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Make the next version of an uploaded set: show a preview of the file first, then add it."""
    task, user = find_task_and_editor(request, code)
    evaluation_set = _find_set(task, name)
    # Sets of rounds, releases and seeds get their versions from the sweep.
    if evaluation_set.source != Source.UPLOAD:
        raise Http404
    form_data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = VersionForm(task, user, request.session, *form_data)
    form.evaluation_set = evaluation_set
    if _add_or_preview(request, form):
        return redirect("evaluation:set", code=code, name=name)
    values: dict[str, Any] = {"task": task, "one": evaluation_set, "form": form}
    values["answer"] = task.config.answer_field
    return render(request, "evaluation/set_new.html", values, status=get_form_status(form))


@require_POST
def add_round_version(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Make the next version of a round's set from the closed round as it is now."""
    task, user = find_task_and_editor(request, code)
    evaluation_set = _find_set(task, name)
    round = evaluation_set.round
    if round is None or round.state != "closed":
        raise Http404
    with show_as_message(request):
        version = make_requested_round_version(
            round=round, actor=user, reason=request.POST.get("reason", "")[:500]
        )
        messages.success(
            request,
            _build_stored_message(version)
            if version
            else _("No examples are confirmed yet. Wait until people have judged some."),
        )
    return redirect("evaluation:set", code=code, name=name)


@require_safe
def send_version_inputs(request: HttpRequest, code: str, name: str, version: int) -> FileResponse:
    """Send the gzipped inputs of any version of a set with open inputs. Never sends answers.

    For the task's editors. Records that the inputs left the site.
    """
    task, user = find_task_and_editor(request, code)
    evaluation_set = _find_set(task, name)
    if not evaluation_set.may_leave:
        raise Http404
    versions = evaluation_set.versions.select_related("dataset")
    set_version = get_object_or_404(versions, version=version)
    if not record_inputs_taken(set_version, user):  # its release was undone in the meantime
        raise Http404
    name = f"{code}-{name}-v{version}-inputs.jsonl.gz"
    return FileResponse(set_version.inputs.open("rb"), as_attachment=True, filename=name)


@login_not_required
@require_safe
def stream_open_inputs(request: HttpRequest, code: str, pk: int) -> StreamingHttpResponse:
    """Stream the inputs that a predictions file has to answer, in the form that models read.

    Records that the inputs left the site.
    """
    task = find_task(request, code, can_download)
    version = get_object_or_404(select_open_versions(task), pk=pk)
    if not record_inputs_taken(version):
        raise Http404
    name = f"{code}-{version.evaluation_set.name}-v{version.version}.jsonl"
    return respond_with_lines(yield_input_lines(version), name)


@require_safe
def show_items(request: HttpRequest, code: str, name: str, version: int) -> HttpResponse:
    """Show how hard each item of a version is, and how well it tells models apart.

    `?format=csv` sends all items as a file. For the task's editors who may read labels.
    """
    task, user = find_task_and_editor(request, code)
    # A label that may be wrong tells something of the right one.
    require_permission(user, task, can_read)
    evaluation_set = _find_set(task, name)
    versions = evaluation_set.versions.select_related("evaluation_set__task")
    set_version = get_object_or_404(versions, version=version)
    fit = find_fit(set_version)
    if fit and request.GET.get("format") == "csv":
        file_name = f"{code}-{name}-v{version}-items.csv"
        return respond_with_csv(iterate_csv_rows(fit), file_name)
    filters = ItemFilter(request)
    values: dict[str, Any] = {"task": task, "one": evaluation_set, "version": set_version}
    values |= {"fit": fit, "filters": filters, "least": MIN_MODELS, "largest": MAX_ITEMS}
    if fit:
        page = list_page(request, select_items(fit, filters.cleaned_data["order"] or "doubtful"))
        values |= {"page": page, "items": add_texts(set_version, page.rows)}
        values["marks"] = count_marks(fit)
        values["languages"] = list(fit.languages.all())
    return render(request, "evaluation/set_items.html", values)


def _build_stored_message(version: EvaluationSetVersion) -> str:
    message = ngettext(
        "%(version)s: %(size)s example.", "%(version)s: %(size)s examples.", version.size
    )
    return message % {"version": version, "size": f"{version.size:,}"}
