"""What the leaderboard's part of the API answers and takes.

Of a board only the shape stands here: its values come from `leaderboard.board.tables` as they are.
"""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

from evaluation.api.llm_judges import AgreementSerializer

Shape = serializers.Serializer[Any]
ROUNDING_HELP = "The set is sealed: the value is rounded to a step of about a standard error."


class Interval(Shape):
    """A number with its 95 % interval; null if it has none."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class Measured(Interval):
    """A score, and the number of examples that it was measured on."""

    n = serializers.IntegerField()
    is_rounded = serializers.BooleanField(help_text=ROUNDING_HELP)


class Failure(Shape):
    """The reason why a model has no score."""

    outcome = serializers.CharField(help_text="One word: timeout, out_of_memory, rejected …")
    sentence = serializers.CharField(allow_blank=True)
    limit = serializers.CharField(allow_blank=True, help_text="The limit that was hit.")
    measured = serializers.CharField(allow_blank=True)
    log = serializers.CharField(allow_blank=True, help_text="The end of it.")


class BoardScore(Interval):
    """A score, or a range from the worst to the best case if a metric was not measured.

    For a range, value is null, and low and high are the ends of the interval of the whole range.
    """

    least = serializers.FloatField(
        required=False, allow_null=True, help_text="The worst case; absent in old snapshots."
    )
    most = serializers.FloatField(required=False, allow_null=True, help_text="The best case.")


class Results(Shape):
    """The results of one model on its board. Further rounds have keys such as `round1_acc`."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    task = serializers.CharField()
    phase = serializers.CharField(help_text="One word for how far it is, as of the model.")
    sentence = serializers.CharField()
    is_over = serializers.BooleanField(help_text="Nothing is awaited any more.")
    dynascore = serializers.FloatField(
        allow_null=True, help_text="From 0 to 100, as on the board; null where it is a range."
    )
    dynascore_low = serializers.FloatField(allow_null=True)
    dynascore_high = serializers.FloatField(allow_null=True)
    dynascore_least = serializers.FloatField(
        allow_null=True, help_text="The worst that metrics allow which were not measured."
    )
    dynascore_most = serializers.FloatField(allow_null=True, help_text="The best, likewise.")
    rank = serializers.CharField(
        allow_null=True, help_text="`2=` is shared; `2–4` are those open to a range."
    )
    round1_acc = serializers.FloatField(
        allow_null=True, help_text="The share of right answers, 0-1, on the round's newest set."
    )
    scores = serializers.DictField(
        child=serializers.DictField(child=Measured()), help_text="By set, then by metric; 0-1."
    )
    throughput = serializers.FloatField(allow_null=True, help_text="Examples a second.")
    latency_p95 = serializers.FloatField(
        allow_null=True, help_text="Seconds in which 95 % of single examples were answered."
    )
    memory = serializers.FloatField(allow_null=True, help_text="GiB, at its peak.")
    memory_mean = serializers.FloatField(allow_null=True, help_text="GiB, on average.")
    fairness = serializers.FloatField(
        allow_null=True, help_text="The share of right answers in the worst group, 0-1."
    )
    fairness_gap = serializers.FloatField(
        allow_null=True, help_text="Between the best and the worst group, 0-1."
    )
    fairness_consistency = serializers.FloatField(
        allow_null=True, help_text="The share of answers that stayed the same, 0-1."
    )
    robustness = serializers.FloatField(
        allow_null=True, help_text="The main metric under the worst kind of perturbation, 0-1."
    )
    robustness_drop = serializers.FloatField(
        allow_null=True, help_text="By how much that is less than without it, 0-1."
    )
    robustness_consistency = serializers.FloatField(
        allow_null=True, help_text="The share of answers that stayed the same, 0-1."
    )
    notes = serializers.ListField(child=serializers.CharField())
    error = Failure(allow_null=True, help_text="Only for its owner and the task's owners.")


class ResultsShape(OpenApiSerializerExtension):
    """A schema extension for the keys of further rounds, which no serializer field can declare."""

    target_class = Results

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        """Return the serializer's schema with a pattern for the keys of further rounds."""
        shape = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        shape["patternProperties"] = {r"^round[0-9]+_acc$": {"type": ["number", "null"]}}
        return shape


class Named(Shape):
    """A task by its code and name."""

    code = serializers.CharField()
    name = serializers.CharField()


class BoardJudge(Shape):
    """The language model that judged the answers behind a score."""

    name = serializers.CharField(help_text="As in the task's configuration.")
    model = serializers.CharField(allow_blank=True)
    number = serializers.IntegerField(
        help_text="Its place among the task's judges; 0: there is none of that name yet."
    )
    agreement = AgreementSerializer(help_text="With people. Not calibrated: it counts for nothing.")


class BoardMetric(Shape):
    """A metric, which is a column of the board."""

    name = serializers.CharField()
    version = serializers.IntegerField(
        help_text="Other when an answer may be scored otherwise; of llm_judge the judge's number; "
        "of an own metric (custom:NAME) 0 while none is approved."
    )
    judge = BoardJudge(required=False, help_text="Of llm_judge alone.")
    about = serializers.CharField(
        required=False, allow_blank=True, help_text="Of an own metric: what it measures."
    )
    higher_is_better = serializers.BooleanField(
        required=False, help_text="Left out in snapshots of releases before 0.4."
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
        required=False, help_text="Its round was still judged when it was taken."
    )
    judged = serializers.IntegerField(
        required=False, allow_null=True, help_text="Examples of the round that were judged then."
    )
    to_judge = serializers.IntegerField(
        required=False, allow_null=True, help_text="Of so many that others judge."
    )
    min_examples = serializers.IntegerField(
        required=False, help_text="With fewer examples it is shown and never ranked by; 0: any."
    )
    counts = serializers.BooleanField(required=False, help_text="It has a weight.")
    is_sealed = serializers.BooleanField(
        required=False, help_text="Its scores are rounded, and not all are shown."
    )
    overlap = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="The part of it (0-1) that is in seeds or released rounds; null: not known.",
    )


class BoardRow(Shape):
    """A model's row; percent, GiB and examples a second, as on the page."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    owner = serializers.CharField(
        allow_blank=True, help_text="A pseudonym; empty: hidden, or none."
    )
    team = serializers.CharField(
        allow_blank=True, default="", help_text="For which it was submitted; empty: likewise."
    )
    rank = serializers.CharField(
        allow_blank=True,
        help_text="`2=` is shared; `2–4` are those open to a range; empty: not run.",
    )
    first = serializers.IntegerField(allow_null=True, help_text="The best rank left open.")
    last = serializers.IntegerField(allow_null=True)
    dynascore = BoardScore()
    points = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="What each measured metric adds to the score, of mode anchored; else empty.",
    )
    metrics = serializers.DictField(child=Interval())
    sets = serializers.DictField(child=serializers.DictField(child=Interval()))
    in_the_loop = serializers.ListField(child=serializers.CharField())
    missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="What was not measured. Without a score: what it would need.",
    )


class SeenRow(BoardRow):
    """A row of the current board."""

    is_published = serializers.BooleanField()


class Scale(Shape):
    """The values at which a metric adds nothing and its full weight."""

    low = serializers.FloatField()
    high = serializers.FloatField()


class Anchors(Shape):
    """The scales by metric, taken from a version of the task's reference pool."""

    version = serializers.IntegerField()
    costs = serializers.IntegerField(
        required=False, help_text="How often this site measured speed and memory; 0: as shipped."
    )
    scales = serializers.DictField(child=Scale())


class Kept(Shape):
    """A board as a snapshot stores it, with everything that its scores depend on."""

    task = Named()
    date = serializers.DateField()
    code = serializers.CharField(help_text="The version of the code, with a digest of it.")
    mode = serializers.ChoiceField(["anchored", "robust", "classic"])
    main = serializers.CharField()
    metrics = BoardMetric(many=True)
    weights = Weights()
    rates = serializers.DictField(child=serializers.FloatField(allow_null=True))
    anchors = Anchors(required=False, allow_null=True, help_text="Of mode anchored.")
    budgets = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="By metric of which less is better: of the other modes, what it is taken from.",
    )
    formula = serializers.CharField(
        required=False, allow_blank=True, help_text="How the scores are made, in a sentence."
    )
    pool = serializers.ListField(child=serializers.CharField())
    resamples = serializers.IntegerField()
    runner = serializers.CharField(allow_blank=True)
    sets = BoardSet(many=True)
    notices = serializers.ListField(child=serializers.CharField())
    rows = BoardRow(many=True)


class Seen(Kept):
    """The current board."""

    rows = SeenRow(many=True)


class ComparedModel(Shape):
    """One of two models."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    owner = serializers.CharField(allow_blank=True)
    team = serializers.CharField(allow_blank=True)


class ComparedRow(Shape):
    """A metric of both models on a set; the difference is a − b, in points."""

    set = serializers.CharField()
    version = serializers.IntegerField()
    is_provisional = serializers.BooleanField(
        help_text="The set's round was still judged when it was taken."
    )
    judged = serializers.IntegerField(
        allow_null=True, help_text="Examples of the round that were judged then."
    )
    to_judge = serializers.IntegerField(allow_null=True, help_text="Of so many that others judge.")
    metric = serializers.CharField()
    is_rounded = serializers.BooleanField(help_text=ROUNDING_HELP)
    slice = serializers.CharField(allow_blank=True)
    a = Interval()
    b = Interval()
    difference = Interval()
    p = serializers.FloatField(allow_null=True, help_text="Corrected for all tests; null: no test.")
    p_uncorrected = serializers.FloatField(
        allow_null=True, help_text="Of the test alone, as `method` names it."
    )
    correction = serializers.ChoiceField(
        ["holm", "benjamini-hochberg"],
        allow_blank=True,
        help_text="Of p: Holm's over all rows, Benjamini and Hochberg's over slices.",
    )
    n = serializers.IntegerField(allow_null=True)
    better = serializers.CharField(allow_blank=True, help_text="a, b, untested; empty: not clear")
    method = serializers.CharField(allow_blank=True)


class ComparedExample(Shape):
    """An example on which two models differ."""

    uid = serializers.CharField()
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True))
    a = serializers.CharField(allow_blank=True)
    b = serializers.CharField(allow_blank=True)
    gold = serializers.ListField(
        child=serializers.CharField(),
        help_text="Where one may read what the models got wrong; else empty.",
    )


class ComparedLoop(Shape):
    """A set that people wrote against one of the two models."""

    model = serializers.ChoiceField(["a", "b"])
    set = serializers.CharField()


class Compared(Shape):
    """A comparison of two models."""

    a = ComparedModel()
    b = ComparedModel()
    judge = BoardJudge(allow_null=True, help_text="Of the rows of llm_judge; else null.")
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
        help_text="The round was still judged when its set was taken."
    )
    judged = serializers.IntegerField(
        allow_null=True, help_text="Examples of the round that were judged then."
    )
    to_judge = serializers.IntegerField(allow_null=True, help_text="Of so many that others judge.")
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


class RoundsMatrix(Shape):
    """The results of every model on every round."""

    task = serializers.CharField()
    metric = serializers.CharField()
    is_counting = serializers.BooleanField(help_text="Numbers of people are still being counted.")
    verdict = serializers.CharField()
    rounds = RoundColumn(many=True)
    models = RoundLine(many=True)


class DatedSide(Shape):
    """The share of correct answers, in percent, on the rounds before or after a date."""

    rounds = serializers.ListField(child=serializers.IntegerField())
    n = serializers.IntegerField(help_text="Examples.")
    is_provisional = serializers.BooleanField(
        help_text="One of its sets was taken while its round was judged."
    )
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class DatedDifference(Shape):
    """The difference of the first side and the second, in points, with a 95 % interval."""

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
        allow_null=True, help_text="The mean difference of the other models on the same sets."
    )


class HeldBackModel(Shape):
    """A model's results on held-back rows, and on the published rows of the same rounds."""

    id = serializers.UUIDField()
    model = serializers.CharField()
    released = DatedSide()
    held = DatedSide()
    difference = DatedDifference()


class TrainingDates(Shape):
    """The models' results before and after their training dates, and on held-back rows."""

    task = serializers.CharField()
    metric = serializers.CharField(help_text="Empty: none is a share of right answers.")
    models = DatedModel(many=True)
    held_back = HeldBackModel(many=True)


class PersonLine(Shape):
    """A person of the ranking; rates run from 0 to 1."""

    rank = serializers.CharField()
    name = serializers.CharField(source="standing.pseudonym")
    is_mine = serializers.BooleanField()
    rate = serializers.FloatField(source="standing.rate")
    low = serializers.FloatField(source="standing.low")
    high = serializers.FloatField(source="standing.high")
    fooled = serializers.IntegerField(source="standing.fooled")
    tries = serializers.IntegerField(
        source="standing.tries", help_text="Everything submitted, also what was withdrawn."
    )


class TeamWeek(Shape):
    """The number of passages with an example confirmed since Monday, and the team's weekly goal."""

    passages = serializers.IntegerField()
    goal = serializers.IntegerField()


class People(Shape):
    """The ranking of the people who chose to appear in it; only they can see it."""

    in_ranking = serializers.BooleanField()
    team = TeamWeek(allow_null=True)
    places = PersonLine(many=True)
