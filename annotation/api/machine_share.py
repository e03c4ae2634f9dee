"""The API's address of the estimated share of machine-written texts in a round."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.machine_text.selectors import build_machine_share_report
from tasks.access import find_task, require_permission
from tasks.permissions import can_own, can_read


class SignalShareSerializer(serializers.Serializer[Any]):
    """How often a signal fired in the texts under one condition. It is no share of machine texts.

    Only for texts by at least ten people.
    """

    condition = serializers.CharField(help_text="none, paste_off, ask or hidden.")
    signal = serializers.CharField(help_text="pasted, fast, admitted or followed.")
    texts = serializers.IntegerField()
    fired = serializers.IntegerField()
    share = serializers.FloatField(help_text="From 0 to 1.")


class MachineShareSerializer(serializers.Serializer[Any]):
    """The estimated share of machine-written texts, never a verdict on a text or a person."""

    share = serializers.FloatField(allow_null=True, help_text="From 0 to 1. null: see `reason`.")
    low = serializers.FloatField(allow_null=True, help_text="Lower end of the 95% interval.")
    high = serializers.FloatField(allow_null=True, help_text="Upper end of the 95% interval.")
    reason = serializers.CharField(
        help_text="Why there is no share: `few`, `no_rates` or `unfit`. Empty if there is one."
    )
    texts = serializers.IntegerField()
    authors = serializers.IntegerField(help_text="Number of people who wrote them.")
    unknown_texts = serializers.IntegerField(
        help_text="Texts without usable signals. The interval covers all that they may be."
    )
    left_out = serializers.IntegerField(
        help_text="Edits, texts with suggestions, by programs, imported, or of a labelled study."
    )
    study = serializers.CharField(
        allow_null=True, help_text="The labelled study that measured the error rates."
    )
    measured_at = serializers.DateTimeField(allow_null=True)
    signals = SignalShareSerializer(many=True)


class RoundMachineShareView(APIView):
    """The estimated share of machine-written texts in a round."""

    @extend_schema(operation_id="rounds_machine_share", responses=MachineShareSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return the share with its interval and the raw shares of the signals. Owners only."""
        task = find_task(request, code, can_own)
        require_permission(request.user, task, can_read)
        round = get_object_or_404(task.rounds, number=number)
        return Response(
            MachineShareSerializer(build_machine_share_report(round.examples.all())).data
        )
