"""The owners' page of a round's contexts, where they are retired and restored."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from core.accounts.people import person
from core.web.lists import ListFilter, list_page
from dynabench.manage.access import find_owned_round
from tasks.contexts.media.markup import format_media
from tasks.contexts.services import set_retired
from tasks.models import Context, Round
from tasks.permissions import can_edit, can_oversee

PAGE_SIZE = 50


class ContextFilter(ListFilter):
    """A form for the id of the only context to show."""

    context = forms.IntegerField(
        # Translators: noun: the text that people write about
        min_value=0,
        max_value=2**63 - 1,
        required=False,
        label=_("Context"),
    )


@require_http_methods(["GET", "POST"])
def contexts_all(request: HttpRequest, code: str, number: int) -> HttpResponse:
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
    """Annotate each context with the number of times it was assigned, and of its examples."""

    # A subquery for each: two joins would multiply the rows of one by those of the other.
    def number(relation: str) -> Subquery:
        same = Context.objects.filter(pk=OuterRef("pk")).order_by()
        return Subquery(same.annotate(n=Count(relation)).values("n"))

    return rows.annotate(times_given=number("assignments"), written=number("examples"))


def _change_contexts(request: HttpRequest, round: Round) -> HttpResponse:
    """Retire or restore the selected contexts and show the same page again."""
    ticked = [pk for pk in request.POST.getlist("context") if _is_id(pk)]
    # Of this round, and no more than a page shows.
    chosen_contexts = round.contexts.filter(pk__in=ticked[:PAGE_SIZE])
    if not chosen_contexts:
        messages.error(request, gettext("Tick a context first."))
    elif "retire" in request.POST:
        n = set_retired(contexts=chosen_contexts, is_retired=True, actor=person(request))
        message = ngettext("%(n)d context is retired.", "%(n)d contexts are retired.", n)
        messages.success(request, message % {"n": n})
    else:
        n = set_retired(contexts=chosen_contexts, is_retired=False, actor=person(request))
        message = ngettext("%(n)d context is in use.", "%(n)d contexts are in use.", n)
        messages.success(request, message % {"n": n})
    page = reverse("own:contexts-all", args=[round.task.code, round.number])
    return redirect(f"{page}?{request.GET.urlencode()}")
