"""What is known of each person of a study, and whom the plan leaves out. Pure."""

from dataclasses import dataclass, field

from dynabench.studies.rules.plan import Exclusion, StudyPlan


@dataclass(frozen=True)
class MeasuredValue:
    """A value of an outcome. context: the digest of what it is about; empty if of the person."""

    outcome: str
    context: str
    value: float


@dataclass(frozen=True)
class PersonRecord:
    """A person of a study: the draw, the values, and the means that rules of exclusion use.

    person: a number of this study only. has_begun: whether they came to the work. means: by the
    measures of exclusion, without those that are unknown.
    """

    person: int
    arm: str
    stratum: str
    probability: float
    has_begun: bool
    has_submitted: bool
    means: dict[str, float] = field(default_factory=dict)
    values: list[MeasuredValue] = field(default_factory=list)


@dataclass(frozen=True)
class AloneRecord:
    """Whether the model of an arm was right about a case without a person.

    context: the digest of the case.
    """

    arm: str
    context: str
    is_right: bool


def find_exclusion(plan: StudyPlan, record: PersonRecord) -> Exclusion | None:
    """Return the plan's first rule that leaves this person out, or None."""
    for exclusion in plan.exclude:
        mean = record.means.get(exclusion.measure)
        if mean is not None and mean < exclusion.below:
            return exclusion
    return None
