"""The API's views about oneself, and how a write is answered once."""

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
from core.accounts.idempotency import HEADER, answer_once
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.accounts.reauthentication import did_recently
from core.accounts.services import annotator_of
from core.accounts.tokens import create_token, revoke_token
from core.errors import Refused
from core.web.api import read
from core.web.form_fields import request_field

View = TypeVar("View", bound=APIView)
Handler = Callable[..., Response]


def write(
    operation: str, takes: Any = empty, gives: Any = empty, *, is_secret: bool = False
) -> Callable[[Handler], Handler]:
    """Return a decorator that declares a writing operation: its name, body and responses.

    Every write of the API uses it. A request that is repeated with the same Idempotency-Key is
    executed once. is_secret: whether the response contains a secret and is stored encrypted.
    """
    key = OpenApiParameter(
        HEADER, str, OpenApiParameter.HEADER, description="The same key is done once, for a day."
    )
    describe = extend_schema(
        operation_id=operation, parameters=[key], request=takes, responses=gives
    )

    def described(handler: Handler) -> Handler:
        @wraps(handler)
        def answered(view: APIView, request: Request, *args: Any, **kwargs: Any) -> Response:
            user = person(request)  # no write is public
            work = partial(handler, view, request, *args, **kwargs)
            return answer_once(request, user, work, is_secret=is_secret)

        return describe(answered)  # type: ignore[no-any-return]

    return described


class Token(serializers.ModelSerializer[ApiToken]):
    """An API token without its key."""

    scopes = serializers.ListField(child=serializers.ChoiceField(ApiToken.Scope.choices))

    class Meta:
        model = ApiToken
        fields = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at")


class NewToken(serializers.Serializer[Any]):
    """The settings of a token to create."""

    name = request_field(TokenForm, "name")
    scopes = request_field(TokenForm, "scopes")
    days = request_field(TokenForm, "days")


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
        body = {"pseudonym": annotator_of(person(request)).pseudonym, "token": request.auth}
        return Response(Me(body).data)


class Tokens(generics.ListAPIView[ApiToken]):
    """Your tokens, without their keys."""

    # Only a session makes one: a token cannot make another that may do more.
    serializer_class = Token
    queryset = ApiToken.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        return ApiToken.objects.filter(user=self.request.user.pk)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Require a recently entered password for creating tokens, even for a repeated request.

        The response to a repeated request contains the secret, too. Raises Refused.
        """
        super().initial(request, *args, **kwargs)
        if request.method == "POST" and not did_recently(request._request):
            address = request.build_absolute_uri(reverse("account_reauthenticate"))
            raise Refused(
                f"Give your password again at {address}, then make the token.",
                code="reauthenticate",
                status=403,
            )

    @write("tokens_create", NewToken, {201: MadeToken}, is_secret=True)
    def post(self, request: Request) -> Response:
        """Create a token. Requires that you entered your password on the site minutes before.

        Only this response, and the response to a repeat of this request, contains the key.
        """
        token, key = create_token(user=person(request), **read(NewToken, request))
        return Response({**Token(token).data, "key": key}, status.HTTP_201_CREATED)


class TokenView(APIView):
    """One of your tokens."""

    write_scope = ApiToken.Scope.READ  # who holds a token may end it

    @write("tokens_revoke", gives={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token immediately. A token can only revoke itself."""
        own_tokens = ApiToken.objects.filter(user=request.user.pk, expires_at__gt=timezone.now())
        if request.auth is not None:
            own_tokens = own_tokens.filter(pk=request.auth.pk)
        revoke_token(token=generics.get_object_or_404(own_tokens, pk=pk), actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
