"""Serializers of the leaderboard's API.

Those of boards only declare the schema: `leaderboard.board.tables` builds the values.
"""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

from evaluation.api.llm_judges import AgreementSerializer

Shape = serializers.Serializer[Any]
ROUNDING_HELP = "The set is sealed, so the value is rounded to about one standard error."


class Interval(Shape):
    """A number with the ends of its 95% interval. Values that are missing are null."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class MeasuredScore(Interval):
    """A score, and the number of examples that it was measured on."""

    n = serializers.IntegerField()
    is_rounded = serializers.BooleanField(help_text=ROUNDING_HELP)


class Failure(Shape):
    """The reason why a model has no score."""

    outcome = serializers.CharField(help_text="An error code: timeout, out_of_memory, rejected …")
    sentence = serializers.CharField(allow_blank=True)
    limit = serializers.CharField(allow_blank=True, help_text="The exceeded limit.")
    measured = serializers.CharField(allow_blank=True)
    log = serializers.CharField(allow_blank=True, help_text="The last lines of the log.")


class BoardScore(Interval):
    """A score, or a range from the worst to the best case if a metric was not measured.

    For a range, value is null, and low and high are the ends of the interval of the whole range.
    """

    least = serializers.FloatField(
        required=False, allow_null=True, help_text="Worst case. Missing in old snapshots."
    )
    most = serializers.FloatField(required=False, allow_null=True, help_text="Best case.")


class ModelResults(Shape):
    """The results of one model on its board. Further rounds have keys such as `round1_acc`."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    task = serializers.CharField()
    phase = serializers.CharField(help_text="State of the model, as one word.")
    sentence = serializers.CharField()
    is_over = serializers.BooleanField(help_text="All evaluations have ended.")
    dynascore = serializers.FloatField(
        allow_null=True, help_text="From 0 to 100, as on the board. null: the score is a range."
    )
    dynascore_low = serializers.FloatField(allow_null=True)
    dynascore_high = serializers.FloatField(allow_null=True)
    dynascore_least = serializers.FloatField(
        allow_null=True, help_text="Lowest possible score, given the metrics not measured."
    )
    dynascore_most = serializers.FloatField(
        allow_null=True, help_text="Highest possible score, given the metrics not measured."
    )
    rank = serializers.CharField(
        allow_null=True, help_text="`2=` is a shared rank. `2–4` are possible ranks of a range."
    )
    round1_acc = serializers.FloatField(
        allow_null=True, help_text="Accuracy (0-1) on the round's newest test set."
    )
    scores = serializers.DictField(
        child=serializers.DictField(child=MeasuredScore()),
        help_text="Values (0-1) by set, then by metric.",
    )
    throughput = serializers.FloatField(allow_null=True, help_text="Examples per second.")
    latency_p95 = serializers.FloatField(
        allow_null=True, help_text="95% of single examples were answered within these seconds."
    )
    memory = serializers.FloatField(allow_null=True, help_text="Peak memory in GiB.")
    memory_mean = serializers.FloatField(allow_null=True, help_text="Mean memory in GiB.")
    fairness = serializers.FloatField(
        allow_null=True, help_text="Accuracy (0-1) of the worst group."
    )
    fairness_gap = serializers.FloatField(
        allow_null=True, help_text="Difference between the best and the worst group, 0-1."
    )
    fairness_consistency = serializers.FloatField(
        allow_null=True, help_text="Share of unchanged answers, 0-1."
    )
    robustness = serializers.FloatField(
        allow_null=True, help_text="Main metric under the worst kind of perturbation, 0-1."
    )
    robustness_drop = serializers.FloatField(
        allow_null=True, help_text="Decrease of the main metric under this perturbation, 0-1."
    )
    robustness_consistency = serializers.FloatField(
        allow_null=True, help_text="Share of unchanged answers, 0-1."
    )
    notes = serializers.ListField(child=serializers.CharField())
    error = Failure(allow_null=True, help_text="Shown only to its owner and the task's owners.")


class ResultsShape(OpenApiSerializerExtension):
    """A schema extension for the keys of further rounds, which no serializer field can declare."""

    target_class = ModelResults

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        """Return the serializer's schema with a pattern for the keys of further rounds."""
        shape = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        shape["patternProperties"] = {r"^round[0-9]+_acc$": {"type": ["number", "null"]}}
        return shape


class TaskReference(Shape):
    """A task by its code and name."""

    code = serializers.CharField()
    name = serializers.CharField()


class BoardJudge(Shape):
    """The language model that judged the answers behind a score."""

    name = serializers.CharField(help_text="As in the task's configuration.")
    model = serializers.CharField(allow_blank=True)
    number = serializers.IntegerField(
        help_text="Number of the judge in the task. 0: no judge of this name yet."
    )
    agreement = AgreementSerializer(
        help_text="Agreement with people. An uncalibrated judge doesn't count."
    )


class BoardMetric(Shape):
    """A metric, which is a column of the board."""

    name = serializers.CharField()
    version = serializers.IntegerField(
        help_text=(
            "Changes when answers are scored differently. For llm_judge the judge's number. For "
            "a custom metric (custom:NAME) 0 until a version is approved."
        )
    )
    judge = BoardJudge(required=False, help_text="Only for llm_judge.")
    about = serializers.CharField(
        required=False, allow_blank=True, help_text="For custom metrics: what the metric measures."
    )
    higher_is_better = serializers.BooleanField(
        required=False, help_text="Missing in snapshots from before release 0.4."
    )


class Weights(Shape):
    """The weights of metrics and sets; only their ratios matter."""

    metrics = serializers.DictField(child=serializers.FloatField())
    sets = serializers.DictField(child=serializers.FloatField())


class BoardSet(Shape):
    """The newest version of a set of examples."""

    name = serializers.CharField()
    version = serializers.IntegerField()
    sha256 = serializers.CharField()
    access = serializers.CharField(help_text="scoring, standard")
    examples = serializers.IntegerField()
    date = serializers.DateField()
    is_provisional = serializers.BooleanField(
        required=False, help_text="The set was taken while its round was still being judged."
    )
    judged = serializers.IntegerField(
        required=False, allow_null=True, help_text="Judged examples of the round at that time."
    )
    to_judge = serializers.IntegerField(
        required=False, allow_null=True, help_text="Number of examples in the round to judge."
    )
    left_out = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="Examples of the round about which nobody was asked; null: people judged all.",
    )
    min_examples = serializers.IntegerField(
        required=False, help_text="Minimum number of examples to rank by. 0: none."
    )
    counts = serializers.BooleanField(required=False, help_text="The set has a weight.")
    is_sealed = serializers.BooleanField(
        required=False, help_text="Scores on the set are rounded, and some are hidden."
    )
    overlap = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="Share (0-1) found in seed data or released rounds. null: unknown.",
    )


class BoardRow(Shape):
    """A model's row on a board, in percent, GiB and examples per second as on the page."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    owner = serializers.CharField(allow_blank=True, help_text="A pseudonym. Empty: hidden or none.")
    team = serializers.CharField(
        allow_blank=True, default="", help_text="Team it was submitted for. Empty: hidden or none."
    )
    rank = serializers.CharField(
        allow_blank=True,
        help_text="`2=` is a shared rank. `2–4` are possible ranks of a range. Empty: not run.",
    )
    first = serializers.IntegerField(allow_null=True, help_text="Best possible rank.")
    last = serializers.IntegerField(allow_null=True)
    dynascore = BoardScore()
    points = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="What each metric adds to the score. Only in mode anchored.",
    )
    metrics = serializers.DictField(child=Interval())
    sets = serializers.DictField(child=serializers.DictField(child=Interval()))
    whole_rounds = serializers.DictField(
        child=Interval(),
        required=False,
        help_text="By set: the estimated share of right answers if people had judged its whole "
        "round. Only of rounds of which they judged a sample, and of sets that aren't sealed.",
    )
    in_the_loop = serializers.ListField(child=serializers.CharField())
    missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="What was not measured. Without a score: what it would need.",
    )


class CurrentBoardRow(BoardRow):
    """A row of the current board."""

    is_published = serializers.BooleanField()


class Scale(Shape):
    """The values of a metric that add nothing to the score (`low`) and its full weight (`high`).

    For costs, `low` is the larger number.
    """

    low = serializers.FloatField()
    high = serializers.FloatField()


class Anchors(Shape):
    """The scales by metric, taken from a version of the task's reference pool."""

    version = serializers.IntegerField()
    costs = serializers.IntegerField(
        required=False,
        help_text="How often this site has measured speed and memory. 0: values as shipped.",
    )
    scales = serializers.DictField(child=Scale())


class StoredBoard(Shape):
    """A board as a snapshot stores it, with everything that its scores depend on."""

    task = TaskReference()
    date = serializers.DateField()
    code = serializers.CharField(help_text="Version and digest of the code.")
    config_sha256 = serializers.CharField(
        required=False, help_text="Digest of the task's configuration. Not in old snapshots."
    )
    mode = serializers.ChoiceField(["anchored", "robust", "classic"])
    main = serializers.CharField()
    metrics = BoardMetric(many=True)
    weights = Weights()
    rates = serializers.DictField(child=serializers.FloatField(allow_null=True))
    anchors = Anchors(required=False, allow_null=True, help_text="Only in mode anchored.")
    budgets = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text=(
            "For metrics where less is better, the budget that the value is subtracted from. Not "
            "in mode anchored."
        ),
    )
    formula = serializers.CharField(
        required=False, allow_blank=True, help_text="The formula of the scores, as a sentence."
    )
    pool = serializers.ListField(child=serializers.CharField())
    resamples = serializers.IntegerField()
    runner = serializers.CharField(allow_blank=True)
    sets = BoardSet(many=True)
    notices = serializers.ListField(child=serializers.CharField())
    rows = BoardRow(many=True)


class CurrentBoard(StoredBoard):
    """The current board."""

    rows = CurrentBoardRow(many=True)


class ComparedModel(Shape):
    """One of the two models in a comparison."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    owner = serializers.CharField(allow_blank=True)
    team = serializers.CharField(allow_blank=True)


class ComparedRow(Shape):
    """A metric of both models on a set. The difference is a − b, in percentage points."""

    set = serializers.CharField()
    version = serializers.IntegerField()
    is_provisional = serializers.BooleanField(
        help_text="The set was taken while its round was still being judged."
    )
    judged = serializers.IntegerField(
        allow_null=True, help_text="Judged examples of the round at that time."
    )
    to_judge = serializers.IntegerField(
        allow_null=True, help_text="Number of examples in the round to judge."
    )
    metric = serializers.CharField()
    is_rounded = serializers.BooleanField(help_text=ROUNDING_HELP)
    slice = serializers.CharField(allow_blank=True)
    a = Interval()
    b = Interval()
    difference = Interval()
    p = serializers.FloatField(
        allow_null=True, help_text="Corrected for multiple tests. null: not tested."
    )
    p_uncorrected = serializers.FloatField(
        allow_null=True, help_text="Uncorrected, from the test named in `method`."
    )
    correction = serializers.ChoiceField(
        ["holm", "benjamini-hochberg"],
        allow_blank=True,
        help_text="Correction of p: Holm over rows, Benjamini-Hochberg over slices.",
    )
    n = serializers.IntegerField(allow_null=True)
    better = serializers.CharField(
        allow_blank=True, help_text="a, b or untested. Empty: not clear."
    )
    method = serializers.CharField(allow_blank=True)


class ComparedExample(Shape):
    """An example on which two models differ."""

    uid = serializers.CharField()
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True))
    a = serializers.CharField(allow_blank=True)
    b = serializers.CharField(allow_blank=True)
    gold = serializers.ListField(
        child=serializers.CharField(),
        help_text="Page with the models' errors. Empty: you can't see it.",
    )


class ComparedLoop(Shape):
    """A set that people wrote against one of the two models."""

    model = serializers.ChoiceField(["a", "b"])
    set = serializers.CharField()


class ModelComparison(Shape):
    """A comparison of two models."""

    a = ComparedModel()
    b = ComparedModel()
    judge = BoardJudge(allow_null=True, help_text="For rows of llm_judge. Otherwise null.")
    rows = ComparedRow(many=True)
    slices = ComparedRow(many=True)
    tested_slices = serializers.IntegerField()
    small_slices = serializers.IntegerField()
    unread = serializers.ListField(child=serializers.CharField())
    in_the_loop = ComparedLoop(many=True)
    readable = serializers.ListField(
        child=serializers.CharField(), help_text="Sets whose examples `set` may name."
    )
    examples = ComparedExample(many=True)
    next_page = serializers.IntegerField(allow_null=True)


class RoundColumn(Shape):
    """A round: the results of people and models in percent, and whether progress continues."""

    round = serializers.IntegerField()
    set = serializers.CharField(allow_null=True)
    sha256 = serializers.CharField(allow_null=True)
    is_provisional = serializers.BooleanField(
        help_text="The set was taken while its round was still being judged."
    )
    judged = serializers.IntegerField(
        allow_null=True, help_text="Judged examples of the round at that time."
    )
    to_judge = serializers.IntegerField(
        allow_null=True, help_text="Number of examples in the round to judge."
    )
    people = Interval()
    people_minus_best = Interval()
    best = serializers.CharField(allow_blank=True)
    people_minus_loop = Interval()
    vmer = Interval()
    noise = serializers.FloatField(allow_null=True)
    progress = serializers.CharField()


class RoundCell(Interval):
    """A model's value on a round's set."""

    round = serializers.IntegerField()
    in_the_loop = serializers.BooleanField()


class RoundLine(ComparedModel):
    """A model's results on every round."""

    rounds = RoundCell(many=True)
    newest_minus_oldest = Interval(allow_null=True)


class WornOut(Shape):
    """Since when a round has not told models apart, with a 95% interval."""

    # Spelled out, because the module of `WornState` loads numpy.
    state = serializers.ChoiceField(["too_few", "not_yet", "worn"])
    day = serializers.DateField(allow_null=True, help_text="null: not worn out, or not known.")
    low = serializers.DateField(allow_null=True)
    high = serializers.DateField(allow_null=True)
    models = serializers.IntegerField(help_text="Models that have come since that day.")


class WornRound(Shape):
    """How worn out a round is. Values are null with too little data."""

    round = serializers.IntegerField(help_text="Its number.")
    margin = Interval(help_text="People's accuracy - models' accuracy - ambiguity, in points.")
    margin_n = serializers.IntegerField(help_text="Examples behind the margin.")
    telling = Interval(help_text="Examples that still tell models apart, in percent.")
    item_n = serializers.IntegerField(help_text="Examples behind `telling`.")
    worn_out = WornOut()


class RoundFall(Shape):
    """A fall of the models' mean between the last two rounds on the ruler, in points."""

    earlier = serializers.IntegerField(help_text="Round.")
    later = serializers.IntegerField(help_text="Round.")
    fall = serializers.FloatField(help_text="Below 0: a rise.")
    harder = Interval(help_text="The part that the same models lose by harder examples.")
    others = serializers.FloatField(help_text="The part that comes from other models.")
    both = serializers.IntegerField(help_text="Models that ran both rounds.")


class RoundsMatrix(Shape):
    """The results of every model on every round."""

    task = serializers.CharField()
    metric = serializers.CharField()
    is_counting = serializers.BooleanField(
        help_text="We're still calculating the numbers of people."
    )
    verdict = serializers.CharField()
    rounds = RoundColumn(many=True)
    models = RoundLine(many=True)
    worn = WornRound(many=True)
    last_fall = RoundFall(allow_null=True, help_text="null: not two rounds on the ruler.")


class DatedSide(Shape):
    """The share of correct answers, in percent, on the rounds before or after a date."""

    rounds = serializers.ListField(child=serializers.IntegerField())
    n = serializers.IntegerField(help_text="Examples.")
    is_provisional = serializers.BooleanField(
        help_text="A set was taken while its round was still being judged."
    )
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class DatedDifference(Shape):
    """The first side's share minus the second's, in percentage points, with a 95% interval."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class DatedModel(Shape):
    """A model that states the end of its training data."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    trained_until = serializers.DateField()
    before = DatedSide()
    after = DatedSide()
    difference = DatedDifference()
    others = serializers.FloatField(
        allow_null=True, help_text="Mean difference of the other models on the same sets."
    )


class HeldBackModel(Shape):
    """A model's results on held-back rows, and on the published rows of the same rounds."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    released = DatedSide()
    held = DatedSide()
    difference = DatedDifference()


class LeakTrialBody(Shape):
    """A model that arrived after a release, on its released and its held-back rows, in points.

    null: one of the halves has too few rows or authors.
    """

    id = serializers.UUIDField()
    model = serializers.CharField()
    round = serializers.IntegerField(help_text="Its number.")
    released_n = serializers.IntegerField(help_text="Examples.")
    held_n = serializers.IntegerField(help_text="Examples.")
    released_authors = serializers.IntegerField()
    held_authors = serializers.IntegerField()
    earlier_models = serializers.IntegerField(
        help_text="Models from before the release, whose answers say how hard each example is."
    )
    difference = DatedDifference()
    p_value = serializers.FloatField(allow_null=True, help_text="One-sided.")
    p_corrected = serializers.FloatField(
        allow_null=True, help_text="For all trials of this answer (Holm)."
    )
    is_found = serializers.BooleanField(help_text="Whether the corrected p-value is at most 0.05.")
    largest_leak = serializers.FloatField(
        allow_null=True, help_text="Larger leaks can be excluded."
    )
    smallest_leak = serializers.FloatField(
        allow_null=True, help_text="A trial of this size finds such a leak in 80% of the cases."
    )


class TrainingDates(Shape):
    """The models' results before and after their training dates, and on held-back rows."""

    task = serializers.CharField()
    metric = serializers.CharField(help_text="Empty: no metric is an accuracy.")
    models = DatedModel(many=True)
    held_back = HeldBackModel(many=True)
    leak_trials = LeakTrialBody(many=True)


class PersonLine(Shape):
    """A person in the ranking. Rates are from 0 to 1."""

    rank = serializers.CharField()
    name = serializers.CharField(source="standing.pseudonym")
    is_mine = serializers.BooleanField()
    rate = serializers.FloatField(source="standing.rate")
    low = serializers.FloatField(source="standing.low")
    high = serializers.FloatField(source="standing.high")
    fooled = serializers.IntegerField(source="standing.fooled")
    tries = serializers.IntegerField(
        source="standing.tries", help_text="All submissions, including withdrawn ones."
    )


class TeamWeek(Shape):
    """The number of passages with an example confirmed since Monday, and the team's weekly goal."""

    passages = serializers.IntegerField()
    goal = serializers.IntegerField()


class PeopleRanking(Shape):
    """The ranking of the people who chose to appear in it; only they can see it."""

    in_ranking = serializers.BooleanField()
    team = TeamWeek(allow_null=True)
    places = PersonLine(many=True)
