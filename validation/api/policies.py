"""The API's view of how a round is decided, and of what another policy would change."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import Example
from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.errors import Refused
from core.web.api import check_form, read
from core.web.form_fields import build_request_field
from tasks.access import find_task_and_editor
from tasks.models import Round
from validation.api.statistics import RateSerializer
from validation.consensus.consensus import Policy
from validation.decisions.consensus_rows import get_policy
from validation.decisions.policy_forms import RULE_LABELS, PolicyForm
from validation.decisions.policy_preview import (
    Preview,
    describe_policy,
    is_too_large,
    preview_policy,
)
from validation.decisions.services import apply_policy
from validation.models import Consensus
from validation.rates.rates import Rate

RULE_CHOICES = [*RULE_LABELS.items()]
# Without MER: it does not depend on votes, so policies cannot change it.
RATES = ("vmer", "fooled_of_decided", "verified_of_judged")


class PolicySerializer(serializers.Serializer[Policy]):
    """The policy that decides a round's examples from their votes."""

    rule = serializers.ChoiceField(RULE_CHOICES)
    needed = serializers.IntegerField(help_text="Equal votes, for n-equal and at-least.")
    of = serializers.IntegerField(allow_null=True, help_text="Most votes; null: all there are.")
    threshold = serializers.FloatField(help_text="Of a probability, for dawid-skene.")
    words = serializers.SerializerMethodField(help_text="The same in words.")

    def get_words(self, policy: Policy) -> str:
        return describe_policy(policy)


class NewPolicySerializer(serializers.Serializer[Any]):
    """A new policy for a round."""

    rule = serializers.ChoiceField(RULE_CHOICES)
    needed = build_request_field(
        PolicyForm, "needed", help_text="Equal votes; for n-equal and at-least."
    )
    of = build_request_field(
        PolicyForm,
        "of",
        help_text="Most votes asked for; needed for all but n-equal, unless the round is closed.",
    )
    threshold = build_request_field(
        PolicyForm,
        "threshold",
        help_text="For dawid-skene: above 0.5, at most 1. Default: 0.8.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only tell what would change; for released rounds too."
    )


class StandingSerializer(serializers.Serializer[Any]):
    """The status of an example, now or under another policy."""

    state = serializers.ChoiceField(Consensus.State.choices)
    label: Any = serializers.CharField()
    verdict = serializers.CharField()
    is_verified = serializers.BooleanField()
    is_validated_error = serializers.BooleanField()


class ChangedExampleSerializer(serializers.Serializer[Any]):
    """An example whose status would change."""

    example = serializers.UUIDField()
    before = StandingSerializer()
    after = StandingSerializer()


class ChangedRateSerializer(serializers.Serializer[Any]):
    """A rate of the round before and after; null if unknown."""

    before = RateSerializer(allow_null=True)
    after = RateSerializer(allow_null=True)


class TransitionSerializer(serializers.Serializer[Any]):
    """A change of status and its number of examples.

    Equal words before and after mean that the label or verdict changes.
    """

    before = serializers.CharField()
    after = serializers.CharField()
    examples = serializers.IntegerField()


class PreviewSerializer(serializers.Serializer[Any]):
    """The changes that a policy would make."""

    examples = serializers.IntegerField()
    changed = serializers.IntegerField()
    reopened = serializers.IntegerField(help_text="Of them: people would be asked once more.")
    rates = serializers.DictField(child=ChangedRateSerializer(), help_text=", ".join(RATES))
    transitions = TransitionSerializer(many=True)
    first = ChangedExampleSerializer(many=True, help_text="The first 20 that would change.")


class ChangedPolicySerializer(serializers.Serializer[Any]):
    """The result of a PUT, or its preview."""

    policy = PolicySerializer()
    changed = serializers.IntegerField(
        allow_null=True, help_text="Examples; null: the round is large, and a worker counts again."
    )
    preview = PreviewSerializer(allow_null=True, help_text="Of a dry run.")


class PolicyView(APIView):
    write_scope = ApiToken.Scope.OWN

    def get_round_and_editor(self, code: str, number: int) -> tuple[Round, User]:
        """Return the round and the user, who must be allowed to edit its task.

        Raises Http404, or as `find_task` does.
        """
        task, editor = find_task_and_editor(self.request, code)
        rounds = task.rounds.select_related("task")
        return get_object_or_404(rounds, number=number), editor

    @extend_schema(operation_id="policy_get", responses=PolicySerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return the round's current policy; for the task's editors."""
        round, _ = self.get_round_and_editor(code, number)
        return Response(PolicySerializer(get_policy(round)).data)

    @write("policy_change", NewPolicySerializer, ChangedPolicySerializer)
    def put(self, request: Request, code: str, number: int) -> Response:
        """Change the round's policy and recount all its votes, or preview this in a dry run."""
        round, editor = self.get_round_and_editor(code, number)
        values = read(NewPolicySerializer, request)
        # Uses the page's form, so that both refuse the same values.
        form = PolicyForm(round, values)
        check_form(form)
        body: dict[str, Any] = {"policy": form.policy, "preview": None}
        if values["dry_run"]:
            body["preview"] = _build_preview(round, form.policy)
            body["changed"] = body["preview"]["changed"]
        else:
            body["changed"] = apply_policy(round=round, owner=editor, policy=form.policy)
        return Response(ChangedPolicySerializer(body).data)


def _build_preview(round: Round, policy: Policy) -> dict[str, Any]:
    """Return the changes as PreviewSerializer declares them. Raises Refused."""
    if is_too_large(round):
        raise Refused(
            "The round has more examples than can be decided while you wait. An operator sees the "
            f"numbers with manage.py task_report {round.task.code} --round {round.number} "
            "--policy ….",
            code="too_large",
        )
    changes: Preview = preview_policy(round, policy)
    uuids = dict(Example.objects.filter(pk__in=changes.first).values_list("pk", "uuid"))
    return {
        **{name: getattr(changes, name) for name in ("examples", "changed", "reopened")},
        "rates": {
            name: {
                "before": _get_rate_or_none(changes.before[name]),
                "after": _get_rate_or_none(changes.after[name]),
            }
            for name in RATES
        },
        "transitions": [
            {"before": before, "after": after, "examples": count}
            for (before, after), count in changes.transitions.most_common()
        ],
        "first": [
            {"example": uuids[example_id], "before": before, "after": after}
            for example_id, (before, after) in changes.first.items()
        ],
    }


def _get_rate_or_none(rate: Any) -> Rate | None:
    return rate if isinstance(rate, Rate) else None
