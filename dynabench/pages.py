"""The pages that look over all tasks: home, groups of tasks, what the numbers mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.csrf import requires_csrf_token

from annotation.models import Example
from annotation.writing.practice import start_practice
from core.accounts.models import User
from core.accounts.people import person
from core.accounts.services import annotator_of
from core.text.markdown import render_markdown
from core.web.htmx import htmx_partial, render_page
from core.web.lists import NoSuchRows
from core.web.refusals import Curable
from dynabench.cards import TaskCard, build_cards, limit_cards
from dynabench.communities.permissions import find_visible_communities
from dynabench.operations.demo.services import can_offer
from leaderboard.people.next_steps import find_next_steps
from tasks.models import Task
from tasks.permissions import (
    can_judge,
    can_oversee,
    can_write,
    is_offered_new_tasks,
    load_with_roles,
)
from tasks.selectors import find_visible_tasks
from validation.rates.terms import TERMS
from validation.statistics.definitions import DEFINITIONS


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    """Show the tasks that this person may see, with search and filters, and a first step."""
    tasks = load_with_roles(find_visible_tasks(request.user), request.user)
    cards = build_cards(tasks)
    if request.user.is_authenticated:
        cards = limit_cards(person(request), cards)
    search = request.GET.get("q", "").strip().lower()
    only_open, no_sensitive = request.GET.get("open"), request.GET.get("mild")
    matching_cards = []
    for card in cards:
        text = f"{card.task.name} {card.task.summary} {card.task.code}".lower()
        if search not in text:
            continue
        if only_open and not card.is_open:
            continue
        if no_sensitive and card.task.is_sensitive:
            continue
        matching_cards.append(card)
    values = {
        "cards": matching_cards,
        "communities": find_visible_communities(request.user),
        "offers_new": is_offered_new_tasks(request.user),
        "search": search,
        "open": only_open,
        "mild": no_sensitive,
    }
    if not htmx_partial(request):  # the list, which htmx asks for, shows none of it
        values |= _find_first_step(request, cards)
    return render_page(request, "tasks/home.html", values, part="tasks")


@requires_csrf_token
@login_not_required
def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Show why access was denied, and the page where the reader can change that, if any."""
    values: dict[str, Any] = {"exception": str(exception), "cure": None}
    if isinstance(exception, Curable):
        values["cure"] = exception
    return render(request, "403.html", values, status=403)


@requires_csrf_token
@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Show that the page does not exist; for a list, show its existing pages."""
    values = {"rows": exception if isinstance(exception, NoSuchRows) else None}
    return render(request, "404.html", values, status=404)


@login_not_required
def privacy(request: HttpRequest) -> HttpResponse:
    """Show the operator's privacy notice, and where people read and delete their data."""
    text = ""
    if settings.PRIVACY_TEXT:
        text = render_markdown(Path(settings.PRIVACY_TEXT).read_text(encoding="utf-8"))
    return render(request, "privacy.html", {"text": text})


@login_not_required
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, for pages such as the admin's that do not name it."""
    return redirect(static("favicon.svg"))


def _find_first_step(request: HttpRequest, cards: Sequence[TaskCard]) -> dict[str, Any]:
    """Return the suggested first step: a try-out for visitors, or unfinished work.

    The person's own tasks come first.
    """
    if not request.user.is_authenticated:
        short_ones = [card for card in cards if _is_short(card)]
        # Tasks without a passage to read come first.
        short_ones.sort(key=lambda card: card.task.config.gives == "passage")
        if not (short_ones and short_ones[0].round):
            return {}
        return {"taste": start_practice(short_ones[0].round, "home").values()}
    tasks = [card.task.pk for card in cards if not card.task.is_sensitive]
    user = person(request)
    own_ids = {card.task.pk for card in cards if card.task.roles.get(user.pk)}
    # Own tasks first, and simulated ones, which go away with the demo, last.
    sorted_cards = sorted(
        cards, key=lambda card: (card.task.pk not in own_ids, card.task.is_simulated)
    )
    judgeable_cards = [card for card in cards if can_judge(user, card.task)]
    own_tasks = [card.task for card in cards if card.task.pk in own_ids]
    return {
        "can_offer_demo": user.is_superuser and not Example.objects.exists() and can_offer(user),
        "steps": find_next_steps(annotator_of(user), tasks),
        "to_write": _find_writable_task(user, sorted_cards),
        "to_judge": max(
            judgeable_cards,
            key=lambda card: (card.waiting > 0 and card.task.pk in own_ids, card.waiting),
            default=None,
        ),
        "own_tasks": [task for task in own_tasks if can_oversee(user, task)],
    }


def _find_writable_task(user: User, cards: Sequence[TaskCard]) -> Task | None:
    """Return the task of the first card where the person may write now, or None."""
    for card in cards:
        if card.is_open and can_write(user, card.task):
            return card.task
    return None


def _is_short(card: TaskCard) -> bool:
    """Return whether visitors can try the task out at once.

    They cannot if it has a content warning or conversations, or if it is simulated: examples in a
    simulated task are deleted with the demo.
    """
    task = card.task
    is_long = task.is_sensitive or task.config.talk or task.is_simulated
    return card.can_try and not is_long


@login_not_required
def numbers(request: HttpRequest) -> HttpResponse:
    """Show the definitions of the numbers."""
    return render(request, "numbers.html", {"definitions": DEFINITIONS, "terms": TERMS})
