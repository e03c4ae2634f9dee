"""The API's addresses of webhooks."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.errors import Refused
from core.web.api import Pages, read
from core.web.form_fields import request_field
from dynabench.webhooks import services
from dynabench.webhooks.delivery import send_first_test
from dynabench.webhooks.forms import WebhookForm
from dynabench.webhooks.models import Delivery, Webhook
from tasks.selectors import find_visible_tasks


class WebhookShown(serializers.ModelSerializer[Webhook]):
    """A webhook without its secret."""

    task = serializers.SlugRelatedField[Any](  # type: ignore[misc]
        slug_field="code", read_only=True, allow_null=True, help_text="null: all that you may see."
    )
    events = serializers.ListField(child=serializers.ChoiceField(Webhook.Event.choices))
    is_on = serializers.BooleanField()

    class Meta:
        model = Webhook
        fields = ("id", "task", "url", "events", "is_on", "created_at", "failing_since")


class DeliveryShown(serializers.ModelSerializer[Delivery]):
    """An event sent to a webhook, and the outcome."""

    data = serializers.DictField(  # type: ignore[assignment]
        help_text="Ids and links.", read_only=True
    )

    class Meta:
        model = Delivery
        fields = (
            *("id", "event", "data", "happened_at", "state", "tries", "status", "error"),
            *("created_at", "tried_at", "due_at"),
        )


class WebhookMade(WebhookShown):
    """A webhook with its secret, which is not shown again."""

    secret = serializers.CharField()

    class Meta(WebhookShown.Meta):
        fields = (*WebhookShown.Meta.fields, "secret")  # type: ignore[assignment]


class WebhookRegistered(WebhookMade):
    """A new webhook with its secret, and the result of its first test."""

    contact = DeliveryShown(
        allow_null=True, help_text="It is not sent again. null: you sent too many tests."
    )

    class Meta(WebhookMade.Meta):
        fields = (*WebhookMade.Meta.fields, "contact")  # type: ignore[assignment]


class WebhookNew(serializers.Serializer[Any]):
    """The address and events of a new webhook."""

    url = request_field(WebhookForm, "url")
    events = request_field(WebhookForm, "events")
    task = serializers.CharField(
        max_length=40, allow_null=True, default=None, help_text="A task's code; null: all."
    )


class WebhookChange(serializers.Serializer[Any]):
    """The fields of a webhook to change."""

    url = request_field(WebhookForm, "url", required=False)
    events = request_field(WebhookForm, "events", required=False)
    is_on = serializers.BooleanField(required=False)


class NewestFirst(Pages):
    """A pagination of deliveries, newest first."""

    ordering = "-created_at"


def _find_own(request: Request, pk: int) -> Webhook:
    """Return the caller's own webhook. Raises Http404 for anybody else's."""
    return get_object_or_404(Webhook.objects.select_related("task"), pk=pk, user=request.user)


class Webhooks(generics.ListAPIView[Webhook]):
    """The caller's webhooks, without their secrets."""

    serializer_class = WebhookShown
    queryset = Webhook.objects.none()
    write_scope = ApiToken.Scope.SUBMIT

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Return the caller's webhooks."""
        return Webhook.objects.filter(user=self.request.user.pk).select_related("task")

    @write("webhooks_create", WebhookNew, {201: WebhookRegistered}, is_secret=True)
    def post(self, request: Request) -> Response:
        """Create a webhook and send it a test, whose result `contact` reports.

        The secret is contained only in this response and in responses to a repeat of this
        request.

        Events of models go to their owners and to the editors of their tasks.
        """
        fields = read(WebhookNew, request)
        code = fields["task"]
        fields["task"] = None
        if code:
            fields["task"] = find_visible_tasks(request.user).filter(code=code).first()
            if fields["task"] is None:
                raise Refused("There is no task of that code.", field="task", status=422)
        hook, secret = services.create_webhook(user=person(request), **fields)
        # After the transaction of the service, as a receiver may take seconds to answer.
        greeting = send_first_test(hook)
        contact = DeliveryShown(greeting).data if greeting else None
        body = WebhookShown(hook).data | {"secret": secret, "contact": contact}
        return Response(body, status.HTTP_201_CREATED)


class WebhookView(APIView):
    """One of the caller's webhooks."""

    write_scope = ApiToken.Scope.SUBMIT

    @extend_schema(operation_id="webhook_get", responses=WebhookShown)
    def get(self, request: Request, pk: int) -> Response:
        """Return a webhook, without its secret."""
        return Response(WebhookShown(_find_own(request, pk)).data)

    @write("webhook_change", WebhookChange, WebhookShown)
    def patch(self, request: Request, pk: int) -> Response:
        """Change a webhook's address or events, or switch it on or off."""
        hook = _find_own(request, pk)
        changes = read(WebhookChange, request)
        values = {"url": hook.url, "events": hook.events, "is_on": hook.is_on}
        services.change_webhook(webhook=hook, actor=person(request), **(values | changes))
        if hook.url != values["url"]:
            send_first_test(hook)  # the log has what came of it
        return Response(WebhookShown(hook).data)

    @write("webhook_delete", gives={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a webhook and its log."""
        hook = _find_own(request, pk)
        services.delete_webhook(webhook=hook, actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SecretView(APIView):
    """The secret of a webhook."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_rotate_secret", None, WebhookMade, is_secret=True)
    def post(self, request: Request, pk: int) -> Response:
        """Replace the secret; the old one stops working at once.

        The new secret is contained only in this response and in responses to a repeat of this
        request.
        """
        hook = _find_own(request, pk)
        secret = services.rotate_secret(webhook=hook, actor=person(request))
        return Response({**WebhookShown(hook).data, "secret": secret})


@extend_schema_view(get=extend_schema(operation_id="webhook_deliveries_list"))
class Deliveries(generics.ListAPIView[Delivery]):
    """The deliveries of the past 30 days with their outcomes, newest first."""

    serializer_class = DeliveryShown
    pagination_class = NewestFirst
    queryset = Delivery.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Return the deliveries of the caller's webhook."""
        return _find_own(self.request, self.kwargs["pk"]).deliveries.all()


class TestView(APIView):
    """A test delivery of a webhook."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_test", None, {202: DeliveryShown})
    def post(self, request: Request, pk: int) -> Response:
        """Send a test event without content at once; the log shows the outcome."""
        hook = _find_own(request, pk)
        delivery = services.send_test(webhook=hook)
        delivery.refresh_from_db()
        return Response(DeliveryShown(delivery).data, status.HTTP_202_ACCEPTED)


class AgainView(APIView):
    """A repeated delivery."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_send_again", None, {202: DeliveryShown})
    def post(self, request: Request, pk: int, delivery: UUID) -> Response:
        """Send a finished or abandoned delivery again, under the same id."""
        hook = _find_own(request, pk)
        row = get_object_or_404(hook.deliveries.select_related("webhook"), pk=delivery)
        services.send_again(delivery=row)
        row.refresh_from_db()
        return Response(DeliveryShown(row).data, status.HTTP_202_ACCEPTED)


urlpatterns = [
    path("webhooks/", Webhooks.as_view(), name="webhooks"),
    path("webhooks/<int:pk>/", WebhookView.as_view(), name="webhook"),
    path("webhooks/<int:pk>/deliveries/", Deliveries.as_view(), name="webhook-deliveries"),
    path("webhooks/<int:pk>/secret/", SecretView.as_view(), name="webhook-secret"),
    path(
        "webhooks/<int:pk>/deliveries/<uuid:delivery>/again/",
        AgainView.as_view(),
        name="webhook-again",
    ),
    path("webhooks/<int:pk>/test/", TestView.as_view(), name="webhook-test"),
]
