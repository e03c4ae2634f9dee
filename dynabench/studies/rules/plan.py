"""The plan of a study in YAML: arms, outcomes, hypotheses, exclusions and size. Pure.

A plan is written before the data. `read_plan` reports all problems with their lines.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import sqrt
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dynabench.campaigns.rules.questionnaire import read_questionnaire
from dynabench.studies.rules.setup import (
    MAX_CODE_CHARS,
    ArmModel,
    Setup,
    build_arm_code,
    build_arm_config,
)
from tasks.config.components import ConfigPart, Name, NonEmptyText, Share, TupleOf
from tasks.config.loading import load_config
from tasks.config.messages import list_problems, sort_problems
from tasks.config.parsing import (
    ConfigError,
    Finding,
    Loc,
    dump_yaml,
    locate_inside,
    read_yaml,
    suggest_nearest,
)

Positive = Annotated[float, Field(gt=0)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=40)]

ALPHA = 0.05
"""The level below which a corrected p counts as a finding."""
MIN_CLUSTERS = 20
"""The fewest people of an arm, and contexts: with fewer, clustered intervals are too short."""


MAX_EFFECT = 2
"""The largest effect of a plan, in standard deviations."""


class MeasureKind(NamedTuple):
    """What a measure's values are. is_per_person: one value per person, else one per example."""

    scale: Literal["share", "time", "number"]
    is_per_person: bool


MEASURES = {
    "fooled": MeasureKind("share", False),
    "caught": MeasureKind("share", False),
    "valid": MeasureKind("share", False),
    "correct": MeasureKind("share", False),
    "seconds": MeasureKind("time", False),
    "novelty": MeasureKind("number", False),
    "agreement": MeasureKind("number", False),
    "examples": MeasureKind("number", True),
    "coverage": MeasureKind("number", True),
    "harm": MeasureKind("number", True),
    "answer": MeasureKind("number", True),
}
"""The outcomes that a plan can name."""
UNPLANNED_MEASURES = {
    "cost": "the cost of a catch is one number of the arm; the report has it under costs",
}
"""Why a plan can't name an outcome, although somebody may look for it."""


class Arm(ConfigPart):
    """One condition of a study. People are drawn into arms at random."""

    name: Name
    differs: NonEmptyText
    """What people in this arm meet, in a sentence."""
    ratio: Annotated[int, Field(ge=1, le=10)] = 1
    """The arm's part of the people, compared with the other arms."""
    campaign: Slug | None = None
    """The campaign that recruits the arm's people. A study on a site needs one for each arm."""
    model: ArmModel | None = None
    """With `setup`: the model that people in this arm work with; null: none."""
    instructions: str = ""
    """With `setup`: what people in this arm read, instead of the task's instructions."""


def build_config_of_arm(setup: Setup, arm: Arm) -> str:
    """Return the configuration of the task that the site makes for an arm, in YAML."""
    return build_arm_config(
        setup.task, has_model=arm.model is not None, instructions=arm.instructions
    )


class Assumption(ConfigPart):
    """What the plan assumes of an outcome, for the simulation.

    same_person, same_context: the share of the variance that a person's values have in common, and
    the values on one context (intraclass correlations).
    """

    mean: float
    """The mean without an effect. Of a time: the median, in seconds."""
    sd: Positive = 1.0
    """The standard deviation. Of a time: of its natural logarithm. Shares have none."""
    same_person: Share = 0.1
    same_context: Share = 0.05


class Outcome(ConfigPart):
    """Something that the study measures, with what the plan assumes of it."""

    name: Name
    measure: str
    """One of MEASURES."""
    question: Name | None = None
    """Of the measure `answer`: the question of the questionnaire."""
    minus: Name | None = None
    """Of the measure `answer`: an earlier question, whose answer is subtracted."""
    assume: Assumption

    @property
    def kind(self) -> MeasureKind:
        """Return what the outcome's values are."""
        return MEASURES[self.measure]

    @property
    def deviation(self) -> float:
        """Return the standard deviation in which effects are stated; of a time, its logarithm's."""
        if self.kind.scale == "share":
            return sqrt(self.assume.mean * (1 - self.assume.mean))
        return self.assume.sd


class Hypothesis(ConfigPart):
    """A planned comparison of two arms by one outcome, and the direction that is expected."""

    arm: Name
    compared_with: Name
    outcome: Name
    expected: Literal["higher", "lower"]

    @property
    def sign(self) -> int:
        """Return 1 if higher values are expected in the arm, else -1."""
        return 1 if self.expected == "higher" else -1


class Exclusion(ConfigPart):
    """A rule by which people are left out of the analysis: a limit of one of their means."""

    measure: Literal["seconds", "examples", "valid"]
    below: Positive
    """People whose mean is lower are left out."""
    expected_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The share of people that the simulation leaves out."""


class Size(ConfigPart):
    """The size of a study, and the effect that it should find.

    contexts: how many different texts or cases there are.
    """

    people: Annotated[int, Field(ge=2, le=20_000)]
    each: Annotated[int, Field(ge=1, le=200)]
    """Examples per person. In a study within people: per person and arm."""
    contexts: Annotated[int, Field(ge=MIN_CLUSTERS, le=20_000)]
    effect: Annotated[float, Field(gt=0, le=MAX_EFFECT)]
    """The smallest effect of interest, in standard deviations of each outcome."""
    power: Share
    """The share of planned effects of this size that the study should find."""


class StudyPlan(ConfigPart):
    """The plan of a study: what is compared, by what, and with how many people."""

    version: Literal[1]
    study: Slug
    title: NonEmptyText
    question: NonEmptyText
    arms: Annotated[TupleOf[Arm], Field(min_length=2, max_length=12)]
    design: Literal["between", "within"]
    """Between: each person is in one arm. Within: each person is in all, in random order."""
    blocks: TupleOf[Literal["skill", "context"]] = ()
    """What is compared like with like between people: one level of skill, one context."""
    outcomes: Annotated[TupleOf[Outcome], Field(min_length=1, max_length=12)]
    hypotheses: Annotated[TupleOf[Hypothesis], Field(min_length=1, max_length=40)]
    exclude: TupleOf[Exclusion] = ()
    size: Size
    setup: Setup | None = None
    """The tasks and campaigns that the site makes of the plan."""

    @property
    def ratios(self) -> dict[str, int]:
        """Return how often a full urn holds each arm, by name."""
        return {arm.name: arm.ratio for arm in self.arms}

    def get_outcome(self, name: str) -> Outcome:
        """Return the outcome of this name."""
        return next(outcome for outcome in self.outcomes if outcome.name == name)

    @property
    def arm_names(self) -> list[str]:
        """Return the names of the arms, in the order of the plan."""
        return [arm.name for arm in self.arms]

    def find_arm_indices(self, hypothesis: Hypothesis) -> tuple[int, int]:
        """Return the indices of the arm and of the arm that it is compared with."""
        names = self.arm_names
        return names.index(hypothesis.arm), names.index(hypothesis.compared_with)

    def compute_unit_difference(self, hypothesis: Hypothesis) -> float:
        """Return the difference that an effect of 1 makes in a comparison, in the outcome's unit.

        Usually one standard deviation. It is more if the plan expects steps from arm to arm.
        """
        shifts = compute_shifts(self.hypotheses, hypothesis.outcome)
        steps = shifts[hypothesis.arm] - shifts[hypothesis.compared_with]
        return steps * self.get_outcome(hypothesis.outcome).deviation


def compute_shifts(hypotheses: Sequence[Hypothesis], outcome: str) -> dict[str, int]:
    """Return by how many effects each arm's mean is expected to be shifted, for one outcome.

    Each comparison of two arms is one step. Arms that no comparison names are not shifted.
    """
    shifts: dict[str, int] = {}
    for hypothesis in hypotheses:
        if hypothesis.outcome != outcome:
            continue
        if hypothesis.arm in shifts:
            # The other arm follows from this one, unless it is known, too.
            shifts.setdefault(hypothesis.compared_with, shifts[hypothesis.arm] - hypothesis.sign)
        else:
            start = shifts.setdefault(hypothesis.compared_with, 0)
            shifts[hypothesis.arm] = start + hypothesis.sign
    return shifts


_plan: TypeAdapter[StudyPlan] = TypeAdapter(StudyPlan)


def read_plan(text: str) -> StudyPlan:
    """Parse a plan in YAML. Raises ConfigError with all problems and their lines."""
    document = read_yaml(text)
    try:
        plan = _plan.validate_json(json.dumps(document.data))
    except ValidationError as error:
        raise ConfigError(list_problems(error, document, _plan.json_schema())) from None
    # Only of a plan with the right keys, since these checks compare its parts.
    findings = list(_find_problems(plan))
    if findings:
        raise ConfigError(sort_problems(map(document.build_problem, findings)))
    return plan


def compute_plan_hash(text: str) -> str:
    """Return the SHA-256 of a plan's text, in UTF-8 with the line ends of Unix, as hexadecimal."""
    # The same plan, saved by an editor of Windows, is the same plan.
    return sha256("\n".join(text.splitlines()).encode()).hexdigest()


def _find_problems(plan: StudyPlan) -> Iterator[Finding]:
    """Yield the problems of a plan that its schema cannot express."""
    yield from _find_repeated_names("arms", plan.arm_names)
    yield from _find_repeated_names("outcomes", [outcome.name for outcome in plan.outcomes])
    for index in range(len(plan.outcomes)):
        yield from _find_outcome_problems(index, plan)
    yield from _find_hypothesis_problems(plan)
    yield from _find_design_problems(plan)
    yield from _find_setup_problems(plan)


def _find_repeated_names(key: str, names: list[str]) -> Iterator[Finding]:
    """Yield a problem for each name that an earlier entry of the list has."""
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Finding((key, index, "name"), f'"{name}" is there already', "use another name")


def _find_outcome_problems(index: int, plan: StudyPlan) -> Iterator[Finding]:
    """Yield the problems of one outcome: its measure, its questions, and its assumed values."""
    outcome, loc = plan.outcomes[index], ("outcomes", index)
    if reason := UNPLANNED_MEASURES.get(outcome.measure):
        yield Finding(locate_inside(loc, "measure"), reason, f"use one of: {', '.join(MEASURES)}")
        return
    if outcome.measure not in MEASURES:
        message = f'there is no measure "{outcome.measure}"'
        yield Finding(
            locate_inside(loc, "measure"), message, suggest_nearest(outcome.measure, MEASURES)
        )
        return  # what follows asks for the kind of the measure
    # Only questionnaires have questions, and they have nothing else.
    if (outcome.measure == "answer") != (outcome.question is not None):
        message = "the measure answer needs a question, and only that"
        yield Finding(
            locate_inside(loc, "question"), message, "name the question, or use another measure"
        )
    if outcome.minus is not None and outcome.question is None:
        yield Finding(
            locate_inside(loc, "minus"), "there is no question to subtract from", "remove minus"
        )
    assumption = outcome.assume
    # The rest of the variance is chance, without which nothing could be estimated.
    if assumption.same_person + assumption.same_context >= 1:
        message = "people and contexts explain all of the variance"
        fix = "use shares of same_person and same_context that sum to less than 1"
        yield Finding(locate_inside(loc, "assume"), message, fix)
    if outcome.kind.scale == "share":
        yield from _find_share_problems(locate_inside(loc, "assume", "mean"), outcome, plan)
    elif outcome.kind.scale == "time" and assumption.mean <= 0:
        yield Finding(
            locate_inside(loc, "assume", "mean"), "a time is above 0", "use seconds, such as 90"
        )


def _find_share_problems(loc: Loc, outcome: Outcome, plan: StudyPlan) -> Iterator[Finding]:
    """Yield a problem if a share, or what the expected effects make of it, is not in 0 to 1."""
    if not 0 < outcome.assume.mean < 1:
        yield Finding(loc, "a share is between 0 and 1", "use a number such as 0.3")
    elif _leaves_range(plan, outcome, plan.size.effect):
        message = "the effect would carry this share below 0 or above 1"
        yield Finding(loc, message, "use another mean, or a smaller effect")


def _leaves_range(plan: StudyPlan, outcome: Outcome, effect: float) -> bool:
    """Return whether an effect of this size makes a share of an arm less than 0 or more than 1."""
    for steps in compute_shifts(plan.hypotheses, outcome.name).values():
        if not 0 < outcome.assume.mean + steps * effect * outcome.deviation < 1:
            return True
    return False


def find_effect_problem(plan: StudyPlan, effect: float) -> str:
    """Return why studies of the plan can't have this effect; empty if they can."""
    if not 0 <= effect <= MAX_EFFECT:
        return f"enter a number from 0 to {MAX_EFFECT}."
    for outcome in plan.outcomes:
        if outcome.kind.scale == "share" and _leaves_range(plan, outcome, effect):
            return f'it would carry the share "{outcome.name}" below 0 or above 1.'
    return ""


def _find_hypothesis_problems(plan: StudyPlan) -> Iterator[Finding]:
    """Yield the names in hypotheses that the plan lacks, and comparisons that are there twice."""
    outcome_names = [outcome.name for outcome in plan.outcomes]
    seen: set[tuple[frozenset[str], str]] = set()
    for index, hypothesis in enumerate(plan.hypotheses):
        loc = ("hypotheses", index)
        for key in ("arm", "compared_with"):
            name = getattr(hypothesis, key)
            if name not in plan.arm_names:
                fix = suggest_nearest(name, plan.arm_names)
                yield Finding(locate_inside(loc, key), f'there is no arm "{name}"', fix)
        if hypothesis.outcome not in outcome_names:
            message = f'there is no outcome "{hypothesis.outcome}"'
            fix = suggest_nearest(hypothesis.outcome, outcome_names)
            yield Finding(locate_inside(loc, "outcome"), message, fix)
        if hypothesis.arm == hypothesis.compared_with:
            message = "an arm is compared with itself"
            yield Finding(locate_inside(loc, "compared_with"), message, "name another arm")
        # In either direction: the difference of two arms is one number.
        comparison = (frozenset((hypothesis.arm, hypothesis.compared_with)), hypothesis.outcome)
        if comparison in seen:
            yield Finding(loc, "this comparison is there already", "remove one of the two")
        seen.add(comparison)
        shifts = compute_shifts(plan.hypotheses, hypothesis.outcome)
        steps = shifts[hypothesis.arm] - shifts[hypothesis.compared_with]
        if hypothesis.arm != hypothesis.compared_with and steps * hypothesis.sign <= 0:
            message = "this direction contradicts the other comparisons of this outcome"
            yield Finding(
                locate_inside(loc, "expected"), message, "change the direction here or there"
            )


def _find_design_problems(plan: StudyPlan) -> Iterator[Finding]:
    """Yield what the size and the blocks leave impossible in the plan's design."""
    if plan.design == "within":
        for index, arm in enumerate(plan.arms):
            if arm.ratio != 1:
                message = "within people, everybody is in each arm once"
                yield Finding(("arms", index, "ratio"), message, "remove ratio")
        if plan.blocks:
            message = "within people, everybody is compared with themselves"
            yield Finding(("blocks",), message, "remove blocks")
        fewest_people = plan.size.people
    else:
        # The arm with the smallest ratio has the fewest people.
        ratios = [arm.ratio for arm in plan.arms]
        fewest_people = plan.size.people * min(ratios) // sum(ratios)
    if fewest_people < MIN_CLUSTERS:
        message = f"an arm has {fewest_people} people, too few for an interval"
        fix = f"plan for {MIN_CLUSTERS} people or more in each arm"
        yield Finding(("size", "people"), message, fix)


def _find_setup_problems(plan: StudyPlan) -> Iterator[Finding]:
    """Yield what keeps the site from making the tasks and campaigns of the arms."""
    if plan.setup and plan.setup.campaign.questions:
        try:
            read_questionnaire(dump_yaml(plan.setup.campaign.questions))
        except ConfigError as error:
            message = f"the questions can't be asked: {error.problems[0].message}"
            fix = error.problems[0].fix or "correct the questions"
            yield Finding(("setup", "campaign", "questions"), message, fix)
    for index, arm in enumerate(plan.arms):
        if arm.model is not None and plan.setup is None:
            message, fix = "there is no task for this model", "add setup, or remove model"
            yield Finding(("arms", index, "model"), message, fix)
        if arm.instructions and plan.setup is None:
            message, fix = "there is no task for these", "add setup, or remove instructions"
            yield Finding(("arms", index, "instructions"), message, fix)
        if plan.setup is None:
            continue
        code = build_arm_code(plan.study, arm.name, "")
        if len(code) > MAX_CODE_CHARS:
            message = f"{code} is too long for the URL of a task and a campaign"
            yield Finding(("arms", index, "name"), message, "use shorter names")
        if arm.campaign is not None:
            message = "setup makes a campaign for each arm"
            yield Finding(("arms", index, "campaign"), message, "remove campaign")
        try:
            load_config(build_config_of_arm(plan.setup, arm))
        except ConfigError as error:
            # Each problem once, although several arms have it.
            message = f"the task of {arm.name} can't be made: {error.problems[0].message}"
            fix = error.problems[0].fix or "correct the configuration"
            yield Finding(("setup", "task"), message, fix)
            return
