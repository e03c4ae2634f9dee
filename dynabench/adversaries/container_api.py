"""The API's addresses of images with programs: bring one, allow it, and read its state."""

from typing import Any

from django.db.models import QuerySet
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
from core.errors import Invalid
from core.web.api import NewestFirst, read
from dynabench.adversaries.access import find_runnable_adversary
from dynabench.adversaries.api import ADVERSARIES_PATH
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.adversaries.image_services import allow_image, bring_image
from dynabench.adversaries.models import AdversaryImage
from evaluation.isolation.uploads.chunked import select_open_uploads
from tasks.access import find_task


class AdversaryImageSerializer(serializers.ModelSerializer[AdversaryImage]):
    """A container image with an adversary's program."""

    is_allowed = serializers.SerializerMethodField(help_text="Whether an owner has allowed it.")

    class Meta:
        model = AdversaryImage
        fields = ("number", "source", "file_name", "state", "progress", "message") + (
            "error",
            "digest",
            "size",
            "is_allowed",
            "queued_at",
        )

    def get_is_allowed(self, image: AdversaryImage) -> bool:
        """Return whether an owner has allowed it."""
        return image.allowed_at is not None


class NewImageSerializer(serializers.Serializer[Any]):
    """A container image: the id of an upload, or its name in a registry."""

    source = serializers.CharField(  # type: ignore[assignment]
        max_length=500,
        default="",
        allow_blank=True,
        help_text="In a public registry, with its digest: name@sha256:…",
    )
    upload = serializers.UUIDField(
        default=None, allow_null=True, help_text="An upload of the output of docker save."
    )


@extend_schema_view(get=extend_schema(operation_id="adversary_images_list"))
class AdversaryImages(generics.ListAPIView[AdversaryImage]):
    """The images of an adversary, newest first.

    For the account that the owners named, and for editors who may read labels.
    """

    write_scope = ApiToken.Scope.SUBMIT
    serializer_class = AdversaryImageSerializer
    pagination_class = NewestFirst
    queryset = AdversaryImage.objects.none()

    def get_queryset(self) -> QuerySet[AdversaryImage]:
        """Return the adversary's images."""
        return find_runnable_adversary(self.request, **self.kwargs).images.all()

    @write("adversary_images_bring", NewImageSerializer, {201: AdversaryImageSerializer})
    def post(self, request: Request, code: str, pk: int) -> Response:
        """Bring an image. A worker checks it, and an owner allows it unless you are one."""
        person, adversary = get_person(request), find_runnable_adversary(request, code, pk)
        values, upload = read(NewImageSerializer, request), None
        if values["upload"]:
            upload = select_open_uploads(person).filter(pk=values["upload"]).first()
            if upload is None:
                raise Invalid("You have no such file here. Upload it.", field="upload")
        image = bring_image(
            adversary=adversary, actor=person, source=values["source"], upload=upload
        )
        return Response(AdversaryImageSerializer(image).data, status.HTTP_201_CREATED)


class AllowImage(APIView):
    """The permission for an image to run."""

    write_scope = ApiToken.Scope.OWN

    @write("adversary_images_allow", None, AdversaryImageSerializer)
    def post(self, request: Request, code: str, pk: int, number: int) -> Response:
        """Allow runs with a checked image. Editors who may read labels only."""
        task = find_task(request, code, can_run_adversaries)
        images = AdversaryImage.objects.select_related("adversary__task")
        image = get_object_or_404(images, adversary__task=task, adversary=pk, number=number)
        allow_image(image=image, actor=get_person(request))
        image.refresh_from_db()
        return Response(AdversaryImageSerializer(image).data)


urlpatterns = [
    path(f"{ADVERSARIES_PATH}<int:pk>/images/", AdversaryImages.as_view(), name="adversary-images"),
    path(
        f"{ADVERSARIES_PATH}<int:pk>/images/<int:number>/allow/",
        AllowImage.as_view(),
        name="adversary-image-allow",
    ),
]
