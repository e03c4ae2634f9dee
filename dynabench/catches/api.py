"""The API's addresses of catches: a task's wall, and the author's consent to a page."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Example
from core.accounts.api import write
from core.accounts.models import Annotator, ApiToken
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.api import NewestFirst
from dynabench.catches.selectors import CatchLine, select_public_catches
from dynabench.catches.services import share_catch, show_catches, withdraw_sharing
from tasks.access import find_task, require_permission
from tasks.models import Task
from tasks.permissions import can_see


class CatchSerializer(serializers.Serializer[CatchLine]):
    """A catch that everybody who sees the task may see."""

    uuid = serializers.UUIDField()
    round = serializers.IntegerField()
    text = serializers.CharField(help_text="What its author wrote, at most 280 characters.")
    answer = serializers.CharField(help_text="The author's answer, which people confirmed.")
    models_said = serializers.ListField(
        child=serializers.CharField(), help_text="The wrong answers of the models."
    )
    author = serializers.CharField(help_text="A pseudonym. Empty: the author did not agree.")
    is_shared = serializers.BooleanField(help_text="Whether it has a page of its own.")


class SharedSerializer(serializers.Serializer[Any]):
    """The page of a shared catch."""

    page = serializers.CharField(help_text="Its address on this site.")


@extend_schema_view(get=extend_schema(operation_id="catches_list"))
class CatchList(generics.ListAPIView[Any]):
    """The task's catches that everybody may see, newest first.

    They are rows of the training split of a released round. Sensitive tasks have none.
    """

    is_public = True
    serializer_class = CatchSerializer
    pagination_class = NewestFirst
    queryset = Example.objects.none()
    task: Task

    def get_queryset(self) -> QuerySet[Any]:
        """Return the task's public catches. Raises Http404 for sensitive tasks."""
        self.task = find_task(self.request, self.kwargs["code"])
        if self.task.is_sensitive:
            raise Http404
        return select_public_catches(self.task)

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Return a page of catches as lines, and record that they have been shown."""
        examples = super().paginate_queryset(queryset)
        return show_catches(self.request.user, self.task, examples or ())


class SharingView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE

    @write("catches_share", None, SharedSerializer)
    def put(self, request: Request, code: str, uuid: UUID) -> Response:
        """Give your own confirmed catch a page with your pseudonym.

        Others see the page once a release puts the example among the training data.
        """
        annotator, example = _find_own_example(request, code, uuid)
        require_permission(request.user, example.round.task, can_see)
        share_catch(annotator=annotator, example=example)
        return Response({"page": reverse("catches:catch", args=[code, uuid])})

    @write("catches_unshare", gives={204: None})
    def delete(self, request: Request, code: str, uuid: UUID) -> Response:
        """Remove the page of your own catch at once."""
        annotator, example = _find_own_example(request, code, uuid)
        withdraw_sharing(annotator=annotator, example=example)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_own_example(request: Request, code: str, uuid: UUID) -> tuple[Annotator, Example]:
    """Return the caller and their example of the task. Raises Http404 for others' examples.

    Does not check whether they may see the task: consent can be withdrawn without that.
    """
    annotator = get_annotator(get_person(request))
    rows = Example.objects.select_related("round__task").filter(annotator=annotator)
    return annotator, get_object_or_404(rows, round__task__code=code, uuid=uuid)


CATCHES_PATH = "tasks/<slug:code>/catches/"
urlpatterns = [
    path(CATCHES_PATH, CatchList.as_view(), name="catches"),
    path(f"{CATCHES_PATH}<uuid:uuid>/sharing/", SharingView.as_view(), name="catch-sharing"),
]
