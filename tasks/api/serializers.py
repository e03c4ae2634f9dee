"""Serializers for tasks, rounds, targets and contexts."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tasks.models import Context, Round, RoundTarget, Task, TaskMember
from tasks.selectors import PLANNED_STATES

MONEY_FIELDS = ("max_spent", "pay_example", "pay_validation", "pay_bonus")


class OpenedRoundSerializer(serializers.ModelSerializer[Round]):
    """A summary of a round that has opened."""

    class Meta:
        model = Round
        fields = read_only_fields = ("number", "state", "opened_at", "closed_at", "ends_at")


class TaskSerializer(serializers.ModelSerializer[Task]):
    """A task in a list."""

    language = serializers.CharField(source="config.language", help_text="A BCP 47 tag.")
    rounds = OpenedRoundSerializer(source="opened", many=True, help_text="Those that have opened.")

    class Meta:
        model = Task
        fields: tuple[str, ...] = (
            "code",
            "name",
            "summary",
            "language",
            "is_official",
            "is_sensitive",
            "allow_try_out",
            "rounds",
        )
        read_only_fields = fields


class TaskChoiceSerializer(serializers.Serializer[Any]):
    """One choice of a field."""

    value = serializers.CharField()
    display = serializers.CharField(source="words", help_text="What people read.")
    help: Any = serializers.CharField(allow_null=True)


class TaskConditionSerializer(serializers.Serializer[Any]):
    """A condition: the field is asked for only if another field has this value."""

    field = serializers.CharField()
    equals = serializers.CharField()


class TaskFieldSerializer(serializers.Serializer[Any]):
    """A field of the context, input or output. docs/task-config.md explains the keys."""

    name = serializers.CharField()
    type = serializers.CharField()
    label: Any = serializers.CharField(source="title")
    help: Any = serializers.CharField(allow_null=True)
    required: Any = serializers.BooleanField()
    min_length = serializers.IntegerField(allow_null=True)
    max_length = serializers.IntegerField(allow_null=True)
    labels = TaskChoiceSerializer(many=True)
    reference = serializers.CharField(allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    minimum = serializers.FloatField(allow_null=True)
    maximum = serializers.FloatField(allow_null=True)
    step = serializers.FloatField(allow_null=True)
    single = serializers.BooleanField()
    when = TaskConditionSerializer(allow_null=True)


class ShownExampleSerializer(serializers.Serializer[Any]):
    """A sample example from the task's page."""

    context: Any = serializers.DictField()
    input = serializers.DictField()
    reason = serializers.CharField()


class ShownExamplesSerializer(serializers.Serializer[Any]):
    """The good and bad sample examples shown to writers."""

    good = ShownExampleSerializer(many=True)
    bad = ShownExampleSerializer(many=True)


class ContentWarningSerializer(serializers.Serializer[Any]):
    """The content warning that people read before they enter a sensitive task."""

    text = serializers.CharField()
    harms = serializers.ListField(child=serializers.CharField())
    share = serializers.CharField(allow_null=True)


class TaskAboutSerializer(serializers.Serializer[Any]):
    """The people behind a task, and its terms. Each field may be empty."""

    people = serializers.CharField(help_text="Markdown.")
    ethics = serializers.CharField(help_text="Markdown.")
    license = serializers.CharField(help_text="Of what is released.")
    citation = serializers.CharField()


class TaskMetricsSerializer(serializers.Serializer[Any]):
    """The metrics by which models are scored."""

    main = serializers.CharField()
    names = serializers.ListField(
        child=serializers.CharField(), help_text="All columns of the leaderboard."
    )


class FullTaskSerializer(TaskSerializer):
    """A task with its instructions, fields and scoring."""

    # Its context holds the person's role, or None.

    instructions = serializers.CharField(source="config.instructions", help_text="Markdown.")
    content_warning = ContentWarningSerializer(source="config.content_warning", allow_null=True)
    examples = ShownExamplesSerializer(source="config.examples")
    goal = serializers.CharField(source="config.goal.text", help_text="What people should write.")
    context: Any = TaskFieldSerializer(
        source="config.context", many=True, help_text="What is given."
    )
    input = TaskFieldSerializer(source="config.input", many=True, help_text="What people write.")
    output = TaskFieldSerializer(source="config.output", many=True, help_text="What models answer.")
    model_fields = serializers.ListField(
        source="config.model_fields", child=serializers.CharField(), help_text="What models read."
    )
    target_fields = serializers.ListField(
        source="config.target_fields",
        child=serializers.CharField(),
        help_text="What people say and models answer, so that the two are compared.",
    )
    answer_field = serializers.CharField(source="config.answer_field", help_text="The answer.")
    verdict = serializers.SerializerMethodField(help_text="When a model counts as fooled.")
    metrics = TaskMetricsSerializer(source="config.metrics")
    weights = serializers.DictField(
        source="config.weights", child=serializers.FloatField(), help_text="Of the leaderboard."
    )
    about = TaskAboutSerializer(source="config.about")
    role = serializers.SerializerMethodField(help_text="Yours in this task.")

    class Meta(TaskSerializer.Meta):
        fields = (
            *TaskSerializer.Meta.fields,
            "instructions",
            "content_warning",
            "examples",
            "goal",
            "context",
            "input",
            "output",
            "model_fields",
            "target_fields",
            "answer_field",
            "verdict",
            "metrics",
            "weights",
            "about",
            "created_at",
            "is_visible",
            "role",
        )
        read_only_fields = fields

    def get_verdict(self, task: Task) -> dict[str, Any]:
        return task.config.verdict.model_dump(mode="json", exclude_none=True)

    @extend_schema_field(serializers.ChoiceField(TaskMember.Role.choices, allow_null=True))
    def get_role(self, task: Task) -> Any:
        return self.context["role"]


class MadeTaskSerializer(FullTaskSerializer):
    """A new task, with notes on its configuration."""

    # Its context also holds the notes, the stored text and the served models.

    notes = serializers.SerializerMethodField(
        help_text="What to consider, and what a configuration of Dynabench 1.0 or 2.0 lost."
    )
    config_text = serializers.CharField(help_text="The stored YAML.")
    served_models = serializers.SerializerMethodField(
        help_text="Models of other tasks here that fit this one, as TASK/NAME."
    )

    class Meta(FullTaskSerializer.Meta):
        fields = (*FullTaskSerializer.Meta.fields, "notes", "config_text", "served_models")
        read_only_fields = fields

    def get_served_models(self, task: Task) -> list[str]:
        served_models: list[str] = self.context["served_models"]
        return served_models

    def get_notes(self, task: Task) -> list[str]:
        notes: list[str] = self.context["notes"]
        return notes


class RoundSerializer(serializers.ModelSerializer[Round]):
    """A round."""

    # Its context says whether the person `can_see_plans`: what the owners planned.

    targets = serializers.SerializerMethodField(
        help_text="The models in the loop; Model A, Model B … while the round hides their names."
    )
    parents = serializers.SerializerMethodField(help_text="The rounds that it grew out of.")
    max_spent = serializers.IntegerField(
        allow_null=True, help_text="In cents; this and the pay only for those who review."
    )
    pay_example = serializers.IntegerField(allow_null=True)
    pay_validation = serializers.IntegerField(allow_null=True)
    pay_bonus = serializers.IntegerField(allow_null=True)

    class Meta:
        model = Round
        fields = read_only_fields = (
            "number",
            "state",
            "rule",
            "description",
            "show_target_name",
            "targets",
            "parents",
            "opened_at",
            "closed_at",
            "ends_at",
            "writing_until",
            "opening_since",
            "max_collected",
            "max_fooling",
            *MONEY_FIELDS,
        )

    def get_targets(self, round: Round) -> list[str]:
        return list_target_names(round, self.context["can_see_plans"])

    def get_parents(self, round: Round) -> list[int]:
        can_see_plans = self.context["can_see_plans"]
        parent_numbers = []
        for parent in round.parents.all():
            if can_see_plans or parent.state not in PLANNED_STATES:
                parent_numbers.append(parent.number)
        return parent_numbers

    def to_representation(self, round: Round) -> dict[str, Any]:
        body = super().to_representation(round)
        if self.context["can_see_plans"]:
            return body
        return {**body, **dict.fromkeys(MONEY_FIELDS)}


def list_target_names(round: Round, use_real_names: bool) -> list[str]:
    """Return the names of the round's targets in order.

    If `use_real_names` is False, they are the names that the round shows, such as Model A.
    """
    if use_real_names:
        return [entry.target.name for entry in round.round_targets.all()]
    return round.target_names


class TargetSerializer(serializers.ModelSerializer[RoundTarget]):
    """A model that people try to fool in a round."""

    # Its context is that of rounds.

    round = serializers.IntegerField(source="round.number")
    name = serializers.SerializerMethodField(help_text="Model A … while the round hides it.")

    class Meta:
        model = RoundTarget
        fields = read_only_fields = ("round", "name")

    def get_name(self, entry: RoundTarget) -> str:
        index = list(entry.round.round_targets.all()).index(entry)
        return list_target_names(entry.round, self.context["can_see_plans"])[index]


class ContextSerializer(serializers.ModelSerializer[Context]):
    """A context of a round."""

    metadata = serializers.DictField()
    file = serializers.CharField(source="batch.file_name", allow_null=True)

    class Meta:
        model = Context
        fields = read_only_fields = ("id", "fields", "tag", "metadata", "is_retired", "file")

    def get_fields(self) -> dict[str, Any]:
        # Not as an attribute: serializers have one of that name.
        return {**super().get_fields(), "fields": serializers.DictField()}
