"""The owners' pages of an arena: models, voters and gold pairs, conversations to publish."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person, get_shown_name
from core.web.htmx import get_form_status
from core.web.lists import list_page, select_rows_after
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.manage.approval import describe_approval
from dynabench.manage.setup.choose_target import (
    SimpleTargetForm,
    build_chat_settings,
    validate_settings,
)
from leaderboard.arena.battles import owner_services as services
from leaderboard.arena.battles.forms import MAX_PROMPT_CHARS
from leaderboard.arena.battles.selectors import count_arena
from leaderboard.arena.battles.voters import list_voters
from leaderboard.arena.board import find_cached_table
from leaderboard.arena.vote_plan import plan_votes
from leaderboard.models import Battle, Turn
from tasks.access import find_task
from tasks.models import TargetModel, Task
from tasks.permissions import can_edit, can_manage, can_review
from tasks.targets.connect import CONVERSING_ADAPTERS
from tasks.targets.contact_pages import show_contact
from tasks.targets.endpoints.live import MAX_ANSWER_CHARS
from tasks.targets.forms import SettingsForm
from tasks.targets.spending_services import sum_uses_outside

PAGE_SIZE = 20
"""The number of conversations on a page, each shown in full."""


class ArenaModelForm(SettingsForm):
    """A form for a model in an arena: at a URL, or loaded by the site's model server.

    See docs/targets.md.
    """

    adapter = forms.ChoiceField(
        choices=[(name, name) for name in CONVERSING_ADAPTERS],
        initial="openai_chat",
        label=_("Adapter"),
    )


class ChatModelForm(SimpleTargetForm):
    """A form for a chat model: at an OpenAI-compatible URL, or this site's own."""

    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Shown to voters after they vote. Lowercase letters, numbers, hyphens."),
    )
    url = forms.URLField(
        label=_("URL"),
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text=_(
            "An OpenAI-compatible server, with a URL that ends in /v1. Leave "
            "empty for this site's language model."
        ),
    )
    model = forms.CharField(
        label=_("Model name on the server"),
        required=False,
        max_length=200,
        help_text=_("Leave empty to use the name above."),
    )
    secret = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Stored encrypted. You won't see it again."),
    )
    instructions = forms.CharField(
        label=_("System prompt"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def build_settings(self) -> dict[str, Any]:
        """Return the target's settings, without its name."""
        values = self.cleaned_data
        return build_chat_settings({**values, "model": values["model"] or values["name"]})


class GoldPairForm(forms.Form):
    """A form for a gold pair: a prompt with a good and a broken answer."""

    prompt = forms.CharField(
        max_length=MAX_PROMPT_CHARS, label=_("Message"), widget=forms.Textarea(attrs={"rows": 2})
    )
    good = forms.CharField(
        max_length=MAX_ANSWER_CHARS,
        label=_("Good answer"),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    broken = forms.CharField(
        max_length=MAX_ANSWER_CHARS,
        label=_("Broken answer"),
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Clearly worse: cut off, off topic or full of errors."),
    )


def _find_arena(request: HttpRequest, code: str, permission_check: Any = can_edit) -> Task:
    # Other tasks have no arena, so their owners get a 404 here.
    return find_task(request, code, permission_check, kinds=("arena",))


def _build_model_form(request: HttpRequest, task: Task, data: Any = None) -> ArenaModelForm:
    form = ArenaModelForm(data, instance=TargetModel(task=task))
    # The name of an environment variable would send any of the site's secrets to the address.
    if not request.user.is_superuser:
        del form.fields["secret_env"]
    return form


def _show_models(
    request: HttpRequest,
    task: Task,
    *,
    chat_form: ChatModelForm | None = None,
    model_form: ArenaModelForm | None = None,
) -> HttpResponse:
    # Read only if the leaderboard has computed it: this page ranks nothing.
    table = find_cached_table(task)
    values = {
        "task": task,
        "vote_plan": plan_votes(table) if table else None,
        "may": can_edit(request.user, task),
        "targets": task.targets.select_related("contestant"),
        "other_uses": sum_uses_outside(task),
        "size": count_arena(task),
        "chat_form": chat_form or ChatModelForm(auto_id="chat-%s"),
        "model_form": model_form or _build_model_form(request, task),
        **describe_approval(request, task),
    }
    status = get_form_status(chat_form, model_form)
    return render(request, "own/arena.html", values, status=status)


def _show_voters(
    request: HttpRequest, task: Task, form: GoldPairForm | None = None
) -> HttpResponse:
    """Show the voters and the gold pairs. form: the form for a new pair if it has errors."""
    page = list_page(request, list_voters(task))
    values = {
        "task": task,
        "may": can_edit(request.user, task),
        # All of them: owners make few, and each is edited here.
        "gold_pairs": task.gold_pairs.all(),
        "voters": [(get_shown_name(voter.annotator), voter) for voter in page],
        "page": page,
        "gold_form": form or GoldPairForm(),
    }
    return render(request, "own/arena_voters.html", values, status=get_form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def show_arena(request: HttpRequest, code: str) -> HttpResponse:
    """Show the arena's models and numbers. A POST adds a model."""
    if request.method != "POST":
        return _show_models(request, _find_arena(request, code, can_manage))
    task = _find_arena(request, code)
    if "chat" in request.POST:  # the button of the first of the page's two forms
        chat_form = ChatModelForm(request.POST, auto_id="chat-%s")
        if chat_form.is_valid() and (page := _add_chat_model(request, task, chat_form)):
            return page
        return _show_models(request, task, chat_form=chat_form)
    form = _build_model_form(request, task, request.POST)
    if form.is_valid():
        with show_as_form_error(form):
            return _add_model(request, task, form.cleaned_data)
    return _show_models(request, task, model_form=form)


def _add_model(request: HttpRequest, task: Task, fields: Mapping[str, Any]) -> HttpResponse:
    """Add a model to the arena and return a redirect. Raises Refused.

    fields: the fields of its target.
    """
    target = services.add_model(task=task, actor=get_person(request), fields=fields)
    messages.success(request, gettext("Model added. It now takes part in battles."))
    show_contact(request, target)
    return redirect("own:arena", task.code)


def _add_chat_model(request: HttpRequest, task: Task, form: ChatModelForm) -> HttpResponse | None:
    """Add the chat model that the form describes and return a redirect.

    Return None if the form turns out to be invalid; it then shows the errors.
    """
    fields = validate_settings(task, get_person(request), form)
    if fields is not None:
        with show_as_form_error(form):
            return _add_model(request, task, fields)
    return None


@require_safe
def show_arena_voters(request: HttpRequest, code: str) -> HttpResponse:
    """Show the voters, and the gold pairs that check their votes."""
    return _show_voters(request, _find_arena(request, code, can_manage))


@require_safe
def show_arena_conversations(request: HttpRequest, code: str) -> HttpResponse:
    """Show the conversations that await publication, then those that are published."""
    task = _find_arena(request, code, can_review)
    # The oldest first, as each waits for one decision.
    waiting_battles = Battle.objects.filter(task=task, release=Battle.Release.WAITING).order_by(
        "pk"
    )
    # The newest first, as they show what people ask now.
    released_battles = (
        Battle.objects.filter(task=task, release=Battle.Release.RELEASED)
        .select_related("left", "right")
        .prefetch_related(
            # As in the download: a turn that failed is no part of what is published.
            Prefetch("turns", Turn.objects.filter(state=Turn.State.DONE)),
            "turns__replies",
            "extra_sides__contestant",
        )
        .order_by("-pk")
    )
    values = {
        "task": task,
        "released": list_page(request, released_battles, size=PAGE_SIZE, name="released"),
        "page": select_rows_after(
            request, waiting_battles.prefetch_related("turns__replies"), size=PAGE_SIZE
        ),
        "waiting_count": waiting_battles.count(),
    }
    return render(request, "own/arena_conversations.html", values)


@require_POST
def create_gold_pair(request: HttpRequest, code: str) -> HttpResponse:
    """Add a gold pair."""
    task = _find_arena(request, code)
    form = GoldPairForm(request.POST)
    if form.is_valid():
        with show_as_form_error(form):
            # A refusal, such as two equal answers, is shown at the form.
            services.add_gold_pair(task=task, actor=get_person(request), **form.cleaned_data)
            return redirect("own:arena-voters", code)
    return _show_voters(request, task, form)


@require_POST
def switch_arena_model(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Include a target in battles, or exclude it."""
    task = _find_arena(request, code)
    target = get_object_or_404(task.targets.select_related("task"), pk=pk)
    with show_as_message(request):
        services.set_model_live(
            target=target, actor=get_person(request), is_live="on" in request.POST
        )
    return redirect("own:arena", code)


@require_POST
def switch_gold_pair(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Show a gold pair to voters, or stop showing it."""
    pair = get_object_or_404(_find_arena(request, code).gold_pairs.select_related("task"), pk=pk)
    services.set_gold_pair_active(
        pair=pair, actor=get_person(request), is_active="on" in request.POST
    )
    return redirect("own:arena-voters", code)


@require_POST
def decide_conversation(request: HttpRequest, code: str, pk: int) -> HttpResponse:
    """Publish a conversation that awaits publication, or withhold it."""
    task = _find_arena(request, code, can_review)
    battle = get_object_or_404(task.battles.select_related("task"), pk=pk)
    with show_as_message(request):
        publish = "publish" in request.POST
        services.decide_release(battle=battle, actor=get_person(request), should_publish=publish)
    return redirect("own:arena-conversations", code)
