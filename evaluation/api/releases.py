"""Releasing a round: asking for a version of its data, and how far it is."""

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import person
from core.web.api import check_form, read, wanted
from core.web.form_fields import request_field
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.cards import LICENSES
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import forecast, propose_sizes
from evaluation.dataset_releases.forms import ReleaseForm
from evaluation.dataset_releases.rows import count_rows
from evaluation.dataset_releases.services import (
    ReleaseRefused,
    check_sizes,
    request_release,
    suggest_sizes,
)
from evaluation.dataset_releases.splits import Counts
from evaluation.dataset_releases.undo_services import undo_release
from evaluation.models import Dataset
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_own

MAX_INTEGER = 2**31 - 1


class SizesSerializer(serializers.Serializer[Any]):
    """The sizes of the splits, in rows."""

    train = request_field(
        ReleaseForm,
        "train",
        allow_null=False,
        help_text="Rows; unless told all that dev and test leave.",
    )
    dev = request_field(
        ReleaseForm, "dev", required=False, help_text="Rows; unless told about a tenth."
    )
    test = request_field(
        ReleaseForm, "test", required=False, help_text="Rows; unless told about a tenth."
    )
    seed = request_field(
        ReleaseForm, "seed", required=False, help_text="The same one gives the same splits."
    )
    hold_back = request_field(
        ReleaseForm,
        "hold_back",
        help_text="A fifth of the confirmed examples is published in six months.",
    )


def _counts_field(help_text: str, *, required: bool = True) -> serializers.DictField:
    count = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER)
    return serializers.DictField(child=count, required=required, help_text=help_text)


class NewReleaseSerializer(SizesSerializer):
    """A version to release. Rows are split once, so later versions ignore the sizes."""

    license = request_field(ReleaseForm, "license", choices=[*LICENSES])
    description = request_field(ReleaseForm, "description", help_text="Markdown.")
    private_test = request_field(
        ReleaseForm,
        "private_test",
        help_text="Only the task's members get the labels of the test split.",
    )
    confirmed = _counts_field(
        "The `rows` of a preview. A release that would hold other rows is refused (`changed`).",
        required=False,
    )


class ProposalSerializer(serializers.Serializer[Any]):
    """Suggested sizes that leave out few rows."""

    dev = serializers.IntegerField()
    test = serializers.IntegerField()
    rows = _counts_field("By split.")
    lost = serializers.IntegerField(help_text="Rows without a place in these splits.")


class ReleasePreviewSerializer(serializers.Serializer[Any]):
    """The rows that a release with these sizes would contain and leave out."""

    rows = _counts_field("By split; `program` and `held` only where they have rows.")
    left_out = _counts_field("All other examples of the round, by reason.")
    reasons = serializers.DictField(
        child=serializers.CharField(), help_text="Each reason of `left_out` in words."
    )
    proposals = ProposalSerializer(
        many=True, help_text="The first is what a release takes unless told."
    )


class ReleaseSerializer(serializers.ModelSerializer[Dataset]):
    """A version that is finished, is being made, or failed."""

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
    """List all versions of a round's data, including one that is being made. Task owners only."""

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"
    serializer_class = ReleaseSerializer
    queryset = Dataset.objects.none()

    def round(self) -> Round:
        """The round. Raises Http404 for people who may not release it."""
        return _owned_round(self.request, self.kwargs["code"], self.kwargs["number"])

    def get_queryset(self) -> QuerySet[Dataset]:
        return self.round().datasets.all()

    @write("releases_create", NewReleaseSerializer, {202: ReleaseSerializer})
    def post(self, request: Request, code: str, number: int) -> Response:
        """Release a closed round, or make its next version.

        A release that nobody has used can be undone.
        """
        round = self.round()
        fields = read(NewReleaseSerializer, request)
        page = request.build_absolute_uri(reverse("evaluation:datasets", args=[code, number]))
        options = _options(round, fields, page)
        dataset = request_release(round=round, options=options, actor=person(request))
        dataset.refresh_from_db()  # a worker may have begun
        return Response(ReleaseSerializer(dataset).data, status.HTTP_202_ACCEPTED)


class ReleasePreview(APIView):
    """A forecast of the first version of a round's data."""

    reads_query = ("GET",)

    @extend_schema(
        operation_id="releases_preview",
        parameters=[SizesSerializer],
        responses=ReleasePreviewSerializer,
    )
    def get(self, request: Request, code: str, number: int) -> Response:
        """Forecast the rows that a release with these sizes would contain. Stores nothing.

        Works while people still write and judge. Fails with 409 if the round was released, or if
        these sizes are impossible; the error then suggests possible sizes. Task owners only.
        """
        round = _owned_round(request, code, number)
        sizes = wanted(SizesSerializer, request)
        # Later versions keep the splits of the first one.
        if round.datasets.filter(state=Dataset.State.DONE).exists():
            raise ReleaseRefused("The round was released. Later versions keep its splits.")
        census = take_census(round)
        form = _first_form(census.counts, {**sizes, "license": Options.license})
        plan = check_sizes(census, form.options(""))
        choices = []
        for proposal in propose_sizes(census.counts):
            choice = forecast(census, proposal, seed=0)
            splits = {"dev": proposal.dev, "test": proposal.test, "rows": choice.rows}
            choices.append({**splits, "lost": sum(choice.lost.values())})
        body = {
            "rows": plan.rows,
            "left_out": plan.left_out,
            "reasons": {name: REASONS[name] for name in plan.left_out},
            "proposals": choices,
        }
        return Response(ReleasePreviewSerializer(body).data)


class Release(APIView):
    """The release of a round."""

    write_scope = ApiToken.Scope.OWN

    @write("releases_undo", gives={204: None})
    def delete(self, request: Request, code: str, number: int, version: int) -> Response:
        """Undo the first version if nobody has used it. The round becomes closed again.

        Fails with 409, which names the reasons: a later version, a download, a training, an
        evaluation, or a later round that was opened. Task owners only.
        """
        round = _owned_round(request, code, number)
        get_object_or_404(round.datasets, version=version, state=Dataset.State.DONE)
        undo_release(round=round, actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _owned_round(request: Request, code: str, number: int) -> Round:
    """Return the round. Raises Http404 for people who may not release it."""
    rounds = find_task(request, code, can_own).rounds.select_related("task")
    return get_object_or_404(rounds, number=number)


def _options(round: Round, fields: dict[str, Any], page: str) -> Options:
    """Return the release options in the fields, checked by the page's form."""
    if round.datasets.filter(state=Dataset.State.DONE).exists():
        form = ReleaseForm(None, fields)
        check_form(form)
    else:
        form = _first_form(count_rows(round), fields)
    return replace(form.options(page), confirmed=fields.get("confirmed"))


def _first_form(counts: Counts, fields: dict[str, Any]) -> ReleaseForm:
    """Return the checked form of a first version.

    Sizes that are not given are the suggested ones.
    """
    sizes = suggest_sizes(counts)
    form = ReleaseForm(sizes, {"dev": sizes.dev, "test": sizes.test, "seed": 0, **fields})
    check_form(form)
    return form
