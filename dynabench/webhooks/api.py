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
from core.accounts.people import get_person
from core.errors import Refused
from core.web.api import Pages, read
from core.web.form_fields import build_request_field
from dynabench.webhooks import services
from dynabench.webhooks.delivery import send_first_test
from dynabench.webhooks.forms import WebhookForm
from dynabench.webhooks.models import Delivery, Webhook
from tasks.selectors import find_visible_tasks


class WebhookShownSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook without its secret."""

    task = serializers.SlugRelatedField[Any](  # type: ignore[misc]
        slug_field="code", read_only=True, allow_null=True, help_text="null: all tasks you can see."
    )
    events = serializers.ListField(child=serializers.ChoiceField(Webhook.Event.choices))
    is_on = serializers.BooleanField()

    class Meta:
        model = Webhook
        fields = ("id", "task", "url", "events", "is_on", "created_at", "failing_since")


class DeliveryShownSerializer(serializers.ModelSerializer[Delivery]):
    """An event sent to a webhook, and the outcome."""

    data = serializers.DictField(  # type: ignore[assignment]
        help_text="IDs and links.", read_only=True
    )

    class Meta:
        model = Delivery
        fields = (
            *("id", "event", "data", "happened_at", "state", "tries", "status", "error"),
            *("created_at", "tried_at", "due_at"),
        )


class WebhookMadeSerializer(WebhookShownSerializer):
    """A webhook with its secret, which is not shown again."""

    secret = serializers.CharField()

    class Meta(WebhookShownSerializer.Meta):
        fields = (*WebhookShownSerializer.Meta.fields, "secret")  # type: ignore[assignment]


class WebhookRegisteredSerializer(WebhookMadeSerializer):
    """A new webhook with its secret, and the result of its first test."""

    contact = DeliveryShownSerializer(
        allow_null=True,
        help_text="Result of the first test. It is not retried. null: too many tests were sent.",
    )

    class Meta(WebhookMadeSerializer.Meta):
        fields = (*WebhookMadeSerializer.Meta.fields, "contact")  # type: ignore[assignment]


class WebhookNewSerializer(serializers.Serializer[Any]):
    """The address and events of a new webhook."""

    url = build_request_field(WebhookForm, "url")
    events = build_request_field(WebhookForm, "events")
    task = serializers.CharField(
        max_length=40, allow_null=True, default=None, help_text="A task's code. null: all tasks."
    )


class WebhookChangeSerializer(serializers.Serializer[Any]):
    """The fields of a webhook to change."""

    url = build_request_field(WebhookForm, "url", required=False)
    events = build_request_field(WebhookForm, "events", required=False)
    is_on = serializers.BooleanField(required=False)


class DeliveryPages(Pages):
    """A pagination of deliveries, newest first."""

    ordering = "-created_at"


def _find_own_webhook(request: Request, pk: int) -> Webhook:
    """Return the caller's own webhook. Raises Http404 for anybody else's."""
    return get_object_or_404(Webhook.objects.select_related("task"), pk=pk, user=request.user)


class WebhookList(generics.ListAPIView[Webhook]):
    """The caller's webhooks, without their secrets."""

    serializer_class = WebhookShownSerializer
    queryset = Webhook.objects.none()
    write_scope = ApiToken.Scope.SUBMIT

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Return the caller's webhooks."""
        return Webhook.objects.filter(user=self.request.user.pk).select_related("task")

    @write(
        "webhooks_create", WebhookNewSerializer, {201: WebhookRegisteredSerializer}, is_secret=True
    )
    def post(self, request: Request) -> Response:
        """Create a webhook and send it a test. `contact` in the response reports the test's result.

        The secret is contained only in this response and in responses to a repeat of this request.

        Events of models go to their owners and to the editors of their tasks.
        """
        fields = read(WebhookNewSerializer, request)
        code = fields["task"]
        fields["task"] = None
        if code:
            fields["task"] = find_visible_tasks(request.user).filter(code=code).first()
            if fields["task"] is None:
                raise Refused("You can't see a task with this code.", field="task", status=422)
        hook, secret = services.create_webhook(user=get_person(request), **fields)
        # After the transaction of the service, as a receiver may take seconds to answer.
        test_delivery = send_first_test(hook)
        contact = DeliveryShownSerializer(test_delivery).data if test_delivery else None
        body = WebhookShownSerializer(hook).data | {"secret": secret, "contact": contact}
        return Response(body, status.HTTP_201_CREATED)


class WebhookView(APIView):
    """One of the caller's webhooks."""

    write_scope = ApiToken.Scope.SUBMIT

    @extend_schema(operation_id="webhook_get", responses=WebhookShownSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Return a webhook, without its secret."""
        return Response(WebhookShownSerializer(_find_own_webhook(request, pk)).data)

    @write("webhook_change", WebhookChangeSerializer, WebhookShownSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Change a webhook's address or events, or switch it on or off.

        If the address changes, a test is sent to the new one.
        """
        hook = _find_own_webhook(request, pk)
        changes = read(WebhookChangeSerializer, request)
        values = {"url": hook.url, "events": hook.events, "is_on": hook.is_on}
        services.change_webhook(webhook=hook, actor=get_person(request), **(values | changes))
        if hook.url != values["url"]:
            send_first_test(hook)  # the log has what came of it
        return Response(WebhookShownSerializer(hook).data)

    @write("webhook_delete", gives={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a webhook and its log."""
        hook = _find_own_webhook(request, pk)
        services.delete_webhook(webhook=hook, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SecretView(APIView):
    """The secret of a webhook."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_rotate_secret", None, WebhookMadeSerializer, is_secret=True)
    def post(self, request: Request, pk: int) -> Response:
        """Replace the secret; the old one stops working at once.

        The new secret is contained only in this response and in responses to a repeat of this
        request.
        """
        hook = _find_own_webhook(request, pk)
        secret = services.rotate_secret(webhook=hook, actor=get_person(request))
        return Response({**WebhookShownSerializer(hook).data, "secret": secret})


@extend_schema_view(get=extend_schema(operation_id="webhook_deliveries_list"))
class DeliveryList(generics.ListAPIView[Delivery]):
    """The deliveries of the past 30 days with their outcomes, newest first."""

    serializer_class = DeliveryShownSerializer
    pagination_class = DeliveryPages
    queryset = Delivery.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Return the deliveries of the caller's webhook."""
        return _find_own_webhook(self.request, self.kwargs["pk"]).deliveries.all()


class TestView(APIView):
    """A test delivery of a webhook."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_test", None, {202: DeliveryShownSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Queue a test event without content. The log shows the outcome."""
        hook = _find_own_webhook(request, pk)
        delivery = services.send_test(webhook=hook)
        delivery.refresh_from_db()
        return Response(DeliveryShownSerializer(delivery).data, status.HTTP_202_ACCEPTED)


class ResendView(APIView):
    """A repeated delivery."""

    write_scope = ApiToken.Scope.SUBMIT

    @write("webhook_send_again", None, {202: DeliveryShownSerializer})
    def post(self, request: Request, pk: int, delivery: UUID) -> Response:
        """Queue a finished or abandoned delivery again, under the same id."""
        hook = _find_own_webhook(request, pk)
        row = get_object_or_404(hook.deliveries.select_related("webhook"), pk=delivery)
        services.send_again(delivery=row)
        row.refresh_from_db()
        return Response(DeliveryShownSerializer(row).data, status.HTTP_202_ACCEPTED)


urlpatterns = [
    path("webhooks/", WebhookList.as_view(), name="webhooks"),
    path("webhooks/<int:pk>/", WebhookView.as_view(), name="webhook"),
    path("webhooks/<int:pk>/deliveries/", DeliveryList.as_view(), name="webhook-deliveries"),
    path("webhooks/<int:pk>/secret/", SecretView.as_view(), name="webhook-secret"),
    path(
        "webhooks/<int:pk>/deliveries/<uuid:delivery>/again/",
        ResendView.as_view(),
        name="webhook-again",
    ),
    path("webhooks/<int:pk>/test/", TestView.as_view(), name="webhook-test"),
]
