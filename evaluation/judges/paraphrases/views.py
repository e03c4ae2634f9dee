"""The page on which a task's editors request paraphrases of a set and check them."""

from functools import partial
from itertools import islice

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.models import User
from core.web.htmx import get_form_status
from core.web.lists import RowStream, list_page
from core.web.refusals import show_as_form_error, show_as_message
from evaluation.contract import SetRow
from evaluation.judges.paraphrases.forms import ParaphraseForm
from evaluation.judges.paraphrases.selectors import (
    count_by_state,
    iterate_current_paraphrases,
    make_pair_to_check,
)
from evaluation.judges.paraphrases.services import (
    create_paraphrased_version,
    decide_paraphrases,
    request_paraphrases,
)
from evaluation.models import EvaluationSet, EvaluationSetVersion, Paraphrase
from evaluation.test_sets.selectors import find_latest_version
from tasks.access import find_task_and_editor

State = Paraphrase.State
PAGE_SIZE = 10
"""The number of paraphrases on a page."""
SHOWN_STATES = (State.WAITING, State.KEPT, State.REFUSED)


def _find_set(request: HttpRequest, code: str, name: str) -> tuple[EvaluationSet, User]:
    task, user = find_task_and_editor(request, code)
    return get_object_or_404(task.evaluation_sets.select_related("task"), name=name), user


@require_http_methods(["GET", "POST"])
def show_paraphrases(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Show the last job with its results, the next paraphrases to check, and the request form.

    On POST, request paraphrases.
    """
    evaluation_set, user = _find_set(request, code, name)
    task = evaluation_set.task
    form = ParaphraseForm(task, request.POST or None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            request_paraphrases(evaluation_set=evaluation_set, actor=user, **form.cleaned_data)
            return redirect("evaluation:paraphrases", code=code, name=name)
    version, counts = find_latest_version(evaluation_set), count_by_state(evaluation_set)
    state = State.WAITING
    if request.GET.get("state") in SHOWN_STATES:
        state = State(request.GET["state"])
    page, items, version_count = None, [], 0
    if version:
        pairs = RowStream(partial(_list_pairs, version, state))
        page = list_page(request, pairs, size=PAGE_SIZE)
        items = [make_pair_to_check(task.config, paraphrase, row) for paraphrase, row in page]
        # Paraphrases in the version are final; the page states their number.
        version_count = version.paraphrases.count()
    values = {
        "task": task,
        "one": evaluation_set,
        "form": form,
        "version": version,
        "numbers": [(listed_state, counts[listed_state]) for listed_state in State],
        "listed": SHOWN_STATES,
        "shown": state,
        "page": page,
        "items": items,
        "in_version": version_count,
        "job": evaluation_set.paraphrasings.select_related("target").first(),
    }
    status = get_form_status(form)
    return render(request, "evaluation/paraphrases.html", values, status=status)


def _list_pairs(
    version: EvaluationSetVersion, state: State, start: int, end: int
) -> list[tuple[Paraphrase, SetRow]]:
    """Return the paraphrases in a state with their examples, from index `start` up to `end`."""
    return list(islice(iterate_current_paraphrases(version, state), start, end))


@require_POST
def store_paraphrase_decisions(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Store the decisions on the paraphrases of a page."""
    evaluation_set, user = _find_set(request, code, name)
    decisions = _read_decisions(request.POST)
    count = decide_paraphrases(evaluation_set=evaluation_set, decisions=decisions, actor=user)
    message = ngettext("%(number)d paraphrase checked.", "%(number)d paraphrases checked.", count)
    messages.success(request, message % {"number": count})
    return redirect("evaluation:paraphrases", code=code, name=name)


def _read_decisions(form_data: QueryDict) -> dict[str, list[int]]:
    """Return the ids of accepted and of refused paraphrases. Unknown form fields are ignored."""
    decisions: dict[str, list[int]] = {State.KEPT: [], State.REFUSED: []}
    for name, state in form_data.items():
        pk = name.removeprefix("paraphrase-")
        # Longer numbers cannot be ids, and the database refuses them.
        if pk != name and pk.isdecimal() and len(pk) < 18 and state in decisions:
            decisions[str(state)].append(int(pk))
    return decisions


@require_POST
def create_version(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Create the next version of the set, with the accepted paraphrases."""
    evaluation_set, user = _find_set(request, code, name)
    with show_as_message(request):
        version = create_paraphrased_version(evaluation_set=evaluation_set, actor=user)
        messages.success(request, _("%(version)s created.") % {"version": version})
        return redirect("evaluation:set", code=code, name=name)
    return redirect("evaluation:paraphrases", code=code, name=name)
