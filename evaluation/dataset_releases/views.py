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

from core.accounts.people import get_person
from core.text.markdown import render_markdown
from core.web.downloads import respond_with_lines
from core.web.htmx import get_form_status, render_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.dataset_releases.archives import check_files, stream_archive
from evaluation.dataset_releases.cards import make_bibtex
from evaluation.dataset_releases.loading_code import write_loading_code
from evaluation.dataset_releases.page import ReleasePage
from evaluation.dataset_releases.preference_pairs import (
    PAIR_FORMAT,
    contains_pairs,
    write_pair_lines,
)
from evaluation.dataset_releases.reading import (
    export_lines,
    find_dataset_file,
    find_dataset_files,
)
from evaluation.dataset_releases.samples import show_sample_rows
from evaluation.dataset_releases.services import request_release
from evaluation.dataset_releases.split_files import list_splits
from evaluation.dataset_releases.splits import HELD_SPLIT
from evaluation.dataset_releases.stored_files import open_checked_file
from evaluation.dataset_releases.tools import export_for_tool
from evaluation.dataset_releases.undo_services import (
    FINAL_REASONS,
    find_final_reasons,
    note_download,
    undo_release,
)
from evaluation.models import Dataset
from tasks.access import find_task
from tasks.formats import EXPORT_FORMATS, build_file_name
from tasks.models import Round
from tasks.permissions import can_download, can_own, can_read

DONE_STATE = Dataset.State.DONE
MEDIA_TYPE_BY_KIND = {"csv": "text/csv", "json": "application/json", "jsonl": "application/jsonl"}


@require_http_methods(["GET", "POST"])
def show_release(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show a forecast of the release, the form that requests it, and its progress. Owners only.

    Only the button that states the number of rows requests the release.
    """
    task = find_task(request, code, can_own)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    # There are few rows: at most one version per withdrawal.
    datasets = list(round.datasets.order_by("version"))
    last_dataset = datasets[-1] if datasets else None
    values: dict[str, Any] = {"task": task, "round": round, "last": last_dataset}
    if last_dataset is None or last_dataset.is_over:
        versions = [dataset for dataset in datasets if dataset.state == DONE_STATE]
        page = ReleasePage(round, versions, request.POST if request.method == "POST" else None)
        if page.is_confirmed and _request_release(request, round, page):
            return redirect("evaluation:release", code=code, number=number)
        values |= page.values
    status = get_form_status(values.get("form"))
    return render_page(
        request, "evaluation/release.html", values, block_name="release", status=status
    )


def _request_release(request: HttpRequest, round: Round, page: ReleasePage) -> bool:
    """Request the release; return whether it was accepted. If not, the form shows the reason."""
    url = reverse("evaluation:datasets", args=[round.task.code, round.number])
    options = page.build_options(request.build_absolute_uri(url))
    with show_as_form_error(page.form):
        request_release(round=round, options=options, actor=get_person(request))
    return not page.form.errors


@require_http_methods(["GET", "POST"])
def confirm_undo(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Ask for confirmation, then undo a release that nobody has used. Owners only."""
    task = find_task(request, code, can_own)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    if request.method == "POST":
        with show_as_message(request):
            undo_release(round=round, actor=get_person(request))
            message = _("Release of round %(number)d undone. The round is closed again.")
            messages.success(request, message % {"number": number})
        return redirect("evaluation:release", code=code, number=number)
    first_dataset = round.datasets.filter(state=DONE_STATE).order_by("version").first()
    if first_dataset is None:
        return redirect("evaluation:release", code=code, number=number)
    reasons = [_(FINAL_REASONS[reason]) for reason in find_final_reasons(first_dataset)]
    values = {"task": task, "round": round, "dataset": first_dataset, "reasons": reasons}
    return render(request, "evaluation/release_undo.html", values)


@login_not_required
@require_safe
def show_datasets(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the versions of a round's dataset, newest first, to everybody who may download them."""
    task = find_task(request, code, can_download)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    is_member = can_read(request.user, task)
    finished_datasets = (
        round.datasets.filter(state=DONE_STATE)
        .prefetch_related("files", "publications")
        .order_by("-version")
    )
    versions = [_describe_version(request, dataset, is_member) for dataset in finished_datasets]
    values = {"task": task, "round": round, "versions": versions}
    if versions:
        newest_dataset = versions[0]["dataset"]
        samples = show_sample_rows(request.user, newest_dataset)
        values |= {
            "samples": samples,
            "has_fooled_sample": any(sample.fooled for sample in samples),
            "card": _build_sections(_read_card(newest_dataset)),
            "description": render_markdown(newest_dataset.options["description"]),
        }
    return render(request, "evaluation/datasets.html", values)


def _describe_version(request: HttpRequest, dataset: Dataset, is_member: bool) -> dict[str, Any]:
    files = [file for file in dataset.files.all() if file.is_public or is_member]
    # This digest pins all other files, so the citation needs no other.
    digest = next(file.sha256 for file in files if file.name == "SHA256SUMS")
    publications = [one for one in dataset.publications.all() if one.published_at is not None]
    doi = next((one.doi for one in publications if one.doi), "")
    splits = list_splits(dataset, files)
    return {
        "dataset": dataset,
        "key": f"v{dataset.version}",  # tells the elements of several versions apart
        "files": files,
        "digest": digest,
        "splits": splits,
        # No file contains the rows that are held back.
        "total_rows": sum(split.rows for split in splits if split.name != HELD_SPLIT),
        "total_bytes": sum(file.size for file in files),
        "publications": publications,
        "loading_code": write_loading_code(request, dataset, files),
        "bibtex": make_bibtex(dataset, request.build_absolute_uri(), digest, doi),
    }


def _read_card(dataset: Dataset) -> Mapping[str, Any]:
    """Return the BenchmarkCard as it was released."""
    file_by_name = {file.name: file for file in dataset.files.all()}
    with open_checked_file(file_by_name["benchmark_card.json"]) as file:
        card: Mapping[str, Mapping[str, Any]] = json.load(file)
    return card["benchmark_card"]


def _build_sections(
    card: Mapping[str, Any],
) -> list[tuple[str, list[tuple[str, list[str]]], bool]]:
    """Return the card's sections: its title, its entries as texts, whether to read it first.

    Sections without entries are left out.
    """
    sections = []
    for title, entries in card.items():
        named_entries = [
            (_humanize_name(name), _ensure_list(value)) for name, value in entries.items() if value
        ]
        if named_entries:
            # Its limitations decide whether the data fits a purpose at all.
            is_first_read = "limitations" in entries
            sections.append((_humanize_name(title), named_entries, is_first_read))
    return sections


def _humanize_name(name: str) -> str:
    words = name.replace("_", " ")
    return words.capitalize() if words.islower() else words


def _ensure_list(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        entries = []
        for name, entry in value.items():
            entries.append(f"{_humanize_name(name)}: {entry}")
        return entries
    return value if isinstance(value, list) else [value]


@login_not_required
@require_safe
def send_dataset_file(
    request: HttpRequest, code: str, number: int, version: int, name: str
) -> FileResponse | StreamingHttpResponse:
    """Send a file of a version, unchanged, or the preferences in it in a `format`."""
    file = find_dataset_file(request, code, number, version, name)
    format, config = request.GET.get("format"), file.dataset.round.task.config
    if format is not None and not (format == PAIR_FORMAT and contains_pairs(name, config)):
        raise Http404
    stored_file = open_checked_file(file)
    # Before the first byte is sent: the release may have been undone since the file was found.
    if request.method == "GET" and not note_download(file.dataset):
        raise Http404
    if format is not None:
        pair_lines = write_pair_lines(stored_file, config)
        return respond_with_lines(pair_lines, f"{name.removesuffix('.jsonl')}-{format}.jsonl")
    return FileResponse(stored_file, as_attachment=True, filename=name)


@login_not_required
@require_safe
def stream_dataset_archive(
    request: HttpRequest, code: str, number: int, version: int
) -> StreamingHttpResponse:
    """Stream all files of a version that the reader may download, as one ZIP archive."""
    files = find_dataset_files(request, code, number, version)
    if not files:
        raise Http404
    # Before the first byte is sent: a damaged file could not be reported afterwards.
    check_files(files)
    if request.method == "GET" and not note_download(files[0].dataset):
        raise Http404
    name = str(files[0].dataset)
    return respond_with_lines(stream_archive(files, name), f"{name}.zip", "application/zip")


@require_safe
def export_round(request: HttpRequest, code: str, number: int) -> StreamingHttpResponse:
    """Stream all examples of a round that were not withdrawn as JSON lines. Members only."""
    round = _find_round_to_read(request, code, number)
    return respond_with_lines(export_lines(round), f"{code}-round{number}.jsonl")


@require_safe
def export_round_for_tool(
    request: HttpRequest, code: str, number: int, tool: str
) -> StreamingHttpResponse | HttpResponseRedirect:
    """Stream the same examples as `export_round` in the format of another annotation tool."""
    round = _find_round_to_read(request, code, number)
    if tool not in EXPORT_FORMATS:
        raise Http404
    with show_as_message(request):
        pieces = export_for_tool(round, tool)
        name = build_file_name(f"{code}-round{number}", tool)
        return respond_with_lines(pieces, name, MEDIA_TYPE_BY_KIND[name.rpartition(".")[2]])
    return redirect("own:rounds", code)


def _find_round_to_read(request: HttpRequest, code: str, number: int) -> Round:
    task = find_task(request, code, can_read)
    return get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
