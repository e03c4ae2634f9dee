"""A round's policy: owners see what another policy would decide, and apply it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.models import Example
from core.accounts.models import LogEntry
from core.accounts.people import get_person
from core.web.htmx import get_form_status, render_page
from core.web.lists import list_page
from dynabench.manage.access import find_owned_round
from dynabench.manage.selectors import describe_decision, read_inputs_by_example
from tasks.access import require_permission
from tasks.models import Round
from tasks.permissions import can_edit, can_read
from validation.consensus.consensus import Policy
from validation.decisions import services
from validation.decisions.consensus_rows import get_policy
from validation.decisions.policy_forms import PolicyForm
from validation.decisions.policy_preview import (
    Preview,
    describe_policy,
    is_too_large,
    preview_policy,
)
from validation.decisions.replay import ExampleStatus
from validation.statistics.definitions import DEFINITIONS

PAGE_SIZE = 20
"""The number of former policies on a page."""


@require_http_methods(["GET", "POST"])
def show_policy(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the policy, and what the policy in the query string would change.

    A POST applies the submitted policy.
    """
    round = find_owned_round(request, code, number, can_edit)
    require_permission(request.user, round.task, can_read)  # it shows what votes would decide
    if request.method == "POST":
        return _apply_policy(request, round)
    if "rule" not in request.GET:
        current_policy = get_policy(round)
        initial = {
            name: getattr(current_policy, name) for name in ("rule", "needed", "of", "threshold")
        }
        return _show_policy(request, round, PolicyForm(round, initial=initial))
    form = PolicyForm(round, request.GET)
    return _show_policy(request, round, form, status=get_form_status(form))


def _apply_policy(request: HttpRequest, round: Round) -> HttpResponse:
    form = PolicyForm(round, request.POST)
    if not form.is_valid():
        return _show_policy(request, round, form, status=422)
    try:
        changed_count = services.apply_policy(
            round=round, owner=get_person(request), policy=form.policy
        )
    except services.RoundReleased as error:  # the page says so above the form
        return _show_policy(request, round, form, status=error.status)
    if changed_count is None:  # too many votes for a request
        message = _(
            "Round %(number)d has a new rule. We're counting the votes again. Check "
            "back in a few minutes."
        )
    else:
        message = _("Round %(number)d has a new rule. Changed examples: %(changed)d.")
    messages.success(request, message % {"number": round.number, "changed": changed_count})
    return redirect("own:policy", code=round.task.code, number=round.number)


def _show_policy(
    request: HttpRequest, round: Round, form: PolicyForm, *, status: int = 200
) -> HttpResponse:
    entries = LogEntry.objects.filter(action="policy.changed", target=str(round))
    page = list_page(request, entries.select_related("actor__annotator"), size=PAGE_SIZE)
    values: dict[str, Any] = {
        "task": round.task,
        "round": round,
        "form": form,
        "in_force": describe_policy(get_policy(round)),
        "released": round.state == Round.State.RELEASED,
        "former": [_describe_former_policy(entry) for entry in page],
        "page": page,
    }
    if form.is_bound and form.is_valid():
        values["chosen"] = describe_policy(form.policy)
        values["too_many"] = is_too_large(round)
        if not values["too_many"]:
            values.update(_build_preview_values(round, preview_policy(round, form.policy)))
    return render_page(request, "own/policy.html", values, block_name="work", status=status)


def _describe_former_policy(entry: LogEntry) -> tuple[LogEntry, str, str]:
    """Return (log entry of a former policy, the policy as text, the query string that shows it)."""
    query = {name: value or "" for name, value in entry.data.items()}  # None: left empty
    return entry, describe_policy(Policy(**entry.data)), urlencode(query)


def _build_preview_values(round: Round, change: Preview) -> dict[str, Any]:
    """Return the template's values for the preview of a policy."""
    rate_titles = {
        name: _(DEFINITIONS[name].title)
        for name in ("vmer", "fooled_of_decided", "verified_of_judged")
    }
    # Two queries for all shown examples.
    examples = Example.objects.in_bulk(change.first)
    inputs = read_inputs_by_example(round.task, change.first)
    config = round.task.config

    def describe_status(pk: int, status: ExampleStatus) -> str:
        answer, state = describe_decision(config, status, examples[pk]), _(status.words)
        if not answer:
            return state
        return f"{state}: {answer}"

    rates = []
    for key, name in rate_titles.items():
        rates.append((key, name, change.before[key], change.after[key]))
    first_examples = []
    for pk, (old_status, new_status) in change.first.items():
        first_examples.append(
            (
                examples[pk],
                inputs[pk],
                describe_status(pk, old_status),
                describe_status(pk, new_status),
            )
        )
    return {
        "preview": change,
        "rates": rates,
        "transitions": change.transitions.most_common(),
        "first": first_examples,
    }
