"""The account pages about webhooks."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import person
from core.web.htmx import form_status
from core.web.lists import list_page
from core.web.refusals import as_form_error, as_message
from dynabench.webhooks import services
from dynabench.webhooks.delivery import send_first_test
from dynabench.webhooks.forms import WebhookForm
from dynabench.webhooks.models import Webhook

PAGE_SIZE = 100
"""Deliveries on a page."""


def _find_own(request: HttpRequest, pk: int) -> Webhook:
    """Return the person's own webhook. Raises Http404 for anybody else's."""
    return get_object_or_404(Webhook, pk=pk, user=request.user)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """List the person's webhooks; POST creates one and shows its secret once."""
    user = person(request)
    form = WebhookForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            hook, secret = services.create_webhook(user=user, **form.cleaned_data)
            values = {"webhook": hook, "secret": secret, "greeting": send_first_test(hook)}
            return render(request, "webhooks/made.html", values, status=201)
    hooks = user.webhooks.select_related("task")
    values = {"webhooks": hooks, "form": form, "events": dict(Webhook.Event.choices)}
    return render(request, "webhooks/webhooks.html", values, status=form_status(form))


@require_safe
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a webhook's deliveries and their outcomes."""
    hook = _find_own(request, pk)
    values = {"webhook": hook, "page": list_page(request, hook.deliveries.all(), size=PAGE_SIZE)}
    return render(request, "webhooks/webhook.html", values)


@require_POST
def switch(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch a webhook on or off."""
    hook = _find_own(request, pk)
    # The button says which state is wanted, so that a second click changes nothing.
    is_on = request.POST.get("on") == "1"
    with as_message(request):
        services.change_webhook(
            webhook=hook, actor=person(request), url=hook.url, events=hook.events, is_on=is_on
        )
        messages.success(request, _("It is on.") if is_on else _("It is off."))
    return redirect("webhooks:webhook", pk)


@never_cache
@require_POST
def secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace a webhook's secret; the new one is shown only in this response."""
    hook = _find_own(request, pk)
    new_secret = services.rotate_secret(webhook=hook, actor=person(request))
    values = {"webhook": hook, "secret": new_secret, "is_rotated": True}
    return render(request, "webhooks/made.html", values)


@require_POST
def send_test_event(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a test event."""
    hook = _find_own(request, pk)
    with as_message(request):
        services.send_test(webhook=hook)
        messages.success(request, _("The test is on its way. Load this page again in a moment."))
    return redirect("webhooks:webhook", pk)


@require_POST
def again(request: HttpRequest, pk: int, delivery: UUID) -> HttpResponse:
    """Send a delivery again."""
    hook = _find_own(request, pk)
    row = get_object_or_404(hook.deliveries.select_related("webhook"), pk=delivery)
    with as_message(request):
        services.send_again(delivery=row)
        messages.success(request, _("It is sent again."))
    return redirect("webhooks:webhook", pk)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then delete a webhook."""
    hook = _find_own(request, pk)
    if request.method != "POST":
        return render(request, "webhooks/delete.html", {"webhook": hook})
    services.delete_webhook(webhook=hook, actor=person(request))
    messages.success(request, _("The webhook is deleted."))
    return redirect("webhooks:webhooks")
