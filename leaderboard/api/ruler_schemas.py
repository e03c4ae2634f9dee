"""The shapes of the leaderboard on one ruler."""

from rest_framework import serializers

from leaderboard.api.schemas import Interval, Shape


class RulerSet(Shape):
    """A set on the ruler. round: null if it is no round's."""

    set = serializers.CharField()
    version = serializers.IntegerField()
    round = serializers.IntegerField(allow_null=True)


class RulerRound(RulerSet):
    """A set, and what all models would score on it."""

    models = serializers.IntegerField(help_text="That ran it and taught what to expect.")
    expected = Interval()


class RulerScore(RulerSet):
    """A model on one set: expected from its answers to the anchors, and measured if it ran it."""

    is_measured = serializers.BooleanField()
    expected = Interval()
    measured = Interval()


class RulerModel(Shape):
    """A model on the ruler."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    expected = Interval(help_text="The mean over all sets.")
    measured = serializers.FloatField(allow_null=True, help_text="The mean over sets that it ran.")
    measured_sets = serializers.IntegerField()
    scores = RulerScore(many=True)


class OneRuler(Shape):
    """All models and rounds on one ruler, in percent."""

    task = serializers.CharField()
    why = serializers.ChoiceField(
        ["no_ruler", "choosing", "no_links", "no_share"],
        allow_null=True,
        help_text="Why nothing is expected yet; null: it is.",
    )
    metric = serializers.CharField(allow_null=True)
    ruler = serializers.IntegerField(allow_null=True, help_text="Its version.")
    anchors = serializers.IntegerField(allow_null=True)
    is_rounded = serializers.BooleanField(help_text="Because the anchors are secret.")
    sets = RulerRound(many=True)
    models = RulerModel(many=True)
