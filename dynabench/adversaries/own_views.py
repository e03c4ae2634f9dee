"""The pages on which a task's owners create, start and stop adversaries, and read what they did."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person, get_public_name
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.adversaries import services
from dynabench.adversaries.access import find_runnable_adversary
from dynabench.adversaries.board import build_board
from dynabench.adversaries.fit import (
    can_run_adversaries,
    find_unfit_reason,
    list_fitting_kinds,
    list_lacking_kinds,
)
from dynabench.adversaries.forms import AdversaryForm, OptionsForm, TryFilter
from dynabench.adversaries.kinds.base import KINDS, AdversaryKind, Setting
from dynabench.adversaries.models import Adversary, AdversaryTry
from dynabench.adversaries.ready_services import list_ready_adversaries, start_ready_adversaries
from dynabench.adversaries.selectors import (
    describe_budget,
    find_allowed_image,
    find_current_run,
    find_waiting_image,
    with_last_run,
)
from dynabench.adversaries.spot_services import count_spot_uses
from dynabench.adversaries.transfer_selectors import (
    build_transfer_rows,
    can_transfer,
    find_last_check,
)
from dynabench.adversaries.transfer_services import request_transfer_check, stop_transfer_check
from tasks.access import find_task
from tasks.models import Task


def _find_adversary(request: HttpRequest, code: str, pk: int) -> tuple[Task, Adversary]:
    """Return the task and its adversary. Raises Http404 and PermissionDenied."""
    task = find_task(request, code, can_run_adversaries)
    return task, get_object_or_404(task.adversaries.select_related("task"), pk=pk)


@require_safe
def list_adversaries(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's adversaries with their last runs, and the board."""
    task = find_task(request, code, can_run_adversaries)
    board = build_board(task)
    values = {
        "task": task,
        "page": list_page(request, with_last_run(task.adversaries.all())),
        "kinds": list_fitting_kinds(task),
        "ready": list_ready_adversaries(task),
        "lacking_kinds": list_lacking_kinds(task),
        "unfit_reason": find_unfit_reason(task),
        "board": board,
        # Before the first decision all of its columns are empty.
        "is_board_decided": any(row.catches or row.refuted for row in board),
        "has_catches": can_transfer(task.config) and any(row.catches for row in board),
        "transfer": build_transfer_rows(task),
        "transfer_check": find_last_check(task),
    }
    return render(request, "own/adversaries.html", values)


@require_POST
def start_ready(request: HttpRequest, code: str) -> HttpResponse:
    """Create and start the ready adversaries of an official task."""
    task = find_task(request, code, can_run_adversaries)
    with show_as_message(request):
        start_ready_adversaries(task=task, actor=get_person(request))
        messages.success(
            request, _("Ready adversaries started. Refresh this page to see them work.")
        )
    return redirect("own-adversaries:adversaries", code)


@require_POST
def start_transfer(request: HttpRequest, code: str) -> HttpResponse:
    """Queue a check of the board's catches on the task's other models."""
    task = find_task(request, code, can_run_adversaries)
    with show_as_message(request):
        request_transfer_check(task=task, actor=get_person(request))
        messages.success(request, _("Other models are being asked. Refresh this page for results."))
    return redirect("own-adversaries:adversaries", code)


@require_POST
def stop_transfer(request: HttpRequest, code: str) -> HttpResponse:
    """Stop the current check of catches on other models."""
    task = find_task(request, code, can_run_adversaries)
    with show_as_message(request):
        stop_transfer_check(task=task, actor=get_person(request))
        messages.success(request, _("Stopped. The answers so far stay."))
    return redirect("own-adversaries:adversaries", code)


@require_http_methods(["GET", "HEAD", "POST"])
def show_new_adversary(request: HttpRequest, code: str, kind: str) -> HttpResponse:
    """Show the form for a new adversary of a kind; POST creates it."""
    task = find_task(request, code, can_run_adversaries)
    chosen_kind = KINDS.get(kind)
    if chosen_kind is None:
        raise Http404
    data = request.POST if request.method == "POST" else None
    form = AdversaryForm(data, initial={"name": _(chosen_kind.title)})
    options_form = OptionsForm(chosen_kind, task, data, prefix="options")
    # Both are checked, so that all errors are shown at once.
    if data is not None and all([form.is_valid(), options_form.is_valid()]):
        with show_as_form_error(form), show_as_form_error(options_form):
            adversary = services.create_adversary(
                task=task,
                actor=get_person(request),
                kind=kind,
                options=options_form.cleaned_data,
                **form.cleaned_data,
            )
            messages.success(request, _describe_next_step(chosen_kind))
            return redirect("own-adversaries:adversary", code, adversary.pk)
    values = {"task": task, "kind": chosen_kind, "form": form, "options_form": options_form}
    status = get_form_status(form, options_form)
    return render(request, "own/adversary_form.html", values, status=status)


def _describe_next_step(kind: AdversaryKind) -> str:
    """Return what its owner does once an adversary of a kind exists."""
    if kind.is_container:
        return _("Adversary created. Now add its image, or send this page’s address to who does.")
    if kind.is_program:
        return _("Adversary created. Its program can claim a run now.")
    return _("Adversary created. Start its first run.")


@require_safe
def show_adversary(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show an adversary's settings, its runs with what is left of their budgets, and its log."""
    task, adversary = _find_adversary(request, code, pk)
    filters = TryFilter(request)
    tries = adversary.logged_tries.filter(**filters.chosen_values).select_related("example", "run")
    # None if the kind's package is no longer installed.
    kind, last_run = KINDS.get(adversary.kind), adversary.runs.first()
    values = {
        "task": task,
        "adversary": adversary,
        "kind": kind,
        "options": [] if kind is None else _list_options(adversary, kind),
        "run": find_current_run(adversary),
        "allowed_image": find_allowed_image(adversary),
        "waiting_image": find_waiting_image(adversary),
        "runs": list_page(request, adversary.runs.select_related("round"), name="runs"),
        "budget": describe_budget(last_run),
        "spots": count_spot_uses(last_run),
        "filters": filters,
        "states": _list_states(adversary, filters),
        "page": list_page(request, tries),
    }
    return render(request, "own/adversary.html", values)


def _list_states(adversary: Adversary, filters: TryFilter) -> list[tuple[str, str, int]]:
    """Return the states that the log can be filtered by: value, words and number of tries.

    States without a try would lead to empty pages. One query.
    """
    counts = Counter(
        dict(adversary.logged_tries.order_by().values_list("state").annotate(Count("pk")))
    )
    chosen = filters.chosen_values.get("state", "")
    states = [("", _("All"), counts.total())]
    states += [
        (state.value, _(state), counts[state])
        for state in AdversaryTry.State
        if counts[state] or state == chosen
    ]
    return states


def _list_options(adversary: Adversary, kind: AdversaryKind) -> list[tuple[Setting, Any]]:
    """Return a kind's settings as its form shows them, each with its value, without empty ones."""
    settings = kind.list_settings(is_talk=adversary.task.config.talk is not None)
    options = [(setting, _get_option(adversary, setting)) for setting in settings]
    return [(setting, value) for setting, value in options if value not in ("", None)]


def _get_option(adversary: Adversary, setting: Setting) -> Any:
    """Return a setting's value. An account is shown by its pseudonym, and never by its address."""
    if setting.kind == "account":
        return get_public_name(adversary.program_user)
    return adversary.options.get(setting.name)


@require_POST
def start_adversary(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Queue a run against the open round."""
    adversary = find_runnable_adversary(request, code, pk)
    with show_as_message(request):
        services.start_run(adversary=adversary, actor=get_person(request))
        messages.success(request, _("Run requested. Refresh this page to see how it goes."))
    # Whoever brings a program sees its image and its runs, and not the log of its texts.
    may_read = can_run_adversaries(get_person(request), adversary.task)
    return redirect(f"own-adversaries:{'adversary' if may_read else 'image'}", code, pk)


@require_POST
def stop_adversary(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Stop the current run, if there is one."""
    _task, adversary = _find_adversary(request, code, pk)
    if run := find_current_run(adversary):
        services.stop_run(run=run, actor=get_person(request))
        messages.success(request, _("Run stopped."))
    return redirect("own-adversaries:adversary", code, pk)


@require_POST
def change_schedule(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Switch nightly runs on or off."""
    _task, adversary = _find_adversary(request, code, pk)
    # The button says which state is wanted, so that a second click changes nothing.
    is_nightly = request.POST.get("nightly") == "1"
    with show_as_message(request):
        services.set_schedule(adversary=adversary, actor=get_person(request), is_nightly=is_nightly)
        messages.success(
            request, _("Nightly runs turned on.") if is_nightly else _("Nightly runs turned off.")
        )
    return redirect("own-adversaries:adversary", code, pk)


@require_POST
def retire_own_adversary(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Retire an adversary."""
    _task, adversary = _find_adversary(request, code, pk)
    services.retire_adversary(adversary=adversary, actor=get_person(request))
    messages.success(request, _("Adversary retired. Its examples and its log stay."))
    return redirect("own-adversaries:adversaries", code)
