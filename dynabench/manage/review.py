"""The review queue: a sample of judged examples and all disagreements, for an expert's decision."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.models import Example
from annotation.moderation import withdraw_example
from core.accounts.people import get_person
from core.errors import Refused
from core.web.htmx import get_form_status, is_htmx_partial, render_page
from core.web.lists import ListFilter, build_page_after, read_after
from dynabench.manage.access import find_owned_task
from dynabench.manage.criteria import list_judge_columns
from dynabench.manage.selectors import build_case_file, read_inputs_by_example
from tasks.models import Task
from tasks.permissions import can_edit
from validation.decisions.review_queue import PAGE_SIZE, Kind, ReviewPage, get_review_page
from validation.decisions.services import override_consensus, withdraw_override
from validation.judging import gold
from validation.judging.forms import DecisionForm


class QueueFilter(ListFilter):
    """A form for the part of the queue to show."""

    # Translators: button
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.ALL, label=_("Show"))
    round = forms.TypedChoiceField(coerce=int, required=False, label=_("Round"))

    def __init__(self, request: HttpRequest, task: Task) -> None:
        self.rounds = list(task.rounds.order_by("-number"))
        words = gettext("Round %(number)d")
        choices = [(round.number, words % {"number": round.number}) for round in self.rounds]
        super().__init__(request, round=choices)

    def find_page(self, after: int, size: int = PAGE_SIZE) -> ReviewPage:
        """Return the page of examples that follow the id `after`."""
        number = self.cleaned_data["round"]
        rounds = [round for round in self.rounds if number in ("", round.number)]
        return get_review_page(rounds, Kind(self.cleaned_data["kind"]), after, size)


class WithdrawalForm(forms.Form):
    """A form for the reason of a withdrawal."""

    reason = forms.CharField(
        max_length=200,
        label=_("Reason for withdrawing"),
        help_text=_("Shown only to members, in the task's log."),
        error_messages={"required": _("Enter a reason.")},
    )


@require_safe
def show_review_queue(request: HttpRequest, code: str) -> HttpResponse:
    """Show the examples that need an expert's decision, oldest first."""
    task = find_owned_task(request, code)
    filters = QueueFilter(request, task)
    review_page = filters.find_page(read_after(request), size=PAGE_SIZE)
    page = build_page_after(request, review_page.items, review_page.after)
    inputs = read_inputs_by_example(task, [item.pk for item in page])
    rows = [(item, inputs[item.pk]) for item in page]
    values = {
        "task": task,
        "wanted": filters,
        "page": page,
        "rows": rows,
        # In many tasks people write a text alone, and then the column has nothing to show.
        "has_answers": any(summary.answer for _item, summary in rows),
    }
    return render_page(request, "own/review.html", values, block_name="queue")


def _find_example(task: Task, uuid: UUID) -> Example:
    # All that the page names of the example, in one query.
    rows = Example.objects.select_related("context", "annotator", "round__task", "vote_draw")
    return get_object_or_404(rows, uuid=uuid, round__task=task)


def _show_example(
    request: HttpRequest,
    example: Example,
    form: DecisionForm | None = None,
    message: str = "",
    status: int = 200,
) -> HttpResponse:
    task = example.round.task
    values = {
        "task": task,
        "example": example,
        "form": form or DecisionForm(example=example),
        "wanted": QueueFilter(request, task),
        "said": message,
        "item": _describe_item(task, example),
        **build_case_file(task, example),
    }
    if can_edit(request.user, task):
        values["judge_columns"] = list_judge_columns(task, example)
    return render_page(request, "own/review_example.html", values, block_name="work", status=status)


def _describe_item(task: Task, example: Example) -> Any:
    """Return the example's properties (`RoundItem`); None before people have voted on it."""
    if not example.validations.exists():
        return None
    # Imported on use, because it loads scipy.
    from evaluation.runs.round_items import describe_round_items

    return describe_round_items(task.config, [example])[0]


@require_http_methods(["GET", "POST"])
def review_example(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show everything about one example. A POST decides it and shows the next example."""
    example = _find_example(find_owned_task(request, code), uuid)
    if request.method == "GET":
        return _show_example(request, example)
    form = DecisionForm(request.POST, example=example)
    if not form.is_valid():
        return _show_example(request, example, form, status=422)
    try:
        override_consensus(
            example=example,
            owner=get_person(request),
            choice=form.vote,
            reason=form.cleaned_data["reason"],
        )
    except Refused as error:
        return _show_example(request, example, form, str(error), error.status)
    return _show_next(request, example, gettext("Decision saved."))


@require_safe
def skip_reviewed_example(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show the next example without deciding this one."""
    return _show_next(request, _find_example(find_owned_task(request, code), uuid))


def _show_next(request: HttpRequest, example: Example, message: str = "") -> HttpResponse:
    """Show the next example of the queue. Redirect unless htmx replaces only a part of the page."""
    task = example.round.task
    filters = QueueFilter(request, task)
    # By id, not by place: others decide at the same time.
    next_page = filters.find_page(example.pk, size=1)
    if next_page.items and is_htmx_partial(request):
        next_example = _find_example(task, next_page.items[0].uuid)
        response = _show_example(request, next_example, message=message)
        # So that going back and a reload lead to this example, not to the one before.
        response["HX-Push-Url"] = _build_example_url(task, next_example.uuid, filters)
        return response
    if message:
        messages.success(request, message)
    if next_page.items:
        return redirect(_build_example_url(task, next_page.items[0].uuid, filters))
    messages.info(request, gettext("No more examples to review here."))
    address = reverse("own:review", args=[task.code]) + filters.query
    if next_page.after:
        address += f"&after={next_page.after}"
    return redirect(address)


def _build_example_url(task: Task, uuid: UUID, filters: QueueFilter) -> str:
    return reverse("own:review-example", args=[task.code, uuid]) + filters.query


@require_POST
def withdraw_decision(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Withdraw the owner's decision, so that the votes decide again."""

    def change(example: Example) -> str:
        withdraw_override(example=example, owner=get_person(request))
        return gettext("Decision undone. The votes decide again.")

    return _change_example(request, code, uuid, change)


@require_POST
def switch_gold_item(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Mark the example as a gold item, or unmark it."""

    def change(example: Example) -> str:
        if request.POST.get("gold") == "no":
            gold.unmark_gold(example=example, owner=get_person(request))
            return gettext("Removed from the gold items.")
        # Cut to the column.
        explanation = request.POST.get("explanation", "").strip()[:500]
        gold.mark_gold(example=example, owner=get_person(request), explanation=explanation)
        return gettext("Added to the gold items. Judges will see this example among others.")

    return _change_example(request, code, uuid, change)


def _change_example(
    request: HttpRequest, code: str, uuid: UUID, change: Callable[[Example], str]
) -> HttpResponse:
    """Change the example and show it again, with a message or the reason for a refusal.

    change: changes the example and returns the message.
    """
    example = _find_example(find_owned_task(request, code), uuid)
    try:
        message = change(example)
    except Refused as error:
        return _show_example(request, example, message=str(error), status=error.status)
    if is_htmx_partial(request):
        return _show_example(request, example, message=message)
    messages.success(request, message)
    task = example.round.task
    return redirect(_build_example_url(task, example.uuid, QueueFilter(request, task)))


@require_http_methods(["GET", "POST"])
def show_withdrawal_form(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Ask for confirmation to withdraw an example, and for a reason. A POST withdraws it."""
    example = _find_example(find_owned_task(request, code), uuid)
    form = WithdrawalForm(request.POST or None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        withdraw_example(example=example, actor=get_person(request), reason=reason)
        return _show_next(request, example, gettext("Example withdrawn."))
    filters = QueueFilter(request, example.round.task)
    values = {"task": example.round.task, "example": example, "form": form, "wanted": filters}
    return render(request, "own/review_withdraw.html", values, status=get_form_status(form))
