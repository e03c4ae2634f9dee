"""Serializers of assignments, attempts and examples."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from annotation.attempts.failures import FAILURE_MESSAGES, NO_ANSWER_MESSAGE
from annotation.models import Assignment, Attempt, Example
from annotation.rules.prompt import split_goal
from annotation.selectors import get_open_parent
from annotation.writing.result_panel import round_chances
from tasks.config.components import Component
from tasks.config.criteria import CLEAR_JUDGEMENTS
from tasks.config.schema import TaskConfig
from tasks.line_files import find_unstorable_reason
from tasks.models import Context

MAX_DEPTH = 6


class Values(serializers.DictField):
    """Values by field name, for the fields that the task's configuration defines."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        values: dict[str, Any] = super().to_internal_value(data)
        if reason := find_unstorable_reason(values, MAX_DEPTH):
            raise serializers.ValidationError(f"This contains {reason}.")
        return values


def select_named_values(
    components: Iterable[Component], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return only the values of the given components: imports may have stored others, too."""
    return {
        component.name: values[component.name]
        for component in components
        if component.name in values
    }


def describe_context(context: Context, config: TaskConfig) -> dict[str, Any]:
    """Return the context that a person writes about, in the format of GivenContextSerializer."""
    return {"id": context.pk, "fields": select_named_values(config.context, context.fields)}


def find_own_assignment(request: Request, pk: int) -> Assignment:
    """Return the person's own assignment, with prefetched relations.

    Raises Http404 for other people's.
    """
    own_assignments = Assignment.objects.filter(annotator__user=request.user.pk)
    # Joined, because the answer shows all of these.
    rows = own_assignments.select_related("annotator", "round__task", "context", "parent")
    return get_object_or_404(rows, pk=pk)


class WantSerializer(serializers.Serializer[Any]):
    """The requested kind of the next assignment."""

    want = serializers.ChoiceField(
        [
            ("current", "what one has, or a first one"),
            ("context", "another context and goal"),
            ("goal", "another goal for the same context"),
            ("edit", "someone's example, to be changed as little as possible"),
        ],
        default="current",
    )


class GivenContextSerializer(serializers.Serializer[Any]):
    """The context to write about."""

    id: Any = serializers.IntegerField()
    fields: Any = serializers.DictField(help_text="By the names of the task's configuration.")


class ParentSerializer(serializers.Serializer[Any]):
    """The example to change."""

    id: Any = serializers.UUIDField(source="uuid")
    inputs = serializers.DictField()


class AssignmentSerializer(serializers.ModelSerializer[Assignment]):
    """An assignment: a context and a goal to write for."""

    task = serializers.CharField(source="round.task.code")
    round: Any = serializers.IntegerField(source="round.number")
    context: Any = serializers.SerializerMethodField()
    goal = serializers.CharField(help_text="The label to write for; empty where there is none.")
    goal_text = serializers.SerializerMethodField(help_text="The goal in a sentence.")
    parent: Any = serializers.SerializerMethodField()
    draft = serializers.DictField(help_text="What was typed so far, or could not be stored.")

    class Meta:
        model = Assignment
        fields = read_only_fields = (
            "id",
            "task",
            "round",
            "context",
            "goal",
            "goal_text",
            "parent",
            "draft",
        )

    @extend_schema_field(GivenContextSerializer)
    def get_context(self, assignment: Assignment) -> dict[str, Any]:
        return describe_context(assignment.context, assignment.round.task.config)

    def get_goal_text(self, assignment: Assignment) -> str:
        return "".join(split_goal(assignment.round.task.config, assignment.goal))

    @extend_schema_field(ParentSerializer(allow_null=True))
    def get_parent(self, assignment: Assignment) -> dict[str, Any] | None:
        parent = get_open_parent(assignment)
        return ParentSerializer(parent).data if parent else None


class NewExampleSerializer(serializers.Serializer[Any]):
    """A new example to submit."""

    inputs = Values(
        help_text=(
            "The task's inputs by name, without the goal. A span is {text, start, end}; a "
            "conversation is the place of the marked answer."
        )
    )
    parent: Any = serializers.UUIDField(
        required=False, allow_null=True, help_text="One's own example that this one edits."
    )


class GivenAnswerSerializer(serializers.Serializer[Any]):
    """The answer of one target."""

    target = serializers.CharField(help_text="Model A, Model B … while the round hides names.")
    output = serializers.DictField()
    prob = serializers.DictField(
        child=serializers.FloatField(),
        allow_null=True,
        help_text="By label, as exactly as the task shows them; null: hidden or not known.",
    )
    fooled: Any = serializers.BooleanField(allow_null=True)
    score = serializers.FloatField(
        allow_null=True, help_text="Overlap with the author's, or the score by criteria, 0-1."
    )
    criteria = serializers.ListField(
        child=serializers.ChoiceField(CLEAR_JUDGEMENTS),
        allow_null=True,
        help_text="What the author said of each criterion; null: the task has none, or not yet.",
    )


class ExampleSerializer(serializers.ModelSerializer[Example]):
    """An example as its author may see it.

    With `full` in the serializer context, it has everything that members of the task may see.
    """

    id: Any = serializers.UUIDField(source="uuid")
    task = serializers.CharField(source="round.task.code")
    round: Any = serializers.IntegerField(source="round.number")
    context: Any = serializers.SerializerMethodField()
    inputs = serializers.SerializerMethodField()
    why = serializers.SerializerMethodField(help_text="Answers to the questions afterwards.")
    parent: Any = serializers.SerializerMethodField(help_text="The own example that it edits.")
    answers = serializers.SerializerMethodField()

    class Meta:
        model = Example
        fields: tuple[str, ...] = (
            "id",
            "task",
            "round",
            "context",
            "inputs",
            "goal",
            "outcome",
            "decided_by",
            "why",
            "parent",
            "by_program",
            "created_at",
            "retracted_at",
            "answers",
        )
        read_only_fields = fields

    @extend_schema_field(GivenContextSerializer)
    def get_context(self, example: Example) -> dict[str, Any]:
        return describe_context(example.context, example.round.task.config)

    def get_inputs(self, example: Example) -> dict[str, Any]:
        return select_named_values(example.round.task.config.input, example.inputs)

    def get_why(self, example: Example) -> dict[str, Any]:
        return select_named_values(example.round.task.config.metadata.create, example.metadata)

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_parent(self, example: Example) -> str | None:
        # A text by somebody else that was changed is not shown as one's own.
        parent = example.parent
        return str(parent.uuid) if parent and parent.annotator_id == example.annotator_id else None

    @extend_schema_field(GivenAnswerSerializer(many=True))
    def get_answers(self, example: Example) -> list[dict[str, Any]]:
        return describe_answers(example, is_full=self.context.get("full", False))


def describe_answers(example: Example, *, is_full: bool = False) -> list[dict[str, Any]]:
    """Return the targets' answers, in the format of GivenAnswerSerializer.

    is_full: whether to include all of each answer, not only what the task shows to authors.
    """
    round, limits = example.round, example.round.task.config.limits
    return [
        {
            "target": output.target.name
            if is_full
            else round.get_target_name(output.target, output.position),
            "output": output.output,
            "prob": round_chances(output.prob, "full" if is_full else limits.show_confidence),
            "fooled": output.fooled,
            "score": output.score,
            "criteria": output.judgements,
        }
        for output in example.target_outputs.all()
    ]


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """A submission and its state. `failure` says why it was not stored."""

    id: Any = serializers.UUIDField(source="uuid")
    inputs = serializers.DictField()
    failure = serializers.SerializerMethodField()
    example = ExampleSerializer(allow_null=True)

    class Meta:
        model = Attempt
        fields = read_only_fields = ("id", "state", "inputs", "failure", "example")

    def get_failure(self, attempt: Attempt) -> str:
        return FAILURE_MESSAGES.get(attempt.failure, NO_ANSWER_MESSAGE) if attempt.failure else ""


class WhySerializer(serializers.Serializer[Any]):
    """Answers to the questions after the verdict (`metadata.create` of the configuration)."""

    why = Values()


class AuthorAnswerSerializer(serializers.Serializer[Any]):
    """The author's answer about an undecided example."""

    model_right = serializers.BooleanField(
        required=False, help_text="Whether the model's answer is acceptable. Not with criteria."
    )
    criteria = serializers.ListField(
        child=serializers.ChoiceField(CLEAR_JUDGEMENTS),
        required=False,
        max_length=50,
        help_text="One for each criterion of the example, in their order.",
    )
