"""Releasing a round: asking for a version of its data, and how far it is."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dynabench.accounts.api import write
from dynabench.accounts.models import ApiToken
from dynabench.accounts.people import person
from dynabench.lib.api import check_form, read
from evaluation.models import Dataset
from evaluation.releases.build import Options
from evaluation.releases.cards import LICENSES
from evaluation.releases.forms import ReleaseForm
from evaluation.releases.rows import counts_of
from evaluation.releases.services import request_release, suggested_sizes
from evaluation.releases.undo_services import undo_release
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_own

LARGEST = 2**31 - 1


def _rows(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=0, max_value=LARGEST, required=False, help_text=help_text
    )


class NewReleaseSerializer(serializers.Serializer[Any]):
    """What a version is to be. The splits are dealt once: later versions ignore the sizes."""

    train = _rows("Rows; unless told all that dev and test leave.")
    dev = _rows("Rows; unless told about a tenth.")
    test = _rows("Rows; unless told about a tenth.")
    seed = _rows("The same one gives the same splits.")
    license = serializers.ChoiceField([*LICENSES])
    description = serializers.CharField(
        max_length=5000, required=False, allow_blank=True, help_text="Markdown."
    )
    private_test = serializers.BooleanField(
        default=False, help_text="Only the task's members get the labels of the test split."
    )
    hold_back = serializers.BooleanField(
        default=False, help_text="A fifth of the confirmed examples is published in six months."
    )


class ReleaseSerializer(serializers.ModelSerializer[Dataset]):
    """A version that is there, is being made, or failed."""

    progress = serializers.FloatField(help_text="0-1.")
    error = serializers.CharField(help_text="Why it failed.")

    class Meta:
        model = Dataset
        fields = (
            *("version", "state", "progress", "message", "error"),
            *("queued_at", "started_at", "finished_at"),
        )


@extend_schema_view(get=extend_schema(operation_id="releases_list"))
class Releases(generics.ListAPIView[Dataset]):
    """Every version of a round's data, also one that is being made; for the task's owners."""

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"
    serializer_class = ReleaseSerializer
    queryset = Dataset.objects.none()

    def round(self) -> Round:
        """The round, for those who may release it."""
        task = find_task(self.request, self.kwargs["code"], can_own)
        rounds = task.rounds.select_related("task")
        return get_object_or_404(rounds, number=self.kwargs["number"])

    def get_queryset(self) -> QuerySet[Dataset]:
        return self.round().datasets.all()

    @write("releases_create", NewReleaseSerializer, {202: ReleaseSerializer})
    def post(self, request: Request, code: str, number: int) -> Response:
        """Release a closed round, or make its next version.

        A release that nobody has used can be undone.
        """
        round = self.round()
        asked = read(NewReleaseSerializer, request)
        page = request.build_absolute_uri(reverse("evaluation:datasets", args=[code, number]))
        options = _options(round, asked, page)
        made = request_release(round=round, options=options, actor=person(request))
        made.refresh_from_db()
        return Response(ReleaseSerializer(made).data, status.HTTP_202_ACCEPTED)


class Release(APIView):
    """The release of a round."""

    write_scope = ApiToken.Scope.OWN

    @write("releases_undo", gives={204: None})
    def delete(self, request: Request, code: str, number: int, version: int) -> Response:
        """Undo the first version, where nobody has used it: the round is closed again.

        409 names what prevents it: a later version, a download, a training, an evaluation, or a
        later round that was opened. For owners.
        """
        task = find_task(request, code, can_own)
        round = get_object_or_404(task.rounds.select_related("task"), number=number)
        get_object_or_404(round.datasets, version=version, state=Dataset.State.DONE)
        undo_release(round=round, actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _options(round: Round, asked: dict[str, Any], page: str) -> Options:
    """The owner's options, by the rules of the page's form."""
    if round.datasets.filter(state=Dataset.State.DONE).exists():
        form = ReleaseForm(None, asked)
    else:
        sizes = suggested_sizes(counts_of(round))
        form = ReleaseForm(sizes, {"dev": sizes.dev, "test": sizes.test, "seed": 0, **asked})
    check_form(form)
    return form.options(page)
