"""Trying the model without an account: nothing is stored, and it can be kept by signing up."""

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from annotation import live, selectors, services, work
from annotation.access import gate_is_shut, writer
from annotation.models import Example, TargetOutput
from annotation.outcome import Ensemble, judge
from annotation.rounds import live_round
from annotation.views import refusal
from annotation.work import Work
from tasks.access import find_task
from tasks.endpoints.base import EndpointError, Prediction
from tasks.models import Context, Round, RoundTarget, Task
from tasks.permissions import can_try_out
from tasks.selectors import targets_of

TRIES_PER_HOUR = 20
KEEP_SECONDS = 24 * 3600


@login_not_required
@require_http_methods(["GET", "POST"])
def try_out(request: HttpRequest, code: str) -> HttpResponse:
    """The write page, with the same targets, for anybody; nothing is stored."""
    task = find_task(request, code)
    round = live_round(task)
    if not can_try_out(request.user, task) or round is None:
        raise Http404
    if gate_is_shut(request, task):
        return redirect(reverse("annotation:gate", args=[code], query={"for": "try"}))
    if request.method == "POST":
        return _submit(request, task, round)
    context = selectors.least_used_contexts(round).first()
    if context is None:
        return refusal(request, services.NoContext(_("No passages are left.")), task)
    goal = random.choice(task.config.goal_choices or [""])
    return work.show(request, Work(task, round, context, goal))


def _submit(request: HttpRequest, task: Task, round: Round) -> HttpResponse:
    pk, goal = request.POST.get("assignment", ""), request.POST.get("goal", "")
    context = get_object_or_404(round.contexts, pk=pk if pk.isdecimal() else 0)
    if goal not in (task.config.goal_choices or [""]):
        raise Http404
    now = Work(task, round, context, goal)
    form = now.form(request.POST)
    if not form.is_valid():
        return work.show(request, now, form=form, status=422)
    if _too_many(request):
        said = ngettext(
            "You have used the %(number)d practice try of this hour.",
            "You have used the %(number)d practice tries of this hour.",
            TRIES_PER_HOUR,
        )
        refused = {
            "panel": "annotation/_refused.html",
            "said": said % {"number": TRIES_PER_HOUR},
        }
        return work.show(request, now, refused, form=form, status=429)
    entries = targets_of(round)
    try:
        predictions = live.answers_now(
            entries, live.model_inputs(round, context.fields, form.inputs)
        )
    except EndpointError as error:
        said = _(work.FAILURES.get(error.reason, ""))
        failed = {"panel": "annotation/_failed.html", "said": said}
        return work.show(request, now, failed, form=form, status=503)
    example, outputs = _unsaved(now, form.inputs, entries, predictions)
    panel = {
        **work.verdict(example, task.config, outputs),
        "keep": signing.dumps([context.pk, goal, form.inputs], salt="keep", compress=True),
    }
    return work.show(request, now, panel, form=form)


def _unsaved(
    now: Work,
    inputs: dict[str, Any],
    entries: Sequence[RoundTarget],
    predictions: Sequence[Prediction],
) -> tuple[Example, list[TargetOutput]]:
    """The verdict on rows that are never saved."""
    outcome = judge(
        expected=inputs,
        outputs=[prediction.output for prediction in predictions],
        rule=now.task.config.verdict,
        ensemble=cast(Ensemble, now.round.rule),
    )
    example = Example(
        round=now.round, context=now.context, goal=now.goal, inputs=inputs, outcome=outcome.status
    )
    outputs = [
        TargetOutput(
            target=entry.target,
            position=place,
            output=prediction.output,
            prob=prediction.prob,
            fooled=verdict.fooled,
            score=verdict.score,
        )
        for place, (entry, prediction, verdict) in enumerate(
            zip(entries, predictions, outcome.per_target, strict=True)
        )
    ]
    return example, outputs


def _too_many(request: HttpRequest) -> bool:
    """Whether this address has used up the hour's tries; only a keyed, daily hash is kept."""
    address = get_adapter().get_client_ip(request) or ""
    hour = timezone.now().strftime("%Y%m%d%H")
    key = "try-out-" + salted_hmac("try-out", address + hour).hexdigest()
    cache.add(key, 0, timeout=3600)
    with suppress(ValueError):  # the entry may go between the two calls
        return cache.incr(key) > TRIES_PER_HOUR
    return False


@login_not_required
@require_http_methods(["GET", "POST"])
def keep(request: HttpRequest, code: str) -> HttpResponse:
    """Carry a practice text over to the write page, by way of the sign-up page if need be."""
    task = find_task(request, code)
    signed = request.POST.get("keep") or request.GET.get("keep", "")
    if not request.user.is_authenticated:
        back = reverse("annotation:keep", args=[code], query={"keep": signed})
        return redirect(f"{reverse('account_signup')}?{urlencode({'next': back})}")
    if request.method == "GET":  # back from signing up: reading an address writes nothing
        return render(request, "annotation/keep.html", {"task": task, "keep": signed})
    try:
        pk, goal, inputs = signing.loads(signed, salt="keep", max_age=KEEP_SECONDS)
    except signing.BadSignature:
        raise Http404 from None
    context = get_object_or_404(Context.objects.select_related("round"), pk=pk, round__task=task)
    try:
        services.assign_kept(
            annotator=writer(request, task), context=context, goal=goal, inputs=inputs
        )
    except services.Refused as error:
        return refusal(request, error, task)
    return redirect("annotation:write", code=code)
