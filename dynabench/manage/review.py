"""The review queue: a sample of what is judged and all disagreements, decided by an expert."""

from collections.abc import Callable
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
from core.accounts.people import person
from core.errors import Refused
from core.web.htmx import form_status, htmx_partial, render_page
from core.web.lists import ListFilter, page_after, read_after
from dynabench.manage.access import find_owned_task
from dynabench.manage.selectors import build_case_file, read_texts_by_example
from tasks.models import Task
from validation.decisions.review_queue import PAGE, Kind, ReviewPage, to_review
from validation.decisions.services import override_consensus, withdraw_override
from validation.judging import gold
from validation.judging.forms import DecisionForm


class QueueFilter(ListFilter):
    """A form for the part of the queue that is shown."""

    # Translators: button
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.ALL, label=_("Show"))
    round = forms.TypedChoiceField(coerce=int, required=False, label=_("Round"))

    def __init__(self, request: HttpRequest, task: Task) -> None:
        self.rounds = list(task.rounds.order_by("-number"))
        words = gettext("Round %(number)d")
        choices = [(round.number, words % {"number": round.number}) for round in self.rounds]
        super().__init__(request, round=choices)

    def examples(self, after: int, size: int = PAGE) -> ReviewPage:
        """Return the page of examples after the id `after`."""
        number = self.cleaned_data["round"]
        rounds = [round for round in self.rounds if number in ("", round.number)]
        return to_review(rounds, Kind(self.cleaned_data["kind"]), after, size)


class WithdrawalForm(forms.Form):
    """A form for the reason of a withdrawal."""

    reason = forms.CharField(
        max_length=200,
        label=_("Why do you withdraw it?"),
        help_text=_("Kept in the log for the members of the task; never public."),
        error_messages={"required": _("Say why you withdraw it")},
    )


@require_safe
def review_queue(request: HttpRequest, code: str) -> HttpResponse:
    """Show the examples that need an expert's decision, oldest first."""
    task = find_owned_task(request, code)
    filters = QueueFilter(request, task)
    review_page = filters.examples(read_after(request), size=PAGE)
    page = page_after(request, review_page.items, review_page.after)
    texts = read_texts_by_example(task, [item.pk for item in page])
    rows = [(item, texts[item.pk]) for item in page]
    values = {"task": task, "wanted": filters, "page": page, "rows": rows}
    return render_page(request, "own/review.html", values, part="queue")


def _find_example(task: Task, uuid: UUID) -> Example:
    # All that the page names of the example, in one query.
    rows = Example.objects.select_related("context", "annotator", "round__task")
    return get_object_or_404(rows, uuid=uuid, round__task=task)


def _show(
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
        "form": form or DecisionForm(decides=example),
        "wanted": QueueFilter(request, task),
        "said": message,
        **build_case_file(task, example),
    }
    return render_page(request, "own/review_example.html", values, part="work", status=status)


@require_http_methods(["GET", "POST"])
def review_example(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show everything about one example. A POST decides it and shows the next one."""
    example = _find_example(find_owned_task(request, code), uuid)
    if request.method == "GET":
        return _show(request, example)
    form = DecisionForm(request.POST, decides=example)
    if not form.is_valid():
        return _show(request, example, form, status=422)
    try:
        override_consensus(
            example=example,
            owner=person(request),
            choice=form.vote,
            reason=form.cleaned_data["reason"],
        )
    except Refused as error:
        return _show(request, example, form, str(error), error.status)
    return _show_next(request, example, gettext("Your decision is saved."))


@require_safe
def review_next(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Show the next example without deciding this one."""
    return _show_next(request, _find_example(find_owned_task(request, code), uuid))


def _show_next(request: HttpRequest, example: Example, message: str = "") -> HttpResponse:
    """Show the next example of the queue; redirect if the URL of the whole page changes."""
    task = example.round.task
    filters = QueueFilter(request, task)
    # By id, not by place: others decide at the same time.
    next_page = filters.examples(example.pk, size=1)
    if next_page.items and htmx_partial(request):
        next_example = _find_example(task, next_page.items[0].uuid)
        response = _show(request, next_example, message=message)
        # So that going back and a reload lead to this example, not to the one before.
        response["HX-Push-Url"] = _build_url(task, next_example.uuid, filters)
        return response
    if message:
        messages.success(request, message)
    if next_page.items:
        return redirect(_build_url(task, next_page.items[0].uuid, filters))
    messages.info(request, gettext("No further example was found here."))
    address = reverse("own:review", args=[task.code]) + filters.query
    if next_page.after:
        address += f"&after={next_page.after}"
    return redirect(address)


def _build_url(task: Task, uuid: UUID, filters: QueueFilter) -> str:
    return reverse("own:review-example", args=[task.code, uuid]) + filters.query


@require_POST
def withdraw_decision(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Withdraw the reviewer's decision, so that the votes decide again."""

    def change(example: Example) -> str:
        withdraw_override(example=example, owner=person(request))
        return gettext("The decision is withdrawn. The votes decide again.")

    return _change_example(request, code, uuid, change)


@require_POST
def gold_item(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Mark the example as a gold item, or unmark it."""

    def change(example: Example) -> str:
        if request.POST.get("gold") == "no":
            gold.unmark_gold(example=example, owner=person(request))
            return gettext("The example is no gold item any more.")
        # Cut to the column.
        explanation = request.POST.get("explanation", "").strip()[:500]
        gold.mark_gold(example=example, owner=person(request), explanation=explanation)
        return gettext("The example is a gold item now: validators meet it among the others.")

    return _change_example(request, code, uuid, change)


def _change_example(
    request: HttpRequest, code: str, uuid: UUID, change: Callable[[Example], str]
) -> HttpResponse:
    """Change the example and show it again with a message or the refusal.

    change: changes the example and returns the message.
    """
    example = _find_example(find_owned_task(request, code), uuid)
    try:
        message = change(example)
    except Refused as error:
        return _show(request, example, message=str(error), status=error.status)
    if htmx_partial(request):
        return _show(request, example, message=message)
    messages.success(request, message)
    task = example.round.task
    return redirect(_build_url(task, example.uuid, QueueFilter(request, task)))


@require_http_methods(["GET", "POST"])
def withdraw_page(request: HttpRequest, code: str, uuid: UUID) -> HttpResponse:
    """Ask for confirmation to withdraw an example, and for a reason. A POST withdraws it."""
    example = _find_example(find_owned_task(request, code), uuid)
    form = WithdrawalForm(request.POST or None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        withdraw_example(example=example, actor=person(request), reason=reason)
        return _show_next(request, example, gettext("The example is withdrawn."))
    filters = QueueFilter(request, example.round.task)
    values = {"task": example.round.task, "example": example, "form": form, "wanted": filters}
    return render(request, "own/review_withdraw.html", values, status=form_status(form))
