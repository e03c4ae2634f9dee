"""The public page `/status/`: whether targets respond, how long queues are, and incidents."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.people import get_person
from core.accounts.sessions import SessionStore
from core.jobs.models import Incident
from core.jobs.services import report_incident
from core.web.htmx import get_form_status
from dynabench.operations.watching.facts import (
    CACHE_KEY,
    Facts,
    count_facts,
    find_paused_targets,
    read_last_facts,
)
from dynabench.operations.watching.forms import IncidentForm
from dynabench.operations.watching.metrics import DATABASE_ERRORS

KIND_WORDS = {
    "submission": gettext_lazy("Checks of submitted models"),
    "evaluationrun": gettext_lazy("Evaluations"),
    "trainingrun": gettext_lazy("Training runs"),
    "adversaryrun": gettext_lazy("Runs of adversaries"),
    "dataset": gettext_lazy("Datasets"),
}
"""The names of the kinds of jobs that people wait for."""


@login_not_required
@require_safe
def show_site_status(request: HttpRequest) -> HttpResponse:
    """Show the state of the site, or the last known state if the database is down."""
    is_away = False
    try:
        facts: Facts | None = count_facts()
    except DATABASE_ERRORS:
        facts, is_away = read_last_facts(), True
        request.user, request.session = AnonymousUser(), SessionStore()  # nobody can be looked up
    values: dict[str, Any] = {"is_away": is_away, "is_up": False}
    if facts:
        values |= _build_public_values(facts)
        values["is_up"] = not (is_away or values["open_incidents"] or values["is_model_down"])
    return render(request, "watching/status.html", values)


def _build_public_values(facts: Facts) -> dict[str, Any]:
    """Return the template's values with the public part of the state.

    Visible tasks are named, but not their targets.
    """
    paused_ids = find_paused_targets(facts)
    names: dict[str, str] = {}
    failing_codes: set[str] = set()
    for target in facts.targets:
        if target.is_public:
            names[target.code] = target.task
        # A target without an address is served by our model server.
        if target.pk in paused_ids or (facts.is_server_away and not target.url):
            failing_codes.add(target.code)
    return {
        "found": facts,
        "open_incidents": [note for note in facts.incidents if note.ended_at is None],
        "past_incidents": [note for note in facts.incidents if note.ended_at],
        "is_model_down": bool(failing_codes & names.keys()),
        "tasks": [(name, code in failing_codes) for code, name in names.items()],
        "jobs": [(words, facts.jobs[kind]) for kind, words in KIND_WORDS.items()],
    }


@require_http_methods(["GET", "POST"])
def publish_incident(request: HttpRequest) -> HttpResponse:
    """Report an incident, or update the open one. Administrators only."""
    if not request.user.is_superuser:
        raise Http404
    open_incident = Incident.objects.filter(ended_at=None).first()
    initial = {}
    if open_incident:
        initial = {"title": open_incident.title, "text": open_incident.text}
    form = IncidentForm(request.POST or None, initial=initial)
    if form.is_valid():
        report_incident(actor=get_person(request), incident=open_incident, **form.cleaned_data)
        # The note is among the facts, which would be shown for a minute without it.
        cache.delete(CACHE_KEY)
        messages.success(request, _("Incident published."))
        return redirect("status")
    values = {"form": form, "told": open_incident}
    return render(request, "watching/incident.html", values, status=get_form_status(form))
