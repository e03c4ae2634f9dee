"""API views of releases: requesting a version of a round's data, and following its progress."""

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
from core.accounts.people import get_person
from core.web.api import check_form, read, read_query
from core.web.form_fields import build_request_field
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.cards import LICENSES
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import compute_forecast, propose_sizes
from evaluation.dataset_releases.forms import ReleaseForm
from evaluation.dataset_releases.rows import count_rows
from evaluation.dataset_releases.services import (
    ReleaseRefused,
    check_sizes,
    request_release,
    suggest_sizes,
)
from evaluation.dataset_releases.splits import RowCounts
from evaluation.dataset_releases.statements import StatementsForm
from evaluation.dataset_releases.undo_services import undo_release
from evaluation.models import Dataset
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_own

MAX_INTEGER = 2**31 - 1


class SplitSizesSerializer(serializers.Serializer[Any]):
    """The sizes of the splits, in rows."""

    train = build_request_field(
        ReleaseForm,
        "train",
        allow_null=False,
        help_text="Number of rows. Default: all rows that dev and test leave.",
    )
    dev = build_request_field(
        ReleaseForm, "dev", required=False, help_text="Number of rows. Default: about a tenth."
    )
    test = build_request_field(
        ReleaseForm, "test", required=False, help_text="Number of rows. Default: about a tenth."
    )
    seed = build_request_field(
        ReleaseForm, "seed", required=False, help_text="The same one gives the same splits."
    )
    hold_back = build_request_field(
        ReleaseForm,
        "hold_back",
        help_text="A fifth of the confirmed examples is published in six months.",
    )


def _build_counts_field(help_text: str, *, required: bool = True) -> serializers.DictField:
    count = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER)
    return serializers.DictField(child=count, required=required, help_text=help_text)


class StatementsSerializer(serializers.Serializer[Any]):
    """What only the owner can state about the data. Each may be empty."""

    limitations = build_request_field(StatementsForm, "limitations")
    biases = build_request_field(StatementsForm, "biases")
    personal_information = build_request_field(StatementsForm, "personal_information")
    use_cases = build_request_field(StatementsForm, "use_cases")
    social_impact = build_request_field(StatementsForm, "social_impact")
    maintenance_plan = build_request_field(StatementsForm, "maintenance_plan")
    demographics = build_request_field(StatementsForm, "demographics")
    raw_data = build_request_field(StatementsForm, "raw_data")
    preprocessing = build_request_field(StatementsForm, "preprocessing")


class NewReleaseSerializer(SplitSizesSerializer):
    """A version to release. Rows are split once, so later versions ignore the sizes."""

    license = build_request_field(ReleaseForm, "license", choices=[*LICENSES])
    description = build_request_field(ReleaseForm, "description", help_text="Markdown.")
    private_test = build_request_field(
        ReleaseForm,
        "private_test",
        help_text="Only the task's members get the labels of the test split.",
    )
    statements = StatementsSerializer(
        required=False, help_text="Default: the statements of the version before."
    )
    confirmed = _build_counts_field(
        "The `rows` of a preview. A release that would contain other rows is refused (`changed`).",
        required=False,
    )


class ProposalSerializer(serializers.Serializer[Any]):
    """Suggested sizes that leave out few rows."""

    dev = serializers.IntegerField()
    test = serializers.IntegerField()
    rows = _build_counts_field("By split.")
    lost = serializers.IntegerField(help_text="Rows without a place in these splits.")


class ReleasePreviewSerializer(serializers.Serializer[Any]):
    """The rows that a release with these sizes would contain and leave out."""

    rows = _build_counts_field("By split; `program` and `held` only where they have rows.")
    left_out = _build_counts_field("All other examples of the round, by reason.")
    reasons = serializers.DictField(
        child=serializers.CharField(), help_text="Each reason of `left_out` in words."
    )
    proposals = ProposalSerializer(many=True, help_text="The first is the default of a release.")


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

    def find_round(self) -> Round:
        """Return the round. Raises Http404 for people who may not release it."""
        return _find_owned_round(self.request, self.kwargs["code"], self.kwargs["number"])

    def get_queryset(self) -> QuerySet[Dataset]:
        return self.find_round().datasets.all()

    @write("releases_create", NewReleaseSerializer, {202: ReleaseSerializer})
    def post(self, request: Request, code: str, number: int) -> Response:
        """Release a closed round, or make its next version. Task owners only.

        A release that nobody has used can be undone.
        """
        round = self.find_round()
        fields = read(NewReleaseSerializer, request)
        page_url = request.build_absolute_uri(reverse("evaluation:datasets", args=[code, number]))
        options = _build_options(round, fields, page_url)
        dataset = request_release(round=round, options=options, actor=get_person(request))
        dataset.refresh_from_db()  # a worker may have started it
        return Response(ReleaseSerializer(dataset).data, status.HTTP_202_ACCEPTED)


class ReleasePreview(APIView):
    """A forecast of the first version of a round's data."""

    reads_query = ("GET",)

    @extend_schema(
        operation_id="releases_preview",
        parameters=[SplitSizesSerializer],
        responses=ReleasePreviewSerializer,
    )
    def get(self, request: Request, code: str, number: int) -> Response:
        """Forecast the rows that a release with these sizes would contain. Stores nothing.

        Works while people still write and judge. Fails with 409 if the round was released, or if
        these sizes are impossible; the error then suggests possible sizes. Task owners only.
        """
        round = _find_owned_round(request, code, number)
        sizes = read_query(SplitSizesSerializer, request)
        # Later versions keep the splits of the first one.
        if round.datasets.filter(state=Dataset.State.DONE).exists():
            raise ReleaseRefused("The round was released. Later versions keep its splits.")
        census = take_census(round)
        form = _build_first_form(census.counts, {**sizes, "license": Options.license})
        planned_release = check_sizes(census, form.build_options(""))
        described_proposals = []
        for proposal in propose_sizes(census.counts):
            proposed_release = compute_forecast(census, proposal, seed=0)
            splits = {"dev": proposal.dev, "test": proposal.test, "rows": proposed_release.rows}
            described_proposals.append(
                {**splits, "lost": sum(proposed_release.lost_by_reason.values())}
            )
        body = {
            "rows": planned_release.rows,
            "left_out": planned_release.left_out,
            "reasons": {name: REASONS[name] for name in planned_release.left_out},
            "proposals": described_proposals,
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
        round = _find_owned_round(request, code, number)
        get_object_or_404(round.datasets, version=version, state=Dataset.State.DONE)
        undo_release(round=round, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_owned_round(request: Request, code: str, number: int) -> Round:
    """Return the round. Raises Http404 for people who may not release it."""
    rounds = find_task(request, code, can_own).rounds.select_related("task")
    return get_object_or_404(rounds, number=number)


def _build_options(round: Round, fields: dict[str, Any], page_url: str) -> Options:
    """Return the release options that a request's fields give, checked by the page's form."""
    statements = fields.get("statements")
    fields = {**fields, **(statements or {})}
    if round.datasets.filter(state=Dataset.State.DONE).exists():
        form = ReleaseForm(None, fields)
        check_form(form)
    else:
        form = _build_first_form(count_rows(round), fields)
    options = replace(form.build_options(page_url), confirmed=fields.get("confirmed"))
    # Omitted statements are taken from the previous version.
    return options if statements is not None else replace(options, statements=None)


def _build_first_form(counts: RowCounts, fields: dict[str, Any]) -> ReleaseForm:
    """Return the checked form of a first version.

    Sizes that are not given are the suggested ones.
    """
    sizes = suggest_sizes(counts)
    form = ReleaseForm(sizes, {"dev": sizes.dev, "test": sizes.test, "seed": 0, **fields})
    check_form(form)
    return form
