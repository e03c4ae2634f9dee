"""The API's views of one's own account, and the decorator of all writing requests."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.forms import TokenForm
from core.accounts.idempotency import KEY_HEADER, answer_once
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.accounts.reauthentication import has_authenticated_recently
from core.accounts.services import get_annotator
from core.accounts.tokens import create_token, revoke_token
from core.errors import Refused
from core.web.api import read
from core.web.form_fields import build_request_field

View = TypeVar("View", bound=APIView)
Handler = Callable[..., Response]


def write(
    operation: str, takes: Any = empty, gives: Any = empty, *, is_secret: bool = False
) -> Callable[[Handler], Handler]:
    """Return a decorator for methods of views that write. Every write of the API uses it.

    It declares the operation in the API's schema. It also executes a request only once, even if
    the client repeats it with the same Idempotency-Key.

    operation: the operation's id in the schema. takes: the serializer of the request's body. gives:
    the serializer of the response, or one for each status. is_secret: whether the response contains
    a secret, so that it is stored encrypted.
    """
    key = OpenApiParameter(
        KEY_HEADER,
        str,
        OpenApiParameter.HEADER,
        description="The same key is done once, for a day.",
    )
    describe = extend_schema(
        operation_id=operation, parameters=[key], request=takes, responses=gives
    )

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def handle_once(view: APIView, request: Request, *args: Any, **kwargs: Any) -> Response:
            user = get_person(request)  # no write is public
            work = partial(handler, view, request, *args, **kwargs)
            return answer_once(request, user, work, is_secret=is_secret)

        return describe(handle_once)  # type: ignore[no-any-return]

    return decorate


class Token(serializers.ModelSerializer[ApiToken]):
    """An API token without its key."""

    scopes = serializers.ListField(child=serializers.ChoiceField(ApiToken.Scope.choices))

    class Meta:
        model = ApiToken
        fields = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at")


class NewToken(serializers.Serializer[Any]):
    """The settings of a token to create."""

    name = build_request_field(TokenForm, "name")
    scopes = build_request_field(TokenForm, "scopes")
    days = build_request_field(TokenForm, "days")


class MadeToken(Token):
    """A token with its key, which cannot be read again later."""

    key = serializers.CharField()

    class Meta(Token.Meta):
        fields = (*Token.Meta.fields, "key")  # type: ignore[assignment]


class Me(serializers.Serializer[Any]):
    """The person who sends the request."""

    pseudonym = serializers.CharField(help_text="The name that others see.")
    token = Token(allow_null=True, help_text="The token of this request; null: a session.")


class MeView(APIView):
    """The person who sends the request."""

    @extend_schema(operation_id="me_get", responses=Me)
    def get(self, request: Request) -> Response:
        """Return the token's owner, its scopes and when it expires."""
        body = {"pseudonym": get_annotator(get_person(request)).pseudonym, "token": request.auth}
        return Response(Me(body).data)


class Tokens(generics.ListAPIView[ApiToken]):
    """Your tokens, without their keys."""

    # Only a session makes one: a token cannot make another that may do more.
    serializer_class = Token
    queryset = ApiToken.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        return ApiToken.objects.filter(user=self.request.user.pk)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse to create a token unless the person has authenticated recently. Raises Refused.

        The rule also applies to a repeated request, because its response contains the secret.
        """
        super().initial(request, *args, **kwargs)
        if request.method == "POST" and not has_authenticated_recently(request._request):
            address = request.build_absolute_uri(reverse("account_reauthenticate"))
            raise Refused(
                f"Enter your password again at {address}, then create the token.",
                code="reauthenticate",
                status=403,
            )

    @write("tokens_create", NewToken, {201: MadeToken}, is_secret=True)
    def post(self, request: Request) -> Response:
        """Create a token. You must have confirmed your identity on the site shortly before.

        Only this response, and the response to a repeat of this request, contains the key.
        """
        token, key = create_token(user=get_person(request), **read(NewToken, request))
        return Response({**Token(token).data, "key": key}, status.HTTP_201_CREATED)


class TokenView(APIView):
    """One of your tokens."""

    write_scope = ApiToken.Scope.READ  # who holds a token may end it

    @write("tokens_revoke", gives={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token immediately.

        In a session you can revoke any of your tokens. With a token you can revoke only that token.
        """
        own_tokens = ApiToken.objects.filter(user=request.user.pk, expires_at__gt=timezone.now())
        if request.auth is not None:
            own_tokens = own_tokens.filter(pk=request.auth.pk)
        revoke_token(token=generics.get_object_or_404(own_tokens, pk=pk), actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
