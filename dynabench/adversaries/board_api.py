"""The API's addresses of the board of adversaries, and of questions to other models."""

from collections import defaultdict
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from core.accounts.api import write
from core.accounts.people import get_person
from dynabench.adversaries.api import ADVERSARIES_PATH, AdversaryAPIView
from dynabench.adversaries.board import BoardRow, build_board
from dynabench.adversaries.models import TransferCheck
from dynabench.adversaries.transfer_selectors import (
    TransferRow,
    build_transfer_rows,
    find_last_check,
)
from dynabench.adversaries.transfer_services import request_transfer_check, stop_transfer_check
from validation.api.statistics import RateSerializer
from validation.rates.rates import Rate


class MeasuredSerializer(serializers.Serializer[Any]):
    """A number with its 95% interval."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class TransferSerializer(serializers.Serializer[Any]):
    """How many catches fool a model that was not asked when they were found."""

    model = serializers.CharField(help_text="Its name.")
    share = RateSerializer(help_text="Of the catches about which it gave an answer.")
    clusters = serializers.IntegerField(
        help_text="Runs or people whose catches these are. The interval is clustered by them."
    )


class AdversaryBoardRowSerializer(serializers.Serializer[Any]):
    """What an adversary, or all people together, achieved. docs/adversaries.md explains it."""

    code = serializers.CharField(help_text="`people`, `helped`, or an adversary's id.")
    name = serializers.CharField()
    calls = serializers.IntegerField()
    tries = serializers.IntegerField()
    examples = serializers.IntegerField()
    fooled = serializers.IntegerField()
    waiting = serializers.IntegerField()
    catches = serializers.IntegerField()
    refuted = serializers.IntegerField()
    validity = serializers.SerializerMethodField()
    calls_per_catch = MeasuredSerializer(allow_null=True)
    cost_per_catch = MeasuredSerializer(allow_null=True)
    pass_chance = MeasuredSerializer(
        allow_null=True, help_text="Chance that one of ten tries is a catch."
    )
    novelty = MeasuredSerializer(allow_null=True)
    coverage = serializers.FloatField(allow_null=True)
    transfer = serializers.SerializerMethodField()

    @extend_schema_field(RateSerializer(allow_null=True))
    def get_validity(self, row: BoardRow) -> Any:
        """Return the share of decided examples that are catches; null before the first one."""
        return RateSerializer(row.validity).data if isinstance(row.validity, Rate) else None

    @extend_schema_field(TransferSerializer(many=True))
    def get_transfer(self, row: BoardRow) -> Any:
        """Return the shares on the models that this row never asked."""
        return TransferSerializer(self.context["transfer"][row.code], many=True).data


class TransferCheckSerializer(serializers.ModelSerializer[TransferCheck]):
    """A request to ask a task's other models about its catches."""

    unasked = serializers.DictField(
        child=serializers.CharField(), help_text="Why models gave no answers, by name."
    )

    class Meta:
        model = TransferCheck
        fields = ("id", "state", "calls", "unasked", "message", "error", "queued_at", "finished_at")


class AdversaryBoardSerializer(serializers.Serializer[Any]):
    """The board of a task's adversaries, beside people in the same rounds."""

    rows = AdversaryBoardRowSerializer(many=True, help_text="Empty before the first run.")
    transfer_check = TransferCheckSerializer(
        allow_null=True, help_text="The last one; null: none was requested."
    )


class AdversaryBoard(AdversaryAPIView):
    """The board of a task's adversaries."""

    @extend_schema(operation_id="adversary_board_get", responses=AdversaryBoardSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Return what adversaries and people achieved. Editors who may read labels only."""
        task = self.get_attacked_task()
        transfer: defaultdict[str, list[TransferRow]] = defaultdict(list)
        for row in build_transfer_rows(task):
            transfer[row.code].append(row)
        board = {"rows": build_board(task), "transfer_check": find_last_check(task)}
        serializer = AdversaryBoardSerializer(board, context={"transfer": transfer})
        return Response(serializer.data)


class AdversaryTransfer(AdversaryAPIView):
    """The questions to a task's other models about its catches."""

    @write("transfer_check_start", None, {201: TransferCheckSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Ask the task's other models about the board's catches, on the queue."""
        check = request_transfer_check(task=self.get_attacked_task(), actor=get_person(request))
        return Response(TransferCheckSerializer(check).data, status.HTTP_201_CREATED)

    @write("transfer_check_stop", gives={200: TransferCheckSerializer})
    def delete(self, request: Request, code: str) -> Response:
        """Stop asking. The answers so far stay."""
        check = stop_transfer_check(task=self.get_attacked_task(), actor=get_person(request))
        return Response(TransferCheckSerializer(check).data)


urlpatterns = [
    path(f"{ADVERSARIES_PATH}board/", AdversaryBoard.as_view(), name="adversaries-board"),
    path(f"{ADVERSARIES_PATH}transfer/", AdversaryTransfer.as_view(), name="adversaries-transfer"),
]
