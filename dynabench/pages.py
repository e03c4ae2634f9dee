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
from annotation.writing.practice import started
from core.accounts.people import person
from core.accounts.services import annotator_of
from core.text.markdown import render_markdown
from core.web.htmx import htmx_partial, render_page
from core.web.refusals import Curable
from dynabench.cards import Card, cards_for, cards_of
from dynabench.communities.permissions import listed_communities
from dynabench.operations.demo.services import can_offer
from leaderboard.people.next_steps import next_steps
from tasks.permissions import (
    can_judge,
    can_oversee,
    can_write,
    is_offered_new_tasks,
    with_roles,
)
from tasks.selectors import listed_tasks
from validation.rules.terms import TERMS
from validation.statistics.definitions import DEFINITIONS


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    """Show all tasks that this person may see, by search and filters, and how to begin."""
    tasks = with_roles(listed_tasks(request.user), request.user)
    cards = cards_of(tasks)
    if request.user.is_authenticated:
        cards = cards_for(person(request), cards)
    search = request.GET.get("q", "").strip().lower()
    only_open, no_sensitive = request.GET.get("open"), request.GET.get("mild")
    values = {
        "cards": [
            card
            for card in cards
            if search in f"{card.task.name} {card.task.summary} {card.task.code}".lower()
            and not (only_open and not card.is_open)
            and not (no_sensitive and card.task.is_sensitive)
        ],
        "communities": listed_communities(request.user),
        "offers_new": is_offered_new_tasks(request.user),
        "search": search,
        "open": only_open,
        "mild": no_sensitive,
        **({} if htmx_partial(request) else _beginning(request, cards)),
    }
    return render_page(request, "tasks/home.html", values, part="tasks")


@requires_csrf_token
@login_not_required
def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Show why a page does not open, and the page on which its reader can change that, if any."""
    cure = exception if isinstance(exception, Curable) else None
    values = {"exception": str(exception), "cure": cure}
    return render(request, "403.html", values, status=403)


@login_not_required
def privacy(request: HttpRequest) -> HttpResponse:
    """Show the operator's data protection text, and where people read and delete their data."""
    file = settings.PRIVACY_TEXT
    text = render_markdown(Path(file).read_text(encoding="utf-8")) if file else ""
    return render(request, "privacy.html", {"text": text})


@login_not_required
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, for pages that name none, such as the admin's."""
    return redirect(static("favicon.svg"))


def _beginning(request: HttpRequest, cards: Sequence[Card]) -> dict[str, Any]:
    """Return the first thing to do: for strangers a try-out, for others what they left.

    Tasks that have the person as a member come first.
    """
    if not request.user.is_authenticated:
        mild = [card for card in cards if _is_short(card)]
        short = min(mild, key=lambda card: card.task.config.gives == "passage", default=None)
        return {"taste": started(short.round, "home").values()} if short and short.round else {}
    tasks = [card.task.pk for card in cards if not card.task.is_sensitive]
    user = person(request)
    own = {card.task.pk for card in cards if card.task.roles.get(user.pk)}
    judged = [card for card in cards if can_judge(user, card.task)]
    lasting = sorted(cards, key=lambda card: (card.task.pk not in own, card.task.is_simulated))
    return {
        "can_offer_demo": user.is_superuser and not Example.objects.exists() and can_offer(user),
        "steps": next_steps(annotator_of(user), tasks),
        "to_write": next((c.task for c in lasting if c.is_open and can_write(user, c.task)), None),
        "to_judge": max(
            judged,
            key=lambda card: (card.waiting > 0 and card.task.pk in own, card.waiting),
            default=None,
        ),
        "own_tasks": [c.task for c in cards if c.task.pk in own and can_oversee(user, c.task)],
    }


def _is_short(card: Card) -> bool:
    """Return whether it may be tried out at once: without a warning to read or a conversation.

    What people write in a simulated task goes away with the demo.
    """
    task = card.task
    is_long = task.is_sensitive or task.config.talk or task.is_simulated
    return card.can_try and not is_long


@login_not_required
def numbers(request: HttpRequest) -> HttpResponse:
    """Show what each share means."""
    return render(request, "numbers.html", {"definitions": DEFINITIONS, "terms": TERMS})
