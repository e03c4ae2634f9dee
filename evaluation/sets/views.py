"""Pages on which a task's owners keep its evaluation sets."""

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
from core.web.bodies import FORM_BYTES, takes
from core.web.downloads import lines
from core.web.refusals import as_message
from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.sets.forms import LARGEST, AboutForm, FileForm, NewSetForm, VersionForm
from evaluation.sets.selectors import input_lines, open_versions
from evaluation.sets.services import ABOUT, change_set, note_taken
from evaluation.sets.shown_scores import shown_of
from evaluation.sets.source_services import take_round
from tasks.access import find_edited, find_task
from tasks.models import Task
from tasks.permissions import can_take
from validation.judging.queue import waiting_examples

Source = EvaluationSet.Source


def _one(task: Task, name: str) -> EvaluationSet:
    return get_object_or_404(task.evaluation_sets.select_related("round__task"), name=name)


@require_safe
def sets(request: HttpRequest, code: str) -> HttpResponse:
    """All sets of the task, each with its newest version."""
    task = find_edited(request, code)[0]
    rows = task.evaluation_sets.prefetch_related("versions")
    listed = [(one, list(one.versions.all())) for one in rows]
    return render(request, "evaluation/sets.html", {"task": task, "sets": listed})


@takes(LARGEST + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def set_new(request: HttpRequest, code: str) -> HttpResponse:
    """Make a set of a file: look through it, then add it."""
    task, user = find_edited(request, code)
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = NewSetForm(task, user, request.session, *sent)
    form.fields["access"].initial = EvaluationSet.Access.SCORING
    if version := _added(request, form):
        return redirect("evaluation:set", code=code, name=version.evaluation_set.name)
    values = {"task": task, "form": form, "answer": task.config.answer_field}
    return render(request, "evaluation/set_new.html", values, status=_status(form))


def _added(request: HttpRequest, form: FileForm) -> EvaluationSetVersion | None:
    """The version that a form has stored; otherwise it has looked through its file."""
    if request.method != "POST":
        return None
    if form.is_valid() and "add" in request.POST and (version := form.add()):
        messages.success(request, _stored_message(version))
        return version
    form.look()
    return None


@require_http_methods(["GET", "POST"])
def set_page(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """One set: its versions, and the form that changes who sees it."""
    task, user = find_edited(request, code)
    one = _one(task, name)
    now = {field: getattr(one, field) for field in ABOUT}
    form = AboutForm(request.POST or None, initial=now, use_required_attribute=False)
    if request.method == "POST" and form.is_valid():
        change_set(evaluation_set=one, actor=user, **form.about)
        messages.success(request, _("%(set)s is saved.") % {"set": one})
        return redirect("evaluation:set", code=code, name=name)
    versions = one.versions.select_related("dataset__round__task", "evaluation_set__task")
    listed = list(versions.order_by("-version"))
    values = {"task": task, "one": one, "form": form, "versions": listed}
    values["description"] = render_markdown(one.description)
    values["sealed"] = next((shown_of(one) for one in listed[:1] if one.is_sealed), None)
    if one.round and one.round.state == "closed":
        values |= {"can_take": True, "waiting": waiting_examples([one.round])[one.round.pk]}
    return render(request, "evaluation/set.html", values, status=_status(form))


@takes(LARGEST + FORM_BYTES)
@require_http_methods(["GET", "POST"])
def set_version(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Make the next version of an uploaded set: look through a file, then add it."""
    task, user = find_edited(request, code)
    one = _one(task, name)
    if one.source != Source.UPLOAD:
        raise Http404
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = VersionForm(task, user, request.session, *sent)
    form.evaluation_set = one
    if _added(request, form):
        return redirect("evaluation:set", code=code, name=name)
    values = {"task": task, "one": one, "form": form, "answer": task.config.answer_field}
    return render(request, "evaluation/set_new.html", values, status=_status(form))


@require_POST
def set_take(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Take a closed round as it stands now as the next version of its set."""
    task, user = find_edited(request, code)
    one = _one(task, name)
    if one.round is None or one.round.state != "closed":
        raise Http404
    with as_message(request):
        version = take_round(
            round=one.round, actor=user, reason=request.POST.get("reason", "")[:500]
        )
        messages.success(
            request, _stored_message(version) if version else _("Nothing is confirmed yet.")
        )
    return redirect("evaluation:set", code=code, name=name)


@require_safe
def version_inputs(request: HttpRequest, code: str, name: str, version: int) -> FileResponse:
    """The inputs of any version of a set that may leave, gzipped; the answers never leave."""
    task, user = find_edited(request, code)
    one = _one(task, name)
    if not one.may_leave:
        raise Http404
    found = get_object_or_404(one.versions.select_related("dataset"), version=version)
    if not note_taken(found, user):
        raise Http404
    name = f"{code}-{name}-v{version}-inputs.jsonl.gz"
    return FileResponse(found.inputs.open("rb"), as_attachment=True, filename=name)


@login_not_required
@require_safe
def open_inputs(request: HttpRequest, code: str, pk: int) -> StreamingHttpResponse:
    """The inputs that a predictions file answers, as models read them."""
    task = find_task(request, code, can_take)
    version = get_object_or_404(open_versions(task), pk=pk)
    if not note_taken(version):
        raise Http404
    name = f"{code}-{version.evaluation_set.name}-v{version.version}.jsonl"
    return lines(input_lines(version), name)


def _stored_message(version: EvaluationSetVersion) -> str:
    message = ngettext(
        "%(version)s: %(size)s example.", "%(version)s: %(size)s examples.", version.size
    )
    return message % {"version": version, "size": f"{version.size:,}"}


def _status(form: Any) -> int:
    return 422 if form.errors else 200
