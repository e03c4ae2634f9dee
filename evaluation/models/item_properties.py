"""What the answers of models and the votes of people say about each item of an evaluation set."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from core.text.languages import get_language_name
from evaluation.models.evaluation_sets import EvaluationSetVersion

ALARM_SHARE = 0.05
"""The chance that any language is said to differ although none does."""


class WhyNoLanguages(models.TextChoices):
    """Why the languages of a set can't be compared, as `evaluation.scoring.ruler.languages`."""

    ONE_LANGUAGE = "one_language", _("All examples are in one language.")
    TOO_FEW_ITEMS = "too_few_items", _("Fewer than 10 examples are in a second language.")
    TOO_FEW_MODELS = "too_few_models", _("Fewer than four different models have answered.")


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

    why_no_languages = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        choices=WhyNoLanguages,
        help_text="Empty: languages are compared, or the fit is older than such comparisons.",
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
    language = models.CharField(max_length=35, blank=True, default="", db_default="")
    translation_shift = models.FloatField(
        null=True, help_text="Of the logit of a right answer, from its translation to this item."
    )
    translation_shift_error = models.FloatField(null=True)
    differs_from_translation = models.BooleanField(default=False, db_default=False)
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


class ItemLanguage(models.Model):
    """How a language's items differ from those of a reference language, in one fit.

    shift, low, high: of the logit of a right answer, above 0 if the language is easier. Shares are
    of all answers to what is compared (0-1).
    """

    fit = models.ForeignKey(ItemFit, on_delete=models.CASCADE, related_name="languages")
    number = models.PositiveIntegerField(help_text="The surest to differ has number 0.")
    language = models.CharField(max_length=35)
    reference = models.CharField(max_length=35)
    item_count = models.PositiveIntegerField()
    pair_count = models.PositiveIntegerField(
        help_text="Items with a translation; 0: they are compared with other items."
    )
    right_share = models.FloatField()
    reference_share = models.FloatField()
    shift = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    p_value = models.FloatField(help_text="Adjusted for all languages of the set.")

    class Meta:
        ordering = ["fit", "number"]
        constraints = [
            models.UniqueConstraint(fields=["fit", "language"], name="item_language_once")
        ]

    def __str__(self) -> str:
        return f"{self.language} in {self.fit}"

    @property
    def language_name(self) -> str:
        """Return the language's name in the page's language."""
        return get_language_name(self.language)

    @property
    def reference_name(self) -> str:
        """Return the name of the language with which it is compared."""
        return get_language_name(self.reference)

    @property
    def direction(self) -> str:
        """Return "harder" or "easier" than the reference; "" if it may be neither."""
        # By the adjusted p-value: of many languages, some intervals exclude 0 by chance.
        if self.p_value > ALARM_SHARE:
            return ""
        return "easier" if self.shift > 0 else "harder"
