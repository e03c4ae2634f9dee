"""How the votes of a round decide: owners see what another policy would change, and apply it."""

from typing import Any, get_args

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods

from annotation.models import Example
from dynabench.lib.htmx import render_page
from dynabench.own.access import owned_task
from dynabench.own.selectors import said, shown_texts
from evaluation.queue import enqueue
from tasks.models import Round
from tasks.permissions import can_edit
from validation import policies
from validation.consensus import Policy, Rule
from validation.derive import label_field
from validation.models import Judging
from validation.policy_preview import Preview, Standing, preview

AT_ONCE = 5_000
"""Up to so many examples are counted again while the owner waits; more by a worker."""
MOST_PREVIEWED = 50_000
RULES = {
    "n-equal": "N equal votes: at once, however many may follow",
    "at-least": "At least N equal votes, and no other answer as many",
    "strict": "More than half of the votes",
    "plurality": "The most frequent answer",
    "dawid-skene": "Dawid–Skene: the most probable label, by how reliable each validator is",
}


class PolicyForm(forms.Form):
    """A policy, field by field; `policy` once it is valid."""

    rule = forms.ChoiceField(
        widget=forms.RadioSelect,
        label="An example is decided by",
        error_messages={"required": "Choose a rule"},
    )
    needed = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=3,
        label="N, equal votes",
        help_text="For the first two rules.",
        required=False,
    )
    of = forms.IntegerField(
        min_value=1,
        max_value=100,
        label="Most votes asked for",
        help_text="Needed for all rules but the first, unless the round is closed: then nothing "
        "means that the votes which are there are all.",
        required=False,
    )
    threshold = forms.FloatField(
        min_value=0.5,
        max_value=1,
        initial=0.8,
        label="Threshold of the probability",
        help_text="For Dawid–Skene: above 0.5, at most 1.",
        required=False,
    )

    def __init__(self, round: Round, data: Any = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.is_live = round.state not in (Round.State.CLOSED, Round.State.RELEASED)
        has_labels = label_field(round.task.config) is not None
        self.fields["rule"].choices = [  # type: ignore[attr-defined]
            (rule, RULES[rule]) for rule in get_args(Rule) if has_labels or rule != "dawid-skene"
        ]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        rule, needed, of = given.get("rule"), given.get("needed"), given.get("of")
        if rule in ("n-equal", "at-least") and not (needed or self.has_error("needed")):
            self.add_error("needed", "Say how many equal votes decide")
        if rule != "n-equal" and self.is_live and not (of or self.has_error("of")):
            self.add_error("of", "Say how many votes are asked for at most, such as 5")
        if not self.errors:
            try:
                self.policy = Policy(rule, needed or 1, of, given.get("threshold") or 0.8)  # type: ignore[arg-type]
            except ValueError as error:
                self.add_error("threshold" if rule == "dawid-skene" else "needed", str(error))
        return given


def in_force(round: Round) -> Policy:
    """What decides in the round now: what was settled, else what the task's configuration says."""
    judging = Judging.objects.filter(round=round).first()
    if judging is None:
        return Policy.from_votes(round.task.config.validation.votes)
    return Policy(**judging.policy)


def in_words(policy: Policy) -> str:
    """A policy as a phrase that follows “decided by”."""
    of = f"{policy.of} votes" if policy.of else "all votes that are there"
    return {
        "n-equal": f"{policy.needed} equal votes" + (f" of at most {policy.of}" * bool(policy.of)),
        "at-least": f"at least {policy.needed} equal votes of {of}",
        "strict": f"more than half of {of}",
        "plurality": f"the most frequent answer of {of}",
        "dawid-skene": f"a Dawid–Skene probability of {policy.threshold:g} or more, of {of}",
    }[policy.rule]


@require_http_methods(["GET", "POST"])
def policy(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show the policy; with one in the address also what it would change; a POST applies it."""
    task = owned_task(request, code, can_edit)
    round = get_object_or_404(Round.objects.select_related("task"), task=task, number=number)
    if request.method == "POST":
        return _apply(request, round)
    if "rule" not in request.GET:
        now = in_force(round)
        initial = {name: getattr(now, name) for name in ("rule", "needed", "of", "threshold")}
        return _show(request, round, PolicyForm(round, initial=initial))
    form = PolicyForm(round, request.GET)
    return _show(request, round, form, status=200 if form.is_valid() else 422)


def _apply(request: HttpRequest, round: Round) -> HttpResponse:
    form = PolicyForm(round, request.POST)
    if not form.is_valid():
        return _show(request, round, form, status=422)
    if round.state == Round.State.RELEASED:
        return _show(request, round, form, status=409)
    policies.change_policy(round=round, owner=request.user, policy=form.policy)  # type: ignore[arg-type]
    if Example.objects.filter(round=round).count() > AT_ONCE:
        enqueue("dynabench.own.policy.count_again", round.pk)
        told = "A worker counts its votes again; look at the numbers in some minutes."
    else:
        told = f"Examples that changed: {policies.derive_round(round=round)}."
    messages.success(request, f"Round {round.number} has a new policy. {told}")
    return redirect("own:policy", code=round.task.code, number=round.number)


def count_again(round: int) -> None:
    """What a worker does for a large round; twice does no harm."""
    policies.derive_round(round=Round.objects.select_related("task").get(pk=round))


def _show(
    request: HttpRequest, round: Round, form: PolicyForm, *, status: int = 200
) -> HttpResponse:
    values: dict[str, Any] = {
        "task": round.task,
        "round": round,
        "form": form,
        "in_force": in_words(in_force(round)),
        "released": round.state == Round.State.RELEASED,
    }
    if form.is_bound and form.is_valid():
        values["chosen"] = in_words(form.policy)
        values["too_many"] = Example.objects.filter(round=round).count() > MOST_PREVIEWED
        if not values["too_many"]:
            values.update(_previewed(round, preview(round, form.policy)))
    return render_page(request, "own/policy.html", values, part="work", status=status)


def _previewed(round: Round, found: Preview) -> dict[str, Any]:
    """The preview with words for the template."""
    names = {"vmer": "vMER", "fooled_of_decided": "Share over decided"}
    names["verified_of_judged"] = "Verified share"
    examples = Example.objects.in_bulk(found.first)
    texts = shown_texts(round.task, found.first)
    config = round.task.config

    def words(standing: Standing) -> str:
        answer = said(config, standing)
        return f"{standing.words}: {answer}" if answer else standing.words

    return {
        "preview": found,
        "rates": [(key, name, found.before[key], found.after[key]) for key, name in names.items()],
        "transitions": found.transitions.most_common(),
        "first": [
            (examples[pk], texts[pk], words(old), words(new))
            for pk, (old, new) in found.first.items()
        ],
    }
