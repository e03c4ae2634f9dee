"""What the answers of models and the votes of people say about each item of an evaluation set."""

from django.db import models
from django.db.models.functions import Now

from annotation.models import Example
from evaluation.models.evaluation_sets import EvaluationSetVersion


class ItemFit(models.Model):
    """The last estimate of the items of a version, from the answers of so many models."""

    version = models.OneToOneField(
        EvaluationSetVersion, on_delete=models.CASCADE, related_name="item_fit"
    )
    model_count = models.PositiveIntegerField()
    fitted_at = models.DateTimeField(db_default=Now())
    divided_at = models.DateTimeField(
        null=True,
        help_text="Drift is between models that arrived before and after; empty: too few.",
    )

    def __str__(self) -> str:
        return f"{self.version}, {self.model_count} models"


class ItemProperty(models.Model):
    """The properties of an item, with standard errors or 95 % intervals.

    Null: too few answers or votes tell it. See docs/statistics.md, "Properties of items".
    """

    fit = models.ForeignKey(ItemFit, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField(help_text="In the set, from 0.")
    uid = models.CharField(max_length=200)
    example = models.ForeignKey(Example, on_delete=models.SET_NULL, null=True, related_name="+")
    right_share = models.FloatField(help_text="Of the models, 0-1.")
    difficulty = models.FloatField(null=True, help_text="The ability at which half are right.")
    difficulty_error = models.FloatField(null=True)
    discrimination = models.FloatField(null=True)
    discrimination_error = models.FloatField(null=True)
    label_may_be_wrong = models.BooleanField(
        default=False, help_text="Weak models are right more often than strong ones."
    )
    drift = models.FloatField(
        null=True, help_text="Of the logit of a right answer, for later models of equal ability."
    )
    drift_error = models.FloatField(null=True)
    has_drifted = models.BooleanField(default=False, db_default=False)
    votes = models.PositiveIntegerField(default=0, help_text="Of people, without reports.")
    people_wrong = models.FloatField(null=True, help_text="The share of votes for other answers.")
    people_wrong_low = models.FloatField(null=True)
    people_wrong_high = models.FloatField(null=True)
    ambiguity = models.FloatField(null=True, help_text="The chance that two people disagree.")
    ambiguity_low = models.FloatField(null=True)
    ambiguity_high = models.FloatField(null=True)

    class Meta:
        ordering = ["fit", "position"]
        constraints = [
            # For two workers that fit the same version at once.
            models.UniqueConstraint(fields=["fit", "position"], name="item_property_once")
        ]

    def __str__(self) -> str:
        return f"{self.uid} of {self.fit}"
