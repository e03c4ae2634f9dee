"""The pages about all tasks together: the home page, errors, privacy, and what the numbers mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils import timezone
from django.views.decorators.csrf import requires_csrf_token

from annotation.models import Example
from annotation.writing.page import HOME
from annotation.writing.practice import build_practice_page
from core.accounts.models import User
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.text.markdown import render_markdown
from core.web.htmx import is_htmx_partial, render_page
from core.web.lists import InvalidListQuery
from core.web.refusals import CurableDenial
from dynabench.cards import TaskCard, build_cards, remove_unjudgeable_counts, show_quotes
from dynabench.catches.confirmation import CARD_LIFETIME, find_confirmed_catch
from dynabench.communities.permissions import find_visible_communities
from dynabench.operations.demo.services import can_offer_demo_to
from dynabench.reach import find_reach
from leaderboard.people.next_steps import find_next_steps
from tasks.models import Task
from tasks.permissions import (
    can_judge,
    can_write,
    is_task_creation_offered,
    load_tasks_with_roles,
)
from tasks.selectors import find_visible_tasks
from validation.rates.terms import TERMS
from validation.statistics.definitions import DEFINITIONS

MAX_QUOTES = 3
"""The maximum number of released failures on the home page for visitors."""


@login_not_required
def show_home(request: HttpRequest) -> HttpResponse:
    """Show the tasks that the person may see, with a search, filters and a suggested first step."""
    tasks = load_tasks_with_roles(find_visible_tasks(request.user), request.user)
    cards = build_cards(tasks)
    if request.user.is_authenticated:
        cards = remove_unjudgeable_counts(get_person(request), cards)
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
        "offers_new": is_task_creation_offered(request.user),
        "search": search,
        "open": only_open,
        "mild": no_sensitive,
    }
    if not is_htmx_partial(request):  # the list, which htmx asks for, shows none of it
        values |= _find_first_step(request, cards)
    return render_page(request, "tasks/home.html", values, block_name="tasks")


@requires_csrf_token
@login_not_required
def show_access_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Show why access was denied, and the page where the reader can change that, if any."""
    values: dict[str, Any] = {"exception": str(exception), "cure": None}
    if isinstance(exception, CurableDenial):
        values["cure"] = exception
    return render(request, "403.html", values, status=403)


@requires_csrf_token
@login_not_required
def show_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Show that the page does not exist. For a list without this page, show its existing pages."""
    values = {"rows": exception if isinstance(exception, InvalidListQuery) else None}
    return render(request, "404.html", values, status=404)


@login_not_required
def show_privacy_notice(request: HttpRequest) -> HttpResponse:
    """Show the operator's privacy notice, and where people read and delete their data."""
    text = ""
    if settings.PRIVACY_TEXT:
        text = render_markdown(Path(settings.PRIVACY_TEXT).read_text(encoding="utf-8"))
    return render(request, "privacy.html", {"text": text})


@login_not_required
def redirect_to_favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, for pages that do not name it, such as the admin's."""
    return redirect(static("favicon.svg"))


def _find_first_step(request: HttpRequest, cards: Sequence[TaskCard]) -> dict[str, Any]:
    """Return the template's values for the suggested first step: a try-out or unfinished work.

    Visitors get the try-out, or nothing if no task offers one. For others, their own tasks come
    first.
    """
    if not request.user.is_authenticated:
        short_cards = [card for card in cards if _is_short(card)]
        # Tasks without a passage to read come first.
        short_cards.sort(key=lambda card: card.task.config.context_role == "passage")
        if not (short_cards and short_cards[0].round):
            return {}
        return {
            "taste": build_practice_page(
                short_cards[0].round, HOME, request.GET.get("example", "")
            ).build_context(),
            "reach": find_reach(),
            "quotes": show_quotes([card.task for card in cards], MAX_QUOTES),
        }
    non_sensitive_task_ids = [card.task.pk for card in cards if not card.task.is_sensitive]
    user = get_person(request)
    own_task_ids = {card.task.pk for card in cards if card.task.roles.get(user.pk)}
    # Own tasks first, and simulated ones, which go away with the demo, last.
    sorted_cards = sorted(
        cards, key=lambda card: (card.task.pk not in own_task_ids, card.task.is_simulated)
    )
    judgeable_cards = [card for card in cards if can_judge(user, card.task)]
    annotator = get_annotator(user)
    return {
        "confirmed": find_confirmed_catch(annotator, timezone.now() - CARD_LIFETIME),
        "can_offer_demo": user.is_superuser
        and not Example.objects.exists()
        and can_offer_demo_to(user),
        "steps": find_next_steps(annotator, non_sensitive_task_ids),
        "to_write": _find_writable_task(user, sorted_cards),
        "to_judge": max(
            judgeable_cards,
            key=lambda card: (card.waiting > 0 and card.task.pk in own_task_ids, card.waiting),
            default=None,
        ),
    }


def _find_writable_task(user: User, cards: Sequence[TaskCard]) -> Task | None:
    """Return the task of the first card where the person may write now, or None."""
    for card in cards:
        if card.is_open and can_write(user, card.task):
            return card.task
    return None


def _is_short(card: TaskCard) -> bool:
    """Return whether visitors can try the task out at once.

    They cannot if it has a content warning or conversations. The demo's task is left out, too,
    because its examples are deleted with the demo.
    """
    task = card.task
    is_long = task.is_sensitive or task.config.talk or task.is_simulated
    return card.can_try and not is_long


@login_not_required
def show_number_definitions(request: HttpRequest) -> HttpResponse:
    """Show the definitions of the site's numbers and terms."""
    return render(request, "numbers.html", {"definitions": DEFINITIONS, "terms": TERMS})
