"""Serializers of judging: items, votes, decisions."""

from typing import Any

from django.db.models import prefetch_related_objects
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotation.api.serializers import (
    ExampleSerializer,
    GivenAnswerSerializer,
    Values,
    describe_answers,
    select_named_values,
)
from annotation.models import Example
from annotation.selectors import prefetch_outputs
from core.accounts.people import get_shown_name
from core.web.form_fields import build_request_field
from tasks.config.criteria import JUDGEMENTS
from validation.consensus.claims import find_confirming_verdict, find_label_field, is_about_model
from validation.consensus.steps import read_step_labels
from validation.judging import blind
from validation.judging.forms import FlagForm
from validation.models import (
    Choice,
    Consensus,
    GoldAnswer,
    Validation,
    ValidatorAnswer,
    VoteDraw,
)

VOTE_HELP = "`label:<label>` or `verdict:<verdict>`; an item lists those that it takes."


def format_vote(choice: Choice) -> str:
    """Return a choice in the form in which the judge page submits it."""
    return f"label:{choice.label}" if choice.label else f"verdict:{choice.verdict}"


class VoteField(serializers.CharField):
    """A read-only field for a row's choice, in the form in which the judge page submits it."""

    def __init__(self, help_text: str = VOTE_HELP) -> None:
        super().__init__(source="*", read_only=True, help_text=help_text)

    def to_representation(self, choice: Any) -> str:
        return format_vote(choice)


class VoteChoiceSerializer(serializers.Serializer[Any]):
    """One of the possible answers."""

    vote = serializers.CharField()
    words = serializers.CharField()


class ModelSaidSerializer(serializers.Serializer[Any]):
    """A model's formatted answer."""

    target = serializers.CharField()
    said = serializers.CharField()


class StepsSerializer(serializers.Serializer[Any]):
    """The steps of a conversation to judge one by one, and what to choose from."""

    question = serializers.CharField()
    field = serializers.CharField(help_text="The conversation's name in `context`.")
    turns = serializers.ListField(
        child=serializers.CharField(), help_text="The numbers of the turns that are steps, from 1."
    )
    labels = serializers.ListField(child=serializers.CharField())


class JudgementsField(serializers.ListField):
    """A read-only list with a judgement of each criterion."""

    def __init__(self, help_text: str) -> None:
        super().__init__(
            source="judgements",
            child=serializers.CharField(allow_null=True),
            read_only=True,
            allow_null=True,
            help_text=help_text,
        )


VOTE_JUDGEMENTS_HELP = "Of each criterion of the example, in their order; null: it has none."


class ItemSerializer(serializers.Serializer[Any]):
    """An example to judge, without the answers of its author and of the models."""

    example = serializers.UUIDField()
    task = serializers.CharField()
    round = serializers.IntegerField()
    context: Any = serializers.DictField()
    inputs = serializers.DictField()
    model_said = ModelSaidSerializer(
        many=True, help_text="What the models answered, where that is what is judged; else empty."
    )
    question = serializers.CharField()
    criteria = serializers.ListField(
        child=serializers.CharField(),
        help_text="The criteria to judge one by one; empty where one votes on the whole.",
    )
    choices = VoteChoiceSerializer(many=True)
    steps = StepsSerializer(
        allow_null=True, help_text="null: only the whole is judged, or there is no step."
    )
    flag_reasons = serializers.ListField(child=serializers.CharField())
    until = serializers.DateTimeField(help_text="Others may get it after that.")
    judged_today = serializers.IntegerField()


class MissSerializer(serializers.Serializer[Any]):
    """A gold item that the validator answered wrongly."""

    context: Any = serializers.DictField()
    inputs = serializers.DictField()
    said = serializers.CharField()
    right = serializers.CharField()
    explanation = serializers.CharField(allow_blank=True)


class NewValidationSerializer(serializers.Serializer[Any]):
    """A new vote, or a judgement of each criterion.

    Only `verdict:flagged` takes `flag_reason`, `comment` and `metadata`.
    """

    # A label of up to 200 characters, after a prefix for the kind of vote.
    vote = serializers.CharField(
        max_length=210, required=False, allow_null=True, help_text=VOTE_HELP
    )
    criteria = serializers.ListField(
        child=serializers.ChoiceField(JUDGEMENTS),
        required=False,
        max_length=50,
        help_text="For an item with criteria, in place of the vote: one for each, in their order.",
    )
    steps = serializers.DictField(
        child=serializers.CharField(max_length=200),
        required=False,
        help_text="A label for each step, by the number of the turn, where the item lists `steps`.",
    )
    flag_reason = serializers.ChoiceField(ValidatorAnswer.FlagReason.choices, required=False)
    comment = build_request_field(FlagForm, "flag_comment")
    metadata = Values(required=False, help_text="Answers to the task's questions.")


class AfterwardsSerializer(serializers.Serializer[Any]):
    """The answers given after the vote is stored."""

    reveal = serializers.ChoiceField(
        ValidatorAnswer.Reveal.choices,
        required=False,
        help_text="Whether one keeps one's answer, where the author's was shown.",
    )
    reveal_choice = serializers.CharField(
        max_length=210, required=False, allow_blank=True, help_text="To what one changes it."
    )
    reveal_comment = serializers.CharField(max_length=500, required=False, allow_blank=True)
    metadata = Values(required=False, help_text="Answers to the task's questions.")


class RevealedSerializer(serializers.Serializer[Any]):
    """The author's and the models' answers, if the task reveals them after the vote."""

    author_said = serializers.JSONField()
    answers = GivenAnswerSerializer(many=True)


class OwnValidationSerializer(serializers.Serializer[Any]):
    """The validator's own vote. Answers to gold items look the same."""

    example = serializers.UUIDField(source="example.uuid")
    vote = VoteField()
    criteria = JudgementsField(VOTE_JUDGEMENTS_HELP)
    flag_reason = serializers.CharField(allow_blank=True)
    comment = serializers.CharField(allow_blank=True)
    metadata = serializers.DictField()
    reveal = serializers.CharField(allow_blank=True)
    reveal_choice = serializers.CharField(allow_blank=True)
    reveal_comment = serializers.CharField(allow_blank=True)
    by_program = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    questions = serializers.SerializerMethodField(
        help_text="The task's questions that follow this vote; answered with PATCH."
    )
    revealed = serializers.SerializerMethodField(help_text="null: this task shows nothing.")

    def get_questions(self, vote: Validation | GoldAnswer) -> list[str]:
        config = vote.example.round.task.config
        return [component.name for component in blind.list_questions(config, vote, vote.example)]

    @extend_schema_field(RevealedSerializer(allow_null=True))
    def get_revealed(self, vote: Validation | GoldAnswer) -> dict[str, Any] | None:
        example = vote.example
        config = example.round.task.config
        if not blind.should_reveal_label(config, vote):
            return None
        prefetch_related_objects([example], prefetch_outputs())
        author_claim = example.inputs.get(find_label_field(config) or config.answer_field)
        if is_about_model(config, example.outcome):
            author_claim = find_confirming_verdict(config, example.outcome)
        return {"author_said": author_claim, "answers": describe_answers(example)}


class ConsensusSerializer(serializers.ModelSerializer[Consensus]):
    """The decision by the votes, or by an owner."""

    decided_by: Any = serializers.CharField(help_text="votes or owner; empty while undecided.")
    criteria = JudgementsField(
        "What the votes decided about each criterion, null where nothing; null: it has none."
    )

    class Meta:
        model = Consensus
        fields = read_only_fields = (
            "state",
            "label",
            "verdict",
            "votes",
            "still_needed",
            "is_verified",
            "is_validated_error",
            "is_sent_back",
            "criteria",
            "score",
            "decided_by",
            "decided_at",
        )


class PeopleDrawSerializer(serializers.ModelSerializer[VoteDraw]):
    """The draw that decided whether people judge an example, after a judge model's answer."""

    chance = serializers.FloatField(
        help_text="With which people were asked: above 0, at most 1. Weigh a drawn example by one "
        "over it."
    )
    judge_score = serializers.FloatField(
        allow_null=True,
        help_text="The probability that the author is right (0-1), as the judge model said. null: "
        "no answer.",
    )

    class Meta:
        model = VoteDraw
        fields = read_only_fields = ("chance", "is_drawn", "judge_score", "reason", "drawn_at")


class JudgedExampleSerializer(ExampleSerializer):
    """An example with its votes' consensus, for its author and for members of the task."""

    people_draw = serializers.SerializerMethodField(
        help_text="For members. null: no draw, so the task's rule decides whether people judge it."
    )
    annotator = serializers.SerializerMethodField(help_text="The author's pseudonym.")
    consensus = ConsensusSerializer(allow_null=True, help_text="null: not judged yet.")

    class Meta(ExampleSerializer.Meta):
        fields = (*ExampleSerializer.Meta.fields, "annotator", "consensus", "people_draw")
        read_only_fields = fields

    @extend_schema_field(PeopleDrawSerializer(allow_null=True))
    def get_people_draw(self, example: Example) -> dict[str, Any] | None:
        # It would tell authors how sure a model is of their label, and whether anybody checks it.
        if not self.context.get("full"):
            return None
        draw = getattr(example, "vote_draw", None)
        return PeopleDrawSerializer(draw).data if draw else None

    def get_annotator(self, example: Example) -> str:
        return get_shown_name(example.annotator)


class JudgedStepSerializer(serializers.Serializer[Any]):
    """What the votes decide about one step of a conversation."""

    turn = serializers.IntegerField(help_text="From 1.")
    role = serializers.CharField()
    span = serializers.CharField(help_text="The id of its span in an imported trace; else empty.")
    state = serializers.ChoiceField(Consensus.State.choices)
    label: Any = serializers.CharField(help_text="Empty while undecided.")
    votes = serializers.DictField(child=serializers.IntegerField())


class JudgedStepsSerializer(serializers.Serializer[Any]):
    """What the votes decide about each step of an example."""

    example = serializers.UUIDField()
    uid = serializers.CharField(help_text="The id of an imported example, such as of its trace.")
    steps = JudgedStepSerializer(many=True)


class ValidationSerializer(serializers.ModelSerializer[Validation]):
    """A vote, as members of the task see it."""

    example: Any = serializers.UUIDField(source="example.uuid")
    validator = serializers.SerializerMethodField(help_text="The validator's pseudonym.")
    vote = VoteField()
    criteria = JudgementsField(VOTE_JUDGEMENTS_HELP)
    metadata = serializers.SerializerMethodField(help_text="Answers to the task's questions.")
    steps = serializers.SerializerMethodField(
        help_text="The labels of the steps of a conversation, by the number of the turn."
    )

    class Meta:
        model = Validation
        fields = read_only_fields = (
            "example",
            "validator",
            "vote",
            "criteria",
            "flag_reason",
            "comment",
            "metadata",
            "steps",
            "reveal",
            "reveal_choice",
            "reveal_comment",
            "seconds",
            "by_program",
            "is_imported",
            "created_at",
        )

    def get_metadata(self, vote: Validation) -> dict[str, Any]:
        return select_named_values(vote.example.round.task.config.judge_questions, vote.metadata)

    def get_steps(self, vote: Validation) -> dict[str, str]:
        return dict(read_step_labels(vote.metadata))

    def get_validator(self, vote: Validation) -> str:
        return get_shown_name(vote.validator)
