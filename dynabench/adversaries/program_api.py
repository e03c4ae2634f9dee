"""The API's addresses for programs that attack: claim a run, ask the models, end the run."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.models import ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.web.api import read
from dynabench.adversaries import program_services
from dynabench.adversaries.access import find_runnable_adversary
from dynabench.adversaries.api import (
    ADVERSARIES_PATH,
    AdversaryRunSerializer,
    AdversaryTrySerializer,
)
from dynabench.adversaries.fit import can_run_program
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.selectors import list_contexts_to_read
from tasks.models import Context

MAX_TEXT_CHARS = 20_000


class AttackContextSerializer(serializers.ModelSerializer[Context]):
    """A text that people write about, which the models read."""

    class Meta:
        model = Context
        fields = ("id", "fields")

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        """Return the two fields. The column has the name of an attribute of serializers."""
        return {
            "id": serializers.IntegerField(),
            "fields": serializers.DictField(help_text="Values by field."),
        }


class ClaimedRunSerializer(serializers.Serializer[Any]):
    """A run that a program has claimed."""

    token = serializers.UUIDField(source="lease_token", help_text="The key of the run.")
    number = serializers.IntegerField()
    round = serializers.IntegerField(source="round.number")
    seed = serializers.IntegerField(source="adversary.seed")
    labels = serializers.SerializerMethodField(help_text="Labels of the task.")
    language = serializers.CharField(source="round.task.config.language")
    contexts = serializers.SerializerMethodField(
        help_text="Texts that a question can be about, at most 200. Empty: the models read none."
    )
    max_calls = serializers.IntegerField()
    max_examples = serializers.IntegerField()
    max_minutes = serializers.IntegerField()
    max_tokens = serializers.IntegerField(allow_null=True)
    max_cost = serializers.FloatField(allow_null=True)

    def get_labels(self, run: AdversaryRun) -> list[str]:
        """Return the labels that a question can name as right."""
        return list(run.round.task.config.goal_choices)

    @extend_schema_field(AttackContextSerializer(many=True))
    def get_contexts(self, run: AdversaryRun) -> Any:
        """Return the texts of the round, if the models read them."""
        return AttackContextSerializer(list_contexts_to_read(run), many=True).data


class AttackQuestionSerializer(serializers.Serializer[Any]):
    """A text about which a program asks the models."""

    text = serializers.CharField(max_length=MAX_TEXT_CHARS, trim_whitespace=False)
    label = serializers.CharField(  # type: ignore[assignment]
        max_length=200, help_text="The right label."
    )
    step = serializers.CharField(
        max_length=200, default="", allow_blank=True, help_text="How it was made, for the log."
    )
    is_offered = serializers.BooleanField(
        default=True, help_text="Whether it becomes an example if it fools the models."
    )
    context = serializers.IntegerField(  # type: ignore[assignment]
        default=None, allow_null=True, help_text="The text that it is about, by id."
    )


class AttackAnswerSerializer(serializers.Serializer[Any]):
    """The answer to a program's question, and what its run has used."""

    answer = AdversaryTrySerializer(
        allow_null=True, help_text="null: a limit was reached before the question."
    )
    run = AdversaryRunSerializer(help_text="`ended_by` says whether it is over, and why.")


class ClaimRun(APIView):
    """The runs of a program."""

    write_scope = ApiToken.Scope.ANNOTATE

    @write("adversary_runs_claim", None, {201: ClaimedRunSerializer})
    def post(self, request: Request, code: str, pk: int) -> Response:
        """Begin a run of a program. The account that the owners named, and editors, can do this."""
        adversary = find_runnable_adversary(request, code, pk)
        run = program_services.begin_program_run(adversary=adversary, actor=get_person(request))
        return Response(ClaimedRunSerializer(run).data, status.HTTP_201_CREATED)


class _ClaimedRunAPIView(APIView):
    """Base view of a run that a program has claimed."""

    write_scope = ApiToken.Scope.ANNOTATE

    def get_claimed_run(self, person: User, token: UUID) -> AdversaryRun:
        """Return the run with this token. Raises Http404 if this person may not run it now."""
        # The token alone isn't enough: its holder may have lost access since.
        runs = AdversaryRun.objects.select_related("adversary__task", "round__task")
        run = get_object_or_404(runs, lease_token=token)
        if not can_run_program(person, run.adversary):
            raise Http404
        return run


class AskModels(_ClaimedRunAPIView):
    """The questions of a program."""

    @write("adversary_runs_ask", AttackQuestionSerializer, AttackAnswerSerializer)
    def post(self, request: Request, token: UUID) -> Response:
        """Ask the models about a text, within the run's budget. Ask one question at a time.

        What fools them becomes an example, and people judge it. A text that was asked about in this
        round gets the same answer, and costs nothing.
        """
        person = get_person(request)
        run = self.get_claimed_run(person, token)
        question = program_services.ProgramQuestion(**read(AttackQuestionSerializer, request))
        answer: AdversaryTry | None = program_services.ask_for_program(run=run, question=question)
        # The example is the adversary's, but this person knows the answers, so never judges it.
        if answer and answer.example_id:
            note_shown_examples(
                annotator=get_annotator(person),
                examples=[answer.example_id],
                way=ShownExample.Way.ROLE,
            )
        run.refresh_from_db()
        return Response(AttackAnswerSerializer({"answer": answer, "run": run}).data)


class EndRun(_ClaimedRunAPIView):
    """The end of a program's run."""

    @write("adversary_runs_end", None, AdversaryRunSerializer)
    def post(self, request: Request, token: UUID) -> Response:
        """End a run whose program is done.

        Without this, it ends ten minutes after its last question.
        """
        run = self.get_claimed_run(get_person(request), token)
        program_services.end_program_run(run=run)
        return Response(AdversaryRunSerializer(run).data)


urlpatterns = [
    path(f"{ADVERSARIES_PATH}<int:pk>/claim/", ClaimRun.as_view(), name="adversary-claim"),
    path("attacks/<uuid:token>/ask/", AskModels.as_view(), name="attack-ask"),
    path("attacks/<uuid:token>/end/", EndRun.as_view(), name="attack-end"),
]
