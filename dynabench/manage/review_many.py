"""A task's examples by filters, and actions on many: accept, reject, send back, tag."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import BooleanField, ExpressionWrapper
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from annotation.models import Example
from annotation.selectors import prefetch_outputs
from core.accounts.people import get_person, get_shown_name
from core.errors import Refused
from core.web.htmx import get_form_status
from core.web.lists import AFTER_PARAMETER, read_after, select_rows_after
from dynabench.manage.selectors import summarise_inputs
from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import can_review
from validation.decisions.bulk_forms import BulkActionForm, find_named_examples
from validation.decisions.bulk_services import (
    Action,
    ActionResult,
    apply_action,
    count_matched,
    find_still_matched,
    undo_action,
)
from validation.decisions.filter_forms import STATE_WORDS, FilterForm
from validation.models import Consensus

PAGE_SIZE = 50
MAX_NAMED_EXAMPLES = 5
"""The maximum number of unchanged examples that a message names."""
State = Consensus.State
OWNER_WORDS = {
    "valid": gettext_lazy("Confirmed by an owner"),
    "not-valid": gettext_lazy("Not confirmed (owner's decision)"),
    "no-consensus": gettext_lazy("No consensus (owner's decision)"),
    "sent-back": gettext_lazy("Sent back to the author by an owner"),
}


@dataclass(frozen=True)
class ExampleRow:
    """A row of the table of examples.

    state: the state as text. state_code: the filter's name of the state.
    """

    example: Example
    text: str
    author_answer: str
    model_answers: Sequence[str]
    state: str
    state_code: str
    is_decided_by_owner: bool
    votes: int
    author: str


class ActionForm(forms.Form):
    """A form for the id of the person's last action, with which it can be undone."""

    # The id of an action as its log entry has it.
    run = forms.RegexField(r"^[0-9a-f]{32}$", required=False)


@require_http_methods(["GET", "POST"])
def show_examples(request: HttpRequest, code: str) -> HttpResponse:
    """Show the examples that match the filters. A POST acts on the selected ones."""
    task = find_task(request, code, can_review)
    # From the address also for a POST, which so acts on what the person has seen.
    filters = FilterForm(task, request.GET)
    if request.method == "GET" or not filters.is_valid():
        return _show_page(request, task, filters)
    form = BulkActionForm(request.POST)
    try:
        if run := request.POST.get("undo"):
            bulk_result = undo_action(task=task, actor=get_person(request), run=run[:32])
        elif form.is_valid():
            example_ids = _read_selected_ids(request, task, filters)
            bulk_result = apply_action(
                task=task,
                examples=example_ids,
                actor=get_person(request),
                request=form.requested_action,
            )
        else:
            return _show_page(request, task, filters, form)
    except Refused as error:
        return _show_page(request, task, filters, form, error)
    return _report_result(request, task, filters, bulk_result)


def _read_selected_ids(request: HttpRequest, task: Task, filters: FilterForm) -> list[int]:
    """Return the ids of the selected examples. Raises Refused.

    If all matching examples are selected, returns those on other pages, too.
    """
    # All that match, also on other pages, if they are still those that the page counted.
    if token := request.POST.get("everything"):
        return find_still_matched(filters.select_examples(), token)
    return find_named_examples(task, request.POST.getlist("example"))


def _report_result(
    request: HttpRequest, task: Task, filters: FilterForm, bulk_result: ActionResult
) -> HttpResponse:
    """Redirect to the list, with a message about how many examples changed.

    The message also says which ones did not change, and why.
    """
    if bulk_result.changed:
        message = ngettext(
            # Translators: action: the name of a button, such as Confirm
            "%(action)s: %(number)d example.",
            "%(action)s: %(number)d examples.",
            bulk_result.changed,
        )
        words = {"action": bulk_result.action.label, "number": bulk_result.changed}
        messages.success(request, message % words)
    names_by_reason: dict[str, list[str]] = defaultdict(list)
    for untouched in bulk_result.left:
        # The first digits of the UUID, as the table shows them.
        names_by_reason[untouched.reason].append(str(untouched.example)[:8])
    for reason, names in names_by_reason.items():
        message = ngettext("Unchanged: %(number)d.", "Unchanged: %(number)d.", len(names))
        shown_names = ", ".join(names[:MAX_NAMED_EXAMPLES])
        if len(names) > MAX_NAMED_EXAMPLES:
            shown_names += " …"
        messages.warning(request, f"{message % {'number': len(names)}} {reason} ({shown_names})")
    query_values = dict(filters.set_filters)
    if after := read_after(request):
        query_values[AFTER_PARAMETER] = after
    if bulk_result.changed:
        query_values["run"] = bulk_result.run  # the page offers to undo it
    query = urlencode(query_values)
    return redirect(f"{reverse('own:review-examples', args=[task.code])}?{query}")


def _read_action_id(request: HttpRequest) -> str:
    """Return the id of the last action in the query string; "" if absent or invalid."""
    form = ActionForm(request.GET)
    form.is_valid()
    return str(form.cleaned_data.get("run", ""))


def _show_page(
    request: HttpRequest,
    task: Task,
    filters: FilterForm,
    form: BulkActionForm | None = None,
    error: Refused | None = None,
) -> HttpResponse:
    is_valid = filters.is_valid()
    values: dict[str, Any] = {
        "task": task,
        "filters": filters,
        "form": form or BulkActionForm(),
        "query": "",
        "said": str(error or ""),
        "picked": set(request.POST.getlist("example")),
        # An action leaves alone what others have decided since this moment.
        "looked_at": timezone.now().isoformat(),
        "run": _read_action_id(request),
        "actions": Action,
    }
    if is_valid:
        values["query"] = urlencode(filters.set_filters)
        values |= _list_matching_rows(request, task, filters)
    status = get_form_status(filters, form)
    if error:
        status = error.status
    return render(request, "own/review_many.html", values, status=status)


def _list_matching_rows(request: HttpRequest, task: Task, filters: FilterForm) -> dict[str, Any]:
    """Return the template's values for a page of the examples that match the filters."""
    matching_examples = filters.select_examples()
    rows = matching_examples.select_related("round", "annotator", "consensus")
    # One condition for all rows in place of a query for each.
    rows = rows.annotate(waits=ExpressionWrapper(filters.waiting_condition, BooleanField()))
    page = select_rows_after(
        request, rows.prefetch_related("tags", prefetch_outputs()), size=PAGE_SIZE
    )
    return {
        "matched": count_matched(matching_examples),
        "rows": [_build_row(task, example) for example in page],
        # Most tasks have no tags, so for them the column would be empty.
        "has_tags": any(example.tags.all() for example in page),
        "page": page,
    }


def _build_row(task: Task, example: Example) -> ExampleRow:
    config = task.config
    name = config.answer_field
    consensus: Consensus | None = getattr(example, "consensus", None)
    author_answer = ""
    if name in example.inputs:
        author_answer = config.display(name, example.inputs[name])
    model_answers = []
    for output in example.target_outputs.all():
        model_answers.append(config.display(name, output.output.get(name)))
    return ExampleRow(
        example=example,
        text=summarise_inputs(config, example.inputs).text,
        author_answer=author_answer,
        model_answers=model_answers,
        state=describe_state(
            find_example_state(example, consensus), is_decided_by_owner(consensus)
        ),
        state_code=find_example_state(example, consensus),
        is_decided_by_owner=is_decided_by_owner(consensus),
        votes=consensus.votes if consensus else 0,
        author=get_shown_name(example.annotator),
    )


def find_example_state(example: Any, consensus: Consensus | None) -> str:
    """Return an example's state: one of the filter's states.

    example: annotated with `waits`, whether it waits for judges.
    """
    if example.retracted_at:
        return "withdrawn"
    if consensus is None or consensus.state == State.UNDECIDED:
        return "waiting" if example.waits else "kept"
    if consensus.is_sent_back:
        return "sent-back"
    if consensus.state == State.NO_CONSENSUS:
        return "no-consensus"
    return "valid" if consensus.is_verified else "not-valid"


def is_decided_by_owner(consensus: Consensus | None) -> bool:
    return consensus is not None and consensus.decided_by == Consensus.DecidedBy.OWNER


def describe_state(state: str, is_by_owner: bool) -> str:
    """Return a state as text, with a note if an owner decided."""
    words = dict(STATE_WORDS) | (OWNER_WORDS if is_by_owner else {})
    return str(words[state])
