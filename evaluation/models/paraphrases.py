"""Paraphrases of evaluation sets' examples, written by a language model and checked by people."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.models.evaluation_sets import EvaluationSet, EvaluationSetVersion
from evaluation.models.jobs import ChatJob, Job


class Paraphrasing(ChatJob):
    """A request that a chat model paraphrases examples of a set, with a prompt."""

    function = "evaluation.jobs.write_paraphrases"

    evaluation_set = models.ForeignKey(
        EvaluationSet, on_delete=models.CASCADE, related_name="paraphrasings"
    )
    size = models.PositiveIntegerField(help_text="Examples, at most.")
    report = models.JSONField(default=dict)  # calls, failures

    class Meta(Job.Meta):
        ordering = ["-pk"]
        constraints = [
            *Job.Meta.constraints,
            # Two jobs at once would paraphrase the same examples.
            models.UniqueConstraint(
                fields=["evaluation_set"],
                condition=Q(state__in=["queued", "running"]),
                name="paraphrasing_one_of_a_set",
            ),
        ]

    def __str__(self) -> str:
        return f"Paraphrases of {self.evaluation_set}"


class Paraphrase(models.Model):
    """A paraphrase of an example.

    Only accepted paraphrases become part of versions, where they never change. fields: the new text
    of each field that changes. base: a digest of the example as it was read.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("not checked yet")
        # Translators: a paraphrase that somebody has checked and accepted
        KEPT = "kept", _("kept")
        REFUSED = "refused", _("rejected")
        UNFIT = "unfit", _("not a paraphrase (lost a name, number or label, or changed too little)")

    job = models.ForeignKey(
        Paraphrasing, on_delete=models.CASCADE, related_name="paraphrases", db_index=False
    )
    uid = models.CharField(max_length=200)
    base = models.CharField(max_length=64)
    fields = models.JSONField(default=dict)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    checked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    checked_at = models.DateTimeField(null=True)
    versions = models.ManyToManyField(EvaluationSetVersion, related_name="paraphrases")

    class Meta:
        # A job that is tried again after its worker died writes no example twice.
        constraints = [models.UniqueConstraint(fields=["job", "uid"], name="paraphrase_once")]

    def __str__(self) -> str:
        return f"{self.uid} in other words: {self.state}"
