"""How the votes of a round decide: owners see what another policy would change, and apply it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.models import Example
from core.accounts.models import LogEntry
from core.accounts.people import person
from core.web.htmx import form_status, render_page
from core.web.lists import list_page
from dynabench.manage.access import find_owned_round
from dynabench.manage.selectors import describe_decision, read_texts_by_example
from tasks.access import require_permission
from tasks.models import Round
from tasks.permissions import can_edit, can_read
from validation.consensus.consensus import Policy
from validation.decisions import services
from validation.decisions.consensus_rows import policy_of
from validation.decisions.policy_forms import PolicyForm
from validation.decisions.policy_preview import Preview, in_words, is_too_large, preview
from validation.decisions.replay import ExampleStatus

PAGE_SIZE = 20
"""Former policies of a round on a page."""


@require_http_methods(["GET", "POST"])
def policy(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the policy, and the effect of the policy in the query string. A POST applies it."""
    round = find_owned_round(request, code, number, can_edit)
    require_permission(request.user, round.task, can_read)  # it shows what votes would decide
    if request.method == "POST":
        return _apply(request, round)
    if "rule" not in request.GET:
        now = policy_of(round)
        initial = {name: getattr(now, name) for name in ("rule", "needed", "of", "threshold")}
        return _show(request, round, PolicyForm(round, initial=initial))
    form = PolicyForm(round, request.GET)
    return _show(request, round, form, status=form_status(form))


def _apply(request: HttpRequest, round: Round) -> HttpResponse:
    form = PolicyForm(round, request.POST)
    if not form.is_valid():
        return _show(request, round, form, status=422)
    try:
        changed_count = services.apply_policy(
            round=round, owner=person(request), policy=form.policy
        )
    except services.RoundReleased as error:  # the page says so above the form
        return _show(request, round, form, status=error.status)
    if changed_count is None:  # too many votes for a request
        message = _(
            "Round %(number)d has a new policy. A worker counts its votes again; look at the "
            "numbers in some minutes."
        )
    else:
        message = _("Round %(number)d has a new policy. Examples that changed: %(changed)d.")
    messages.success(request, message % {"number": round.number, "changed": changed_count})
    return redirect("own:policy", code=round.task.code, number=round.number)


def _show(
    request: HttpRequest, round: Round, form: PolicyForm, *, status: int = 200
) -> HttpResponse:
    entries = LogEntry.objects.filter(action="policy.changed", target=str(round))
    page = list_page(request, entries.select_related("actor__annotator"), size=PAGE_SIZE)
    values: dict[str, Any] = {
        "task": round.task,
        "round": round,
        "form": form,
        "in_force": in_words(policy_of(round)),
        "released": round.state == Round.State.RELEASED,
        "former": [_describe_former_policy(entry) for entry in page],
        "page": page,
    }
    if form.is_bound and form.is_valid():
        values["chosen"] = in_words(form.policy)
        values["too_many"] = is_too_large(round)
        if not values["too_many"]:
            values.update(_build_preview_values(round, preview(round, form.policy)))
    return render_page(request, "own/policy.html", values, part="work", status=status)


def _describe_former_policy(entry: LogEntry) -> tuple[LogEntry, str, str]:
    """Return (log entry of a former policy, the policy in words, the query string to show it)."""
    query = {name: value or "" for name, value in entry.data.items()}  # None: left empty
    return entry, in_words(Policy(**entry.data)), urlencode(query)


def _build_preview_values(round: Round, change: Preview) -> dict[str, Any]:
    """Return the template's values for a preview."""
    names = {"vmer": "vMER", "fooled_of_decided": _("Share over decided")}
    names["verified_of_judged"] = _("Confirmed share")
    # Two queries for all shown examples.
    examples = Example.objects.in_bulk(change.first)
    texts = read_texts_by_example(round.task, change.first)
    config = round.task.config

    def words(pk: int, status: ExampleStatus) -> str:
        answer, state = describe_decision(config, status, examples[pk]), _(status.words)
        if not answer:
            return state
        return f"{state}: {answer}"

    rates = []
    for key, name in names.items():
        rates.append((key, name, change.before[key], change.after[key]))
    first_examples = []
    for pk, (old, new) in change.first.items():
        first_examples.append((examples[pk], texts[pk], words(pk, old), words(pk, new)))
    return {
        "preview": change,
        "rates": rates,
        "transitions": change.transitions.most_common(),
        "first": first_examples,
    }
