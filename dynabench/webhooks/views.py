"""The account pages about webhooks."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.web.htmx import get_form_status
from core.web.lists import list_page
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.webhooks import services
from dynabench.webhooks.delivery import send_first_test
from dynabench.webhooks.forms import WebhookForm
from dynabench.webhooks.models import Webhook

PAGE_SIZE = 100
"""The number of deliveries on a page."""


def _find_own_webhook(request: HttpRequest, pk: int) -> Webhook:
    """Return the person's own webhook. Raises Http404 for anybody else's."""
    return get_object_or_404(Webhook, pk=pk, user=request.user)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def show_webhooks(request: HttpRequest) -> HttpResponse:
    """List the person's webhooks.

    A POST creates one, sends it a test, and shows its secret once.
    """
    user = get_person(request)
    form = WebhookForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            hook, secret = services.create_webhook(user=user, **form.cleaned_data)
            values = {"webhook": hook, "secret": secret, "greeting": send_first_test(hook)}
            return render(request, "webhooks/made.html", values, status=201)
    hooks = user.webhooks.select_related("task")
    values = {"webhooks": hooks, "form": form, "events": dict(Webhook.Event.choices)}
    return render(request, "webhooks/webhooks.html", values, status=get_form_status(form))


@require_safe
def show_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a webhook's deliveries and their outcomes."""
    hook = _find_own_webhook(request, pk)
    values = {"webhook": hook, "page": list_page(request, hook.deliveries.all(), size=PAGE_SIZE)}
    return render(request, "webhooks/webhook.html", values)


@require_POST
def switch_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch a webhook on or off."""
    hook = _find_own_webhook(request, pk)
    # The button says which state is wanted, so that a second click changes nothing.
    is_on = request.POST.get("on") == "1"
    with show_as_message(request):
        services.change_webhook(
            webhook=hook, actor=get_person(request), url=hook.url, events=hook.events, is_on=is_on
        )
        messages.success(request, _("Webhook turned on.") if is_on else _("Webhook turned off."))
    return redirect("webhooks:webhook", pk)


@never_cache
@require_POST
def replace_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace a webhook's secret. The new one is shown only in this response."""
    hook = _find_own_webhook(request, pk)
    new_secret = services.rotate_secret(webhook=hook, actor=get_person(request))
    values = {"webhook": hook, "secret": new_secret, "is_rotated": True}
    return render(request, "webhooks/made.html", values)


@require_POST
def send_test_event(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a test event, which a worker sends."""
    hook = _find_own_webhook(request, pk)
    with show_as_message(request):
        services.send_test(webhook=hook)
        messages.success(request, _("Test sent. Refresh this page in a moment to see the result."))
    return redirect("webhooks:webhook", pk)


@require_POST
def resend_delivery(request: HttpRequest, pk: int, delivery: UUID) -> HttpResponse:
    """Queue a finished or abandoned delivery again."""
    hook = _find_own_webhook(request, pk)
    row = get_object_or_404(hook.deliveries.select_related("webhook"), pk=delivery)
    with show_as_message(request):
        services.send_again(delivery=row)
        messages.success(request, _("We'll send the event again."))
    return redirect("webhooks:webhook", pk)


@require_http_methods(["GET", "HEAD", "POST"])
def delete_own_webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then delete a webhook."""
    hook = _find_own_webhook(request, pk)
    if request.method != "POST":
        return render(request, "webhooks/delete.html", {"webhook": hook})
    services.delete_webhook(webhook=hook, actor=get_person(request))
    messages.success(request, _("Webhook deleted."))
    return redirect("webhooks:webhooks")
