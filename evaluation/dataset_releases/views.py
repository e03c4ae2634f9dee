"""The page on which an owner releases a round, and the public page with its data."""

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.people import person
from core.text.markdown import render_markdown
from core.web.downloads import lines
from core.web.htmx import form_status, render_page
from core.web.refusals import as_form_error, as_message
from evaluation.dataset_releases.cards import make_bibtex
from evaluation.dataset_releases.page import ReleasePage
from evaluation.dataset_releases.reading import export_lines, find_dataset_file
from evaluation.dataset_releases.services import request_release
from evaluation.dataset_releases.stored_files import open_checked
from evaluation.dataset_releases.tools import export_for_tool
from evaluation.dataset_releases.undo_services import (
    FINAL_REASONS,
    find_final_reasons,
    note_download,
    undo_release,
)
from evaluation.models import Dataset
from tasks.access import find_task
from tasks.formats import TOOL_FORMATS, build_file_name
from tasks.models import Round
from tasks.permissions import can_own, can_read, can_take

Done = Dataset.State.DONE
KINDS = {"csv": "text/csv", "json": "application/json", "jsonl": "application/jsonl"}


@require_http_methods(["GET", "POST"])
def release(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show a forecast of the release, the form that requests it, and its progress. Owners only.

    Only the button that states the number of rows requests the release.
    """
    task = find_task(request, code, can_own)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    # Few rows: a version is made for each withdrawal at most.
    datasets = list(round.datasets.order_by("version"))
    last = datasets[-1] if datasets else None
    values: dict[str, Any] = {"task": task, "round": round, "last": last}
    if last is None or last.is_over:
        versions = [dataset for dataset in datasets if dataset.state == Done]
        page = ReleasePage(round, versions, request.POST if request.method == "POST" else None)
        if page.is_confirmed and _request_release(request, round, page):
            return redirect("evaluation:release", code=code, number=number)
        values |= page.values
    status = form_status(values.get("form"))
    return render_page(request, "evaluation/release.html", values, part="release", status=status)


def _request_release(request: HttpRequest, round: Round, page: ReleasePage) -> bool:
    """Request the release. Return False if it was refused; the form then shows the reason."""
    url = reverse("evaluation:datasets", args=[round.task.code, round.number])
    options = page.options(request.build_absolute_uri(url))
    with as_form_error(page.form):
        request_release(round=round, options=options, actor=person(request))
    return not page.form.errors


@require_http_methods(["GET", "POST"])
def undo(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Ask for confirmation, then undo a release that nobody has used. Owners only."""
    task = find_task(request, code, can_own)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    if request.method == "POST":
        with as_message(request):
            undo_release(round=round, actor=person(request))
            message = _("The release of round %(number)d was undone. The round is closed.")
            messages.success(request, message % {"number": number})
        return redirect("evaluation:release", code=code, number=number)
    first_dataset = round.datasets.filter(state=Done).order_by("version").first()
    if first_dataset is None:
        return redirect("evaluation:release", code=code, number=number)
    reasons = [_(FINAL_REASONS[reason]) for reason in find_final_reasons(first_dataset)]
    values = {"task": task, "round": round, "dataset": first_dataset, "reasons": reasons}
    return render(request, "evaluation/release_undo.html", values)


@login_not_required
@require_safe
def datasets(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the versions of a round's dataset, newest first, to everybody who may download them."""
    task = find_task(request, code, can_take)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    is_member = can_read(request.user, task)
    done = round.datasets.filter(state=Done).prefetch_related("files").order_by("-version")
    url = request.build_absolute_uri()
    versions = [_describe_version(dataset, url, is_member) for dataset in done]
    values = {"task": task, "round": round, "versions": versions}
    if versions:
        newest_dataset = versions[0]["dataset"]
        values |= {
            "card": _sections(_read_card(newest_dataset)),
            "description": render_markdown(newest_dataset.options["description"]),
        }
    return render(request, "evaluation/datasets.html", values)


def _describe_version(dataset: Dataset, url: str, is_member: bool) -> dict[str, Any]:
    files = [file for file in dataset.files.all() if file.is_public or is_member]
    # This digest pins all other files, so the citation needs no other.
    digest = next(file.sha256 for file in files if file.name == "SHA256SUMS")
    return {"dataset": dataset, "files": files, "bibtex": make_bibtex(dataset, url, digest)}


def _read_card(dataset: Dataset) -> Mapping[str, Any]:
    """Return the BenchmarkCard as it was released."""
    stored = {file.name: file for file in dataset.files.all()}
    with open_checked(stored["benchmark_card.json"]) as file:
        card: Mapping[str, Mapping[str, Any]] = json.load(file)
    return card["benchmark_card"]


def _sections(card: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Return the card's sections, each with its entries as texts."""
    sections = []
    for title, entries in card.items():
        filled = [(_in_words(name), _as_list(value)) for name, value in entries.items() if value]
        sections.append((_in_words(title), filled))
    return sections


def _in_words(name: str) -> str:
    words = name.replace("_", " ")
    return words.capitalize() if words.islower() else words


def _as_list(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        entries = []
        for name, entry in value.items():
            entries.append(f"{_in_words(name)}: {entry}")
        return entries
    return value if isinstance(value, list) else [value]


@login_not_required
@require_safe
def dataset_file(
    request: HttpRequest, code: str, number: int, version: int, name: str
) -> FileResponse:
    """Send a file of a version, unchanged."""
    file = find_dataset_file(request, code, number, version, name)
    stored_file = open_checked(file)
    # Before the first byte is sent: the release may have been undone since the file was found.
    if request.method == "GET" and not note_download(file.dataset):
        raise Http404
    return FileResponse(stored_file, as_attachment=True, filename=name)


@require_safe
def export(request: HttpRequest, code: str, number: int) -> StreamingHttpResponse:
    """Stream all examples of a round that were not withdrawn as JSON lines. Members only."""
    round = _round_to_read(request, code, number)
    return lines(export_lines(round), f"{code}-round{number}.jsonl")


@require_safe
def export_for(
    request: HttpRequest, code: str, number: int, tool: str
) -> StreamingHttpResponse | HttpResponseRedirect:
    """Stream the same examples as `export` in the format of another annotation tool."""
    round = _round_to_read(request, code, number)
    if tool not in TOOL_FORMATS:
        raise Http404
    with as_message(request):
        pieces = export_for_tool(round, tool)
        name = build_file_name(f"{code}-round{number}", tool)
        return lines(pieces, name, KINDS[name.rpartition(".")[2]])
    return redirect("own:rounds", code)


def _round_to_read(request: HttpRequest, code: str, number: int) -> Round:
    task = find_task(request, code, can_read)
    return get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
