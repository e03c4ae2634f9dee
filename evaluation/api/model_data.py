"""Describe submitted models for the API, with only the fields that the reader may see."""

from typing import Any

from rest_framework import serializers

from core.files.paths import shorten_source
from core.web.api import LateChoiceField
from core.web.form_fields import build_request_field
from evaluation.api.chat import ChatSettingsSerializer
from evaluation.kinds import kind_choices
from evaluation.models import EvaluationRun, Submission
from evaluation.submissions.chat_description import describe_chat
from evaluation.submissions.forms import CardForm
from evaluation.submissions.progress import Progress, add_queue_position, describe_progress
from evaluation.submissions.visibility import (
    Viewer,
    find_shown_name,
    find_shown_owner,
    find_shown_team,
)

CARD_FIELDS = (
    "description", "languages", "trained_on", "trained_until", "license", "parameters",
)  # fmt: skip
"""The fields of a model card that everybody may see."""
MODEL_FIELDS = ("id", "kind", "adapter", "state", "outcome", "is_published")


class CardSerializer(serializers.Serializer[Any]):
    """The owner's description of a model."""

    description = build_request_field(CardForm, "description", help_text="Markdown.")
    languages = build_request_field(CardForm, "languages")
    trained_on = build_request_field(
        CardForm, "trained_on", help_text="Such as `seed, round 1`, which sets are compared with."
    )
    trained_until = build_request_field(
        CardForm, "trained_until", help_text="The last day of its training data."
    )
    license = build_request_field(CardForm, "license")
    paper_url = build_request_field(CardForm, "paper_url")
    parameters = build_request_field(CardForm, "parameters")


class ModelCardSerializer(serializers.Serializer[Any]):
    """The model card as others read it."""

    description = serializers.CharField()
    languages = serializers.CharField()
    trained_on = serializers.CharField()
    trained_until = serializers.DateField(allow_null=True)
    license = serializers.CharField()
    paper_url = serializers.CharField(help_text="Empty while the owner's name is hidden.")
    parameters = serializers.IntegerField(allow_null=True)


class ModelSerializer(serializers.Serializer[Any]):
    """A submitted model and its progress.

    context: `viewer` is a function that returns the reader's relation to a submission.
    """

    id = serializers.UUIDField()
    task = serializers.CharField()
    name = serializers.CharField()
    owner = serializers.CharField(help_text="A pseudonym; empty where there is none or is hidden.")
    team = serializers.CharField(help_text="For which it was submitted; empty: none, or hidden.")
    kind = LateChoiceField(kind_choices)
    adapter = serializers.ChoiceField(Submission.Adapter.choices)
    evaluation_set = serializers.CharField(allow_null=True, help_text="Of predictions.")
    state = serializers.ChoiceField(Submission.State.choices, help_text="Of its check.")
    phase = serializers.CharField(
        help_text="received, checking, queued, running, scored, published; or accepted, refused, "
        "failed, lost, cancelled, withdrawn."
    )
    sentence = serializers.CharField(help_text="The same for people.")
    is_over = serializers.BooleanField(help_text="All work on it has ended.")
    share = serializers.FloatField(allow_null=True, help_text="0-1, while something is done.")
    message = serializers.CharField(help_text="What is done now.")
    outcome = serializers.CharField(help_text="Of the check; empty: not yet.")
    error = serializers.CharField(help_text="Why it was not accepted; for those inside.")
    is_published = serializers.BooleanField()
    publish_on = serializers.DateField(
        allow_null=True, help_text="The day on which it is published by itself; for those inside."
    )
    anonymous_until = serializers.DateField(allow_null=True, help_text="For those inside.")
    handed_in_at = serializers.DateTimeField()
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    digest = serializers.CharField(help_text="Of what was submitted.")
    size = serializers.IntegerField(allow_null=True, help_text="Bytes.")
    source: Any = serializers.CharField(help_text="Hub id, image or address; for those inside.")
    revision = serializers.CharField()
    card = ModelCardSerializer()

    def to_representation(self, submission: Submission) -> dict[str, Any]:
        viewer = self.context["viewer"](submission)
        return super().to_representation(self.describe(submission, viewer))

    def describe(self, submission: Submission, viewer: Viewer) -> dict[str, Any]:
        """Return all fields of a model that this viewer may see."""
        return describe_model(submission, viewer, self.compute_progress(submission))

    def compute_progress(self, submission: Submission) -> Progress:
        """Return the submission's progress, from its prefetched runs."""
        return describe_progress(submission, submission.runs.all())


class WholeModelSerializer(ModelSerializer):
    """A model with its queue position and its log. context: `runs` are all of its runs."""

    position = serializers.IntegerField(allow_null=True, help_text="In the queue, itself counted.")
    wait_seconds = serializers.FloatField(allow_null=True, help_text="As the last runs took.")
    log = serializers.CharField(help_text="The end of the check's log; for those inside.")
    chat = ChatSettingsSerializer(allow_null=True, help_text="Of chat models: how it is asked.")

    def describe(self, submission: Submission, viewer: Viewer) -> dict[str, Any]:
        fields = super().describe(submission, viewer)
        return {**fields, "chat": describe_chat(submission, viewer)}

    def compute_progress(self, submission: Submission) -> Progress:
        runs: list[EvaluationRun] = self.context["runs"]
        return add_queue_position(describe_progress(submission, runs), runs)


def describe_model(submission: Submission, viewer: Viewer, progress: Progress) -> dict[str, Any]:
    """Return all fields of a model that this viewer may see."""
    is_inside, is_available = viewer.is_inside, submission.withdrawn_at is None
    owner, version = find_shown_owner(submission, viewer), submission.evaluation_set
    # Logs and errors may quote files and addresses of the person who submitted it.
    shows_error = is_inside and submission.state != Submission.State.DONE
    card = {name: getattr(submission, name) for name in CARD_FIELDS}
    # A paper names its authors, so it hides with the owner's name.
    card["paper_url"] = submission.paper_url if owner or is_inside else ""
    return {
        **vars(progress),
        **{name: getattr(submission, name) for name in MODEL_FIELDS},
        "task": submission.task.code,
        "name": find_shown_name(submission, viewer),
        "owner": owner,
        "team": find_shown_team(submission, viewer),
        "evaluation_set": version.evaluation_set.name if version else None,
        "error": submission.error if shows_error else "",
        "log": submission.log if shows_error else "",
        "publish_on": submission.publish_on if is_inside else None,
        "anonymous_until": submission.anonymous_until if is_inside else None,
        "handed_in_at": submission.queued_at,
        "withdrawn_at": submission.withdrawn_at,
        "digest": submission.digest if is_available else "",
        "size": submission.size if is_available else None,
        "source": shorten_source(submission.source) if is_inside else "",
        "revision": submission.revision if is_inside else "",
        "card": card,
    }
