"""What the leaderboard's part of the API answers and takes.

Of a board only the shape stands here: its values come from `leaderboard.tables` as they are.
"""

from typing import Any

from rest_framework import serializers

Shape = serializers.Serializer[Any]


class Interval(Shape):
    """A number with its interval of 95 %; null: none."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class Measured(Interval):
    """A score, and of how many examples it is."""

    n = serializers.IntegerField()


class Failure(Shape):
    """Why a model has no score."""

    outcome = serializers.CharField(help_text="One word: timeout, out_of_memory, rejected …")
    sentence = serializers.CharField(allow_blank=True)
    limit = serializers.CharField(allow_blank=True, help_text="The limit that was hit.")
    measured = serializers.CharField(allow_blank=True)
    log = serializers.CharField(allow_blank=True, help_text="The end of it.")


class Results(Shape):
    """One model on its board. Besides `round1_acc` there is such a key for each further round."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    task = serializers.CharField()
    phase = serializers.CharField(help_text="One word for how far it is, as of the model.")
    sentence = serializers.CharField()
    is_over = serializers.BooleanField(help_text="Nothing is awaited any more.")
    dynascore = serializers.FloatField(allow_null=True, help_text="In percent, as on the board.")
    dynascore_low = serializers.FloatField(allow_null=True)
    dynascore_high = serializers.FloatField(allow_null=True)
    rank = serializers.CharField(allow_null=True, help_text="`2=` is shared.")
    round1_acc = serializers.FloatField(
        allow_null=True, help_text="The main metric, 0-1, on the round's newest set."
    )
    scores = serializers.DictField(
        child=serializers.DictField(child=Measured()), help_text="By set, then by metric; 0-1."
    )
    throughput = serializers.FloatField(allow_null=True, help_text="Examples a second.")
    memory = serializers.FloatField(allow_null=True, help_text="GiB, at its peak.")
    fairness = serializers.FloatField(allow_null=True, help_text="0-1.")
    robustness = serializers.FloatField(allow_null=True, help_text="0-1.")
    notes = serializers.ListField(child=serializers.CharField())
    error = Failure(allow_null=True, help_text="Only for its owner and the task's owners.")
