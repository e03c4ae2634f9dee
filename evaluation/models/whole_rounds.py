"""What a model would score on a whole round of which people judged a random sample."""

from django.db import models
from django.db.models.functions import Now

from evaluation.models.runs import EvaluationRun


class WholeRoundScore(models.Model):
    """The estimated share of right answers if people had judged the whole round.

    It is of a plain run on the round's own set. Shares are 0-1. Null: too few of the set's examples
    were drawn. See docs/statistics.md, "Scores on rounds with a judge model".
    """

    run = models.OneToOneField(
        EvaluationRun, on_delete=models.CASCADE, related_name="whole_round_score"
    )
    value = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    set_share = models.FloatField(help_text="Of right answers on the set itself, unweighted.")
    judged = models.PositiveIntegerField(help_text="Examples about which people were asked.")
    left_out = models.PositiveIntegerField(help_text="Examples about which they weren't.")
    made_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"whole round of {self.run_id}"
