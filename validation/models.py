"""The models of stage 3, in which other people judge whether an example is right."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import Example
from core.accounts.models import Annotator
from tasks.models import Round, TargetModel
from validation.consensus.consensus import Vote
from validation.consensus.dawid_skene.posterior import FittedModel
from validation.consensus.vote_draws import DrawRule

# The same limit as that of `validation.imports.rows.Answer`, which refuses longer ones.
MAX_ANSWER_CHARS = 5000
"""The longest answer in a vote: labels are short, but imported answers may be texts."""


def _build_choice_constraint(name: str) -> models.CheckConstraint:
    """Return a constraint that requires either a label or a verdict; see `Vote`."""
    neither = Q(label="", verdict="")
    both = ~Q(label="") & ~Q(verdict="")
    return models.CheckConstraint(condition=~neither & ~both, name=name)


class Verdict(models.TextChoices):
    """A judgement instead of a label; the last two exist in either mode."""

    CORRECT = "correct", _("Correct")
    INCORRECT = "incorrect", _("Incorrect")
    # Translators: a judge reported a problem with the example
    FLAGGED = "flagged", _("Flagged")
    CANNOT_TELL = "cannot_tell", _("Unclear")


class Choice(models.Model):
    """An abstract model with either a label, or a verdict on the author's answer."""

    label = models.CharField(max_length=MAX_ANSWER_CHARS, blank=True)
    verdict = models.CharField(max_length=11, choices=Verdict, blank=True)

    class Meta:
        abstract = True

    @property
    def vote(self) -> Vote:
        """Return the choice as a `Vote` for the rules."""
        return Vote(self.label or None, self.verdict or None)  # type: ignore[arg-type]


class ValidatorAnswer(Choice):
    """An abstract model of a validator's answers about an example, before and after the reveal."""

    class FlagReason(models.TextChoices):
        UNCLEAR = "unclear", _("I cannot understand it")
        WRONG_LANGUAGE = "wrong-language", _("It is in the wrong language")
        PERSONAL = "personal", _("It contains personal data")
        COPIED = "copied", _("It is copied or written by a machine")
        HARMFUL = "harmful", _("It is more harmful than the task needs")
        BROKEN = "broken", _("The text is broken")
        OTHER = "other", _("Something else")

    class Reveal(models.TextChoices):
        KEEP = "keep", _("Keep my answer")
        CHANGE = "change", _("Change my answer")
        UNCLEAR = "unclear", _("The question is unclear")

    flag_reason = models.CharField(max_length=20, choices=FlagReason, blank=True)
    comment = models.CharField(max_length=500, blank=True)
    # In addition to the vote, because what was shown before may have influenced it.
    reveal = models.CharField(
        max_length=10, choices=Reveal, blank=True,
        help_text="The answer after the author's label was shown. The blind one counts.",
    )  # fmt: skip
    reveal_choice = models.CharField(max_length=200, blank=True)
    reveal_comment = models.CharField(max_length=500, blank=True)
    metadata = models.JSONField(default=dict)  # the answers to `judge_questions`
    judgements = models.JSONField(
        null=True, help_text="Under the verdict criteria: one of each criterion, in their order."
    )
    # Null if no time was measured, such as for imported votes.
    seconds = models.FloatField(null=True, help_text="From handing out to the answer.")
    words = models.PositiveIntegerField(null=True, help_text="That were shown to be read.")
    # Votes by programs count in decisions, but not in numbers about people.
    by_program = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True


class Validation(ValidatorAnswer):
    """One vote on one example, given before the author's label or the model's answer is seen.

    Imported votes have no validator if the source names none, and one validator may have several.
    """

    # No index of its own: `validation_by_example` begins with this column.
    example = models.ForeignKey(
        Example, on_delete=models.PROTECT, related_name="validations", db_index=False
    )
    # No index here either: `validation_time` begins with it.
    validator = models.ForeignKey(
        Annotator, on_delete=models.PROTECT, null=True, related_name="validations", db_index=False
    )
    author = models.ForeignKey(
        Annotator, on_delete=models.PROTECT, null=True, related_name="+", db_index=False,
        help_text="Of the example; here so that the database refuses a vote on one's own.",
    )  # fmt: skip
    is_imported = models.BooleanField(default=False)

    class Meta:
        verbose_name = "vote"
        constraints = [
            models.UniqueConstraint(
                # A person votes once on an example, but imported votes may repeat a validator.
                fields=["example", "validator"],
                condition=Q(is_imported=False),
                name="validation_one_vote",
            ),
            models.CheckConstraint(
                # Nobody may vote on their own example, on any page or by the API.
                condition=Q(author__isnull=True)
                | Q(validator__isnull=True)
                | ~Q(author=F("validator")),
                name="validation_not_own",
            ),
            _build_choice_constraint("validation_one_choice"),
        ]
        indexes = [
            # The votes of an example, and whether a person is among its judges.
            models.Index(fields=["example", "validator"], name="validation_by_example"),
            # A person's votes of today, and the latest one, which they may undo.
            models.Index(fields=["validator", "created_at"], name="validation_time"),
        ]

    def __str__(self) -> str:
        return f"vote on {self.example}"


class Consensus(Choice):
    """The outcome of judging one example, derived from its votes and any owner's decision.

    Only examples with votes or an owner's decision have a row.
    """

    class State(models.TextChoices):
        UNDECIDED = "undecided"
        DECIDED = "decided"
        NO_CONSENSUS = "no_consensus"

    class DecidedBy(models.TextChoices):
        VOTES = "votes"
        OWNER = "owner"

    example = models.OneToOneField(
        Example, on_delete=models.CASCADE, primary_key=True, related_name="consensus"
    )
    # A copy of the example's round, so that the counts of a round need no join.
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="+", db_index=False)
    state = models.CharField(max_length=12, choices=State)
    votes = models.PositiveIntegerField()
    still_needed = models.PositiveIntegerField()
    is_verified = models.BooleanField(default=False)
    is_validated_error = models.BooleanField(default=False)
    is_sent_back = models.BooleanField(default=False, db_default=False)
    judgements = models.JSONField(
        null=True, help_text="Under the verdict criteria: of each what the votes decided, or null."
    )
    score = models.FloatField(null=True, help_text="By the criteria (0-1); null: none, or open.")
    decided_by = models.CharField(max_length=5, choices=DecidedBy, blank=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "consensus"
        indexes = [
            models.Index(  # covers the counts of a round
                fields=["round", "state", "is_verified", "is_validated_error"],
                name="consensus_counts",
            ),
            models.Index(  # the catches that are shown to other writers
                fields=["round", "example"],
                condition=Q(is_validated_error=True),
                name="consensus_errors",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.example}: {self.label or self.verdict or self.state}"


class OwnerDecision(Choice):
    """An owner's decision on an example; it wins until withdrawn. All rows form the history."""

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="owner_decisions")
    # A decision outlives the account of the person who made it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True)
    is_sent_back = models.BooleanField(
        default=False, db_default=False, help_text="It asks the author to mend the example."
    )
    created_at = models.DateTimeField(db_default=Now())
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "decision"
        constraints = [
            models.UniqueConstraint(
                # Earlier decisions stay as history; at most one is current.
                fields=["example"],
                condition=Q(withdrawn_at__isnull=True),
                name="decision_one",
            ),
            _build_choice_constraint("decision_one_choice"),
        ]

    def __str__(self) -> str:
        return f"decision on {self.example}"


class ExampleTag(models.Model):
    """A reviewer's search tag on an example; never released."""

    example = models.ForeignKey(
        Example, on_delete=models.CASCADE, related_name="tags", db_index=False
    )
    name = models.CharField(
        max_length=40, db_index=True
    )  # `validation.consensus.tags.normalise_tag`

    class Meta:
        ordering = ["name"]
        # If two reviewers add the same tag at once, it is stored once.
        constraints = [models.UniqueConstraint(fields=["example", "name"], name="tag_once")]

    def __str__(self) -> str:
        return f"{self.name}: {self.example}"


class Comment(models.Model):
    """A member's comment on an example, for the other members who may read the task.

    `text` stores a mentioned person as `@{id}`, so that it never contains the name of a person who
    has left.
    """

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="comments")
    # Deleting an account empties the text but keeps the row, so that replies make sense.
    author = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField(max_length=2000)
    created_at = models.DateTimeField(db_default=Now())
    edited_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)  # the text is empty after this time
    reported_at = models.DateTimeField(null=True)  # null again after an owner has checked it

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.author} about {self.example}"


class Mention(models.Model):
    """A mention, in a comment, of a member who may read the task."""

    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="mentions")
    person = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="mentions")
    created_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(null=True)

    class Meta:
        # An edit that names the same person again adds no second notice.
        constraints = [models.UniqueConstraint(fields=["comment", "person"], name="mention_once")]

    def __str__(self) -> str:
        return f"{self.person} in {self.comment}"


class RoundPolicy(models.Model):
    """A round's policy and fitted model, and the last example considered for the queue."""

    round = models.OneToOneField(
        Round, on_delete=models.CASCADE, primary_key=True, related_name="round_policy"
    )
    policy = models.JSONField()  # the fields of validation.consensus.consensus.Policy
    filled_to = models.BigIntegerField(default=0)  # an example's id
    # The fields of `validation.consensus.dawid_skene.posterior.FittedModel`.
    model = models.JSONField(null=True)
    # The fields of `validation.consensus.vote_draws.DrawRule`. Null: people judge everything.
    draw = models.JSONField(null=True)
    # Whether an owner chose `draw`, or the round opened with it. Before, the task's file sets it.
    is_draw_settled = models.BooleanField(default=False, db_default=False)
    # Since when the judge model hasn't answered; null while it answers.
    judge_down_since = models.DateTimeField(null=True)

    class Meta:
        db_table = "validation_judging"
        verbose_name_plural = "round policies"

    def __str__(self) -> str:
        return f"policy of {self.round}"

    @property
    def fitted_model(self) -> FittedModel | None:
        """Return Dawid and Skene's model of the round's votes; None if none was fitted."""
        return FittedModel(**self.model) if self.model else None

    @property
    def draw_rule(self) -> DrawRule | None:
        """Return the rule by which people are asked about a sample; None if about everything."""
        return DrawRule(**self.draw) if self.draw else None


class VoteDraw(models.Model):
    """Whether people are asked about an example that a judge model answered first.

    Written once, before anybody votes, and never changed: neither by another rule of the round nor
    by another answer of the judge. Without a row, people are asked by the task's configuration.
    """

    class Reason(models.TextChoices):
        SURE = "sure", _("The judge model was sure")
        UNSURE = "unsure", _("The judge model was unsure")
        NO_ANSWER = "no_answer", _("The judge model gave no answer")
        UNREADABLE = "unreadable", _("The judge model’s answer couldn’t be read")

    # The primary key, so that of two draws at the same moment only the first is stored.
    example = models.OneToOneField(
        Example, on_delete=models.CASCADE, primary_key=True, related_name="vote_draw"
    )
    # A copy of the example's round, so that the counts of a round need no join.
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="+", db_index=False)
    judge = models.ForeignKey(
        TargetModel, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    judge_score = models.FloatField(
        null=True, help_text="The probability that the author is right; null: no answer."
    )
    chance = models.FloatField(help_text="Of being drawn for people: above 0, at most 1.")
    is_drawn = models.BooleanField()
    reason = models.CharField(max_length=10, choices=Reason)
    # `DrawRule.prompt_digest`: the same model with another instruction is another judge.
    prompt_digest = models.CharField(max_length=16, blank=True, db_default="")
    drawn_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # Votes are weighted by one over it.
            models.CheckConstraint(
                condition=Q(chance__gt=0, chance__lte=1), name="draw_chance_is_known"
            )
        ]
        indexes = [
            # The counts of a round, and whether it has any.
            models.Index(fields=["round", "is_drawn", "reason"], name="draw_counts")
        ]

    def __str__(self) -> str:
        return f"{self.example}: {'drawn' if self.is_drawn else 'not drawn'} ({self.chance:g})"


class QueueItem(models.Model):
    """An example that is, or was, to be judged. `free` = still_needed − leased places."""

    example = models.OneToOneField(
        Example, on_delete=models.CASCADE, primary_key=True, related_name="queue_item"
    )
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="+", db_index=False)
    # A copy of the example's author, so that the queue can skip a person's own examples.
    author = models.ForeignKey(
        Annotator, on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    still_needed = models.PositiveIntegerField()
    # Below 0 after a policy that needs fewer votes than there are leases.
    free = models.IntegerField()
    key = models.BigIntegerField()  # random but constant: `sampling.compute_order_key`

    class Meta:
        # The order of the queue: nearly decided examples first, then random.
        indexes = [models.Index(fields=["round", "still_needed", "key"], name="queue_order")]

    def __str__(self) -> str:
        return f"{self.example}: {self.still_needed} needed"


class JudgeLease(models.Model):
    """The lease of an example to a validator; it takes a place until answered or expired."""

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="judge_leases")
    validator = models.ForeignKey(
        Annotator, on_delete=models.CASCADE, related_name="judge_leases", db_index=False
    )
    # An ended lease keeps its row, so that a late answer can still count.
    takes_place = models.BooleanField(default=True)
    is_gold = models.BooleanField(default=False)  # takes no place; its answer is not a vote
    leased_at = models.DateTimeField()
    until = models.DateTimeField()
    undone_at = models.DateTimeField(null=True)  # when its answer was last undone

    class Meta:
        constraints = [
            # A person who gets an example again renews their lease, without a second place.
            models.UniqueConstraint(fields=["example", "validator"], name="lease_one_each")
        ]
        indexes = [
            # The latest lease of a person, at each request of the judge page.
            models.Index(fields=["validator", "until"], name="lease_current"),
            # Leases that have run out, whose places return to the queue.
            models.Index(fields=["takes_place", "until"], name="lease_expired"),
        ]

    def __str__(self) -> str:
        return f"{self.validator} holds {self.example}"


class Skip(models.Model):
    """An example that a validator skipped; it is never shown to them again."""

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="skips")
    validator = models.ForeignKey(
        Annotator, on_delete=models.CASCADE, related_name="skips", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        # Also the index by which the queue leaves out skipped examples.
        constraints = [models.UniqueConstraint(fields=["validator", "example"], name="skip_once")]

    def __str__(self) -> str:
        return f"{self.validator} skips {self.example}"


class Gold(Choice):
    """An example with a known answer, mixed in with the others to check validators."""

    example = models.OneToOneField(
        Example, on_delete=models.CASCADE, primary_key=True, related_name="gold"
    )
    explanation = models.CharField(
        max_length=500, blank=True, help_text="Shown to validators who answered otherwise."
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "gold"
        constraints = [_build_choice_constraint("gold_one_choice")]

    def __str__(self) -> str:
        return f"{self.example}: {self.label or self.verdict}"


class GoldAnswer(ValidatorAnswer):
    """A validator's answer to a gold item; it is not a vote."""

    # Once an example is no longer gold, there is no reference for its answers.
    gold = models.ForeignKey(Gold, on_delete=models.CASCADE, related_name="answers")
    validator = models.ForeignKey(
        Annotator, on_delete=models.CASCADE, related_name="gold_answers", db_index=False
    )
    is_correct = models.BooleanField()
    counts = models.BooleanField(default=True)  # until the validator has read a refresher

    class Meta:
        constraints = [
            # One answer per person; a second one from another tab would count twice.
            models.UniqueConstraint(fields=["validator", "gold"], name="gold_one_answer"),
            _build_choice_constraint("gold_answer_one_choice"),
        ]

    def __str__(self) -> str:
        return f"{self.validator} on gold {self.gold_id}"

    @property
    def example(self) -> Example:
        """Return the gold item's example, under the same name as for a vote."""
        return self.gold.example
