"""The owners' page of a round's contexts, for retiring and restoring them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from core.accounts.people import get_person
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_round, find_owned_task
from tasks.contexts.media.markup import format_media
from tasks.contexts.services import set_retired
from tasks.models import Context, Round
from tasks.permissions import can_edit, can_oversee

PAGE_SIZE = 50
LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)
"""The states of a round in which people write."""


class ContextFilter(ListFilter):
    """A form for the id of the single context to show."""

    context = forms.IntegerField(
        # Translators: noun: the text that people write about
        min_value=0,
        max_value=2**63 - 1,
        required=False,
        label=_("Text"),
    )


@require_safe
def redirect_to_texts(request: HttpRequest, code: str) -> HttpResponse:
    """Redirect to the texts of the open or paused round, or else of the newest.

    Without rounds, redirect to the list of rounds.
    """
    task = find_owned_task(request, code, can_oversee)
    rounds = list(task.rounds.order_by("-number"))
    live_rounds = [round for round in rounds if round.state in LIVE_STATES]
    for round in live_rounds or rounds:
        return redirect("own:contexts-all", code, round.number)
    # Texts belong to a round, which is planned there.
    return redirect("own:rounds", code)


@require_http_methods(["GET", "POST"])
def show_all_contexts(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show all contexts, newest first.

    A POST by an editor retires or restores the selected ones.
    """
    if request.method == "POST":
        return _change_contexts(request, find_owned_round(request, code, number, can_edit))
    round = find_owned_round(request, code, number, can_oversee)
    rows = round.contexts.order_by("-pk")
    context_id = ContextFilter(request).cleaned_data["context"]
    if context_id is not None:
        rows = rows.filter(pk=context_id)
    # The database counts for the rows of the page only: a round may have 100,000 contexts.
    page = list_page(request, _count_uses(rows), size=PAGE_SIZE)
    values: dict[str, Any] = {
        "task": round.task,
        "round": round,
        "page": page,
        "wanted": context_id,
    }
    values["rows"] = []
    for context in page:
        text = " | ".join(format_media(value) for value in context.fields.values())
        values["rows"].append((context, text))
    values["can_edit"] = can_edit(request.user, round.task)
    return render(request, "own/setup/contexts_all.html", values)


def _is_id(text: str) -> bool:
    """Return whether a text can be an id.

    A longer number would not fit into the database column.
    """
    return text.isdecimal() and len(text) < 19


def _count_uses(rows: QuerySet[Context]) -> QuerySet[Context]:
    """Annotate each context with how often it was assigned and how many examples it has."""

    # A subquery for each: two joins would multiply the rows of one by those of the other.
    def count_related(relation: str) -> Subquery:
        same_context = Context.objects.filter(pk=OuterRef("pk")).order_by()
        return Subquery(same_context.annotate(n=Count(relation)).values("n"))

    return rows.annotate(
        times_given=count_related("assignments"), written=count_related("examples")
    )


def _change_contexts(request: HttpRequest, round: Round) -> HttpResponse:
    """Retire or restore the selected contexts and show the same page again."""
    selected_ids = [pk for pk in request.POST.getlist("context") if _is_id(pk)]
    # Of this round, and no more than a page shows.
    chosen_contexts = round.contexts.filter(pk__in=selected_ids[:PAGE_SIZE])
    if not chosen_contexts:
        messages.error(request, gettext("Select a text first."))
    elif "retire" in request.POST:
        count = set_retired(contexts=chosen_contexts, is_retired=True, actor=get_person(request))
        message = ngettext("%(n)d text retired.", "%(n)d texts retired.", count)
        messages.success(request, message % {"n": count})
    else:
        count = set_retired(contexts=chosen_contexts, is_retired=False, actor=get_person(request))
        message = ngettext("%(n)d text restored.", "%(n)d texts restored.", count)
        messages.success(request, message % {"n": count})
    page = reverse("own:contexts-all", args=[round.task.code, round.number])
    return redirect(f"{page}?{request.GET.urlencode()}")
