"""`/status/`, for everybody: do targets answer, how long is the queue, what happened last."""

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

from core.accounts.people import person
from core.accounts.sessions import SessionStore
from core.jobs.models import Incident
from core.jobs.services import tell_incident
from core.web.htmx import form_status
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
    "trainingrun": gettext_lazy("Trainings"),
    "dataset": gettext_lazy("Datasets"),
}
"""Jobs for which people wait."""


@login_not_required
@require_safe
def site_status(request: HttpRequest) -> HttpResponse:
    """Show the state of the site, or the last known state if the database is down."""
    is_away = False
    try:
        site: Facts | None = count_facts()
    except DATABASE_ERRORS:
        site, is_away = read_last_facts(), True
        request.user, request.session = AnonymousUser(), SessionStore()  # nobody can be looked up
    values: dict[str, Any] = {"is_away": is_away}
    if site:
        values |= _build_public_values(site)
    return render(request, "watching/status.html", values)


def _build_public_values(site: Facts) -> dict[str, Any]:
    """Return the public part of the state: visible tasks by name, without their targets."""
    paused_ids = find_paused_targets(site)
    names: dict[str, str] = {}
    failing_codes: set[str] = set()
    for target in site.targets:
        if target.is_seen:
            names[target.code] = target.task
        # A target without an address is served by our model server.
        if target.pk in paused_ids or (site.is_server_away and not target.url):
            failing_codes.add(target.code)
    return {
        "found": site,
        "tasks": [(name, code in failing_codes) for code, name in names.items()],
        "jobs": [(words, site.jobs[kind]) for kind, words in KIND_WORDS.items()],
    }


@require_http_methods(["GET", "POST"])
def incident(request: HttpRequest) -> HttpResponse:
    """Report an incident, or update the open one. Administrators only."""
    if not request.user.is_superuser:
        raise Http404
    current = Incident.objects.filter(ended_at=None).first()
    initial = {}
    if current:
        initial = {"title": current.title, "text": current.text}
    form = IncidentForm(request.POST or None, initial=initial)
    if form.is_valid():
        tell_incident(actor=person(request), incident=current, **form.cleaned_data)
        # The note is among the facts, which would be shown for a minute without it.
        cache.delete(CACHE_KEY)
        messages.success(request, _("Everybody reads it now."))
        return redirect("status")
    values = {"form": form, "told": current}
    return render(request, "watching/incident.html", values, status=form_status(form))
