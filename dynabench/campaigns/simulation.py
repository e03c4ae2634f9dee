"""A campaign played in memory by simulated people, under the rules of a real one.

Items are leased, closed and decided as in the judge queue, by the task's policy. `rules.evidence`
sees votes, times, gold and authors' labels, but not which people are careless. The people are:

- Honest people are right with a probability drawn from a Beta distribution of mean 0.85.
- The careless are of four kinds, equally many of each: some answer at random, some always the
  same, some at random in 70 % of cases, and some copy an honest person.
- The members of a ring answer alike: the first who sees an item answers at random, and the others
  repeat that answer.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from dynabench.campaigns.rules.evidence import CastVote, propose_judges
from validation.consensus.consensus import (
    Policy,
    Verdict,
    Vote,
    count_votes_still_needed,
    decide_by_votes,
    is_validated_error,
)

MAX_JUDGEMENTS = 60
"""The maximum number of judgements per person."""
ITEMS_PER_GOLD = 12
"""The mean number of judgements per gold item, as in the judge queue."""
GOLD_ITEMS = MAX_JUDGEMENTS  # as many as one person's judgements, so that nobody runs out of gold
ACCURACY_PARAMETERS = (25.5, 4.5)
"""The parameters of the Beta distribution, with mean 0.85, of an honest person's accuracy."""
STAYING_SHARE = 0.85
"""The share of honest people who judge up to the maximum."""
RIGHT_LABEL_SHARE = 0.93
MODEL_ERROR_RATE = 0.45
RANDOM_SHARE = 0.7
"""The share of random answers by "mostly random" people."""
VOTES_FACTOR = 1.4
"""The votes that an item needs in the end, as a multiple of the smallest number that decides it."""
PEOPLE_AT_ONCE = 12
"""The number of people who work at the same time."""
MEAN_SECONDS = 30.0
"""The mean duration of a judgement."""
COPY_DELAY_SECONDS = 5
"""The seconds between the start of a person and the start of somebody who copies them."""
CARELESS_KINDS = ("random", "constant", "mostly random", "copying")
"""The kinds of careless people, equally many of each."""
VERDICTS: tuple[Verdict, Verdict] = ("correct", "incorrect")

AnswerFunction = Callable[[int, int], int]
"""A function that answers: called with an item's number and its right answer."""


@dataclass(frozen=True)
class Plan:
    """The size and the rules of a simulated campaign.

    people: all judges, including the careless ones and the ring. labels: the task's labels; empty
    if judges give verdicts. Pay is in cents.
    """

    people: int
    careless: int
    ring: int
    labels: Sequence[str]
    policy: Policy
    pay_example: int = 0
    pay_validation: int = 0
    pay_bonus: int = 0

    @property
    def answers(self) -> int:
        """Return the number of possible answers to an item."""
        return len(self.labels) or len(VERDICTS)

    def build_vote(self, answer: int) -> Vote:
        """Convert an answer's index to a vote for the consensus rules."""
        if self.labels:
            return Vote(label=self.labels[answer])
        return Vote(verdict=VERDICTS[answer])


@dataclass
class SimulatedItem:
    """An example: its true label, the author's and the model's labels, and its votes.

    leased: the number of people who are judging it. needed: the number of votes that its
    decision still needs.
    """

    truth: int
    author: int
    model: int
    votes: Counter[Vote] = field(default_factory=Counter)
    leased: int = 0
    needed: int = 0


@dataclass
class Person:
    """A simulated judge. The rules under test never see `kind`.

    starts_at: the time at which they begin, in seconds. max_judgements: how many items they judge
    at most. taken_items: the items that were leased to the judge. answers: the judge's answers by
    item.
    """

    kind: str
    starts_at: float
    answer: AnswerFunction
    max_judgements: int
    taken_items: set[int] = field(default_factory=set)
    answers: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SimulationResult:
    """The result of a simulation. Shares are from 0 to 1; the cost is in cents."""

    careless: int
    careless_found: int
    honest: int
    honest_proposed: int
    ring: int
    ring_found: int
    vmer_true: float
    vmer: float
    cost: int


def simulate(plan: Plan, seed: int) -> SimulationResult:
    """Simulate the campaign and return how well the evidence detects careless judges.

    Deterministic for a given seed.

    1. Let everybody judge.
    2. Count the judges whom the evidence proposes, by their kind.
    3. Compare the error rate that the votes confirm (vMER) with the true one.
    """
    # Only this generator is drawn from, so that the seed decides everything.
    simulation = _Simulation(plan, Random(seed))
    simulation.run()
    kinds = [person.kind for person in simulation.people]
    proposed_kinds = Counter(kinds[judge] for judge in _find_proposed_judges(simulation))
    confirmed_errors = sum(simulation.is_confirmed_error(item) for item in simulation.items)
    true_errors = sum(item.author == item.truth != item.model for item in simulation.items)
    pay_examples = len(simulation.items) * plan.pay_example
    pay_votes = len(simulation.votes) * plan.pay_validation
    pay_bonuses = confirmed_errors * plan.pay_bonus
    return SimulationResult(
        # All kinds but the honest people and the ring.
        careless=sum(kinds.count(kind) for kind in CARELESS_KINDS),
        careless_found=sum(proposed_kinds[kind] for kind in CARELESS_KINDS),
        honest=kinds.count("honest"),
        honest_proposed=proposed_kinds["honest"],
        ring=kinds.count("ring"),
        ring_found=proposed_kinds["ring"],
        vmer_true=true_errors / len(simulation.items),
        vmer=confirmed_errors / len(simulation.items),
        cost=pay_examples + pay_votes + pay_bonuses,
    )


def _find_proposed_judges(simulation: "_Simulation") -> set[int]:
    """Return the indices of the judges whom the evidence proposes after the simulation."""
    gold = {_convert_gold_number(index): truth for index, truth in enumerate(simulation.gold)}
    author_labels: dict[int, int] = {}
    if simulation.plan.labels:
        for build_vote in simulation.votes:
            if build_vote.item >= 0:
                author_labels[build_vote.item] = simulation.items[build_vote.item].author
    proposals = propose_judges(simulation.votes, gold, simulation.plan.answers, author_labels)
    return {proposal.judge for proposal in proposals}


def _convert_gold_number(index: int) -> int:
    """Convert a gold item's index to its item number, which is negative, or back."""
    return -1 - index


class _Simulation:
    """The state of a running simulation.

    Random draws are made in a fixed order: items, gold, then people. Another order would
    change the result of a seed.
    """

    def __init__(self, plan: Plan, random: Random) -> None:
        self.plan, self.random = plan, random
        self.votes: list[CastVote] = []
        # As many items as the people can judge in all, since each is judged until it is decided.
        votes_per_item = VOTES_FACTOR * count_votes_still_needed({}, plan.policy)
        judged_items = plan.people * MAX_JUDGEMENTS / votes_per_item
        item_count = max(1, int(judged_items / MODEL_ERROR_RATE))
        self.items = [self._draw_item() for _ in range(item_count)]
        self.gold = [random.randrange(plan.answers) for _ in range(GOLD_ITEMS)]
        self.first_open_index = 0  # every item before it is closed
        self.people = list(self._draw_people())

    def _draw_item(self) -> SimulatedItem:
        """Draw an example. It needs votes only if the model disagrees with its author."""
        # Most authors give the right label; a wrong one makes an example that fools nobody.
        truth = author = self._draw_answer()
        if self.random.random() >= RIGHT_LABEL_SHARE:
            author = self._draw_other_answer(truth)
        if self.random.random() >= MODEL_ERROR_RATE:
            return SimulatedItem(truth, author, model=author)
        model = self._draw_other_answer(author)
        return SimulatedItem(
            truth, author, model, needed=count_votes_still_needed({}, self.plan.policy)
        )

    def _draw_other_answer(self, answer: int) -> int:
        """Draw an answer other than this one."""
        return (answer + self.random.randrange(1, self.plan.answers)) % self.plan.answers

    def _draw_answer(self) -> int:
        """Draw any of the answers."""
        return self.random.randrange(self.plan.answers)

    def _draw_people(self) -> Iterator[Person]:
        """Yield the honest judges, then the careless ones, then the ring."""
        plan, random = self.plan, self.random
        duration = plan.people * MAX_JUDGEMENTS * MEAN_SECONDS / PEOPLE_AT_ONCE
        honest_people = []
        for _ in range(plan.people - plan.careless - plan.ring):
            # Each person has an accuracy of their own.
            accuracy = random.betavariate(*ACCURACY_PARAMETERS)
            judgement_limit = MAX_JUDGEMENTS
            if random.random() >= STAYING_SHARE:
                judgement_limit = random.randrange(1, MAX_JUDGEMENTS)
            # People come at any time, so that about PEOPLE_AT_ONCE of them are at work together.
            starts_at = random.uniform(0, duration)
            honest_people.append(
                Person("honest", starts_at, self._build_honest_answers(accuracy), judgement_limit)
            )
        yield from honest_people
        for index in range(plan.careless):
            kind = CARELESS_KINDS[index % len(CARELESS_KINDS)]
            # Drawn for every kind, so that a seed plays the same whatever the kinds are.
            copied_person = random.choice(honest_people)
            if kind == "copying":
                starts_at = copied_person.starts_at + COPY_DELAY_SECONDS
                yield Person(
                    kind,
                    starts_at,
                    self._build_copied_answers(copied_person.answers),
                    MAX_JUDGEMENTS,
                )
            else:
                starts_at = random.uniform(0, duration)
                yield Person(kind, starts_at, self._build_careless_answers(kind), MAX_JUDGEMENTS)
        ring_answers: dict[int, int] = {}
        starts_at = random.uniform(0, duration)
        for index in range(plan.ring):
            yield Person(
                "ring", starts_at + index, self._build_ring_answers(ring_answers), MAX_JUDGEMENTS
            )

    def _build_honest_answers(self, accuracy: float) -> AnswerFunction:
        """Return the answering function of a judge with this accuracy."""

        def answer(_item: int, truth: int) -> int:
            if self.random.random() < accuracy:
                return truth
            return self._draw_other_answer(truth)

        return answer

    def _build_careless_answers(self, kind: str) -> AnswerFunction:
        """Return the answering function of a careless kind that does not copy."""
        if kind == "constant":
            # Drawn once: which answer it is differs from person to person.
            constant = self._draw_answer()
            return lambda _item, _truth: constant
        random_share = RANDOM_SHARE if kind == "mostly random" else 1.0
        answer_honestly = self._build_honest_answers(
            ACCURACY_PARAMETERS[0] / sum(ACCURACY_PARAMETERS)
        )

        def answer(item: int, truth: int) -> int:
            if self.random.random() < random_share:
                return self._draw_answer()
            return answer_honestly(item, truth)

        return answer

    def _build_copied_answers(self, answers: dict[int, int]) -> AnswerFunction:
        """Return the answering function of a judge who copies these answers and guesses others."""

        def answer(item: int, _truth: int) -> int:
            if item in answers:
                return answers[item]
            return self._draw_answer()

        return answer

    def _build_ring_answers(self, ring_answers: dict[int, int]) -> AnswerFunction:
        """Return the answering function of a ring, whose judges share one answer per item."""
        return lambda item, _truth: ring_answers.setdefault(item, self._draw_answer())

    def run(self) -> None:
        """Let all judges repeatedly take an item and answer it after a random time.

        Events are (time, judge, item answered at that time), processed in order of time.
        """
        events: list[tuple[float, int, int | None]] = [
            (person.starts_at, judge, None) for judge, person in enumerate(self.people)
        ]
        # By time, so that people who work at the same time compete for items, as they do on the
        # site.
        heapq.heapify(events)
        while events:
            now, judge, answered_item = heapq.heappop(events)
            person = self.people[judge]
            if answered_item is not None:
                self._answer(judge, answered_item, now)
            if len(person.taken_items) >= person.max_judgements:
                continue
            next_item = self._lease_item(person)
            if next_item is not None:
                person.taken_items.add(next_item)
                heapq.heappush(events, (now + self._draw_seconds(), judge, next_item))

    def _draw_seconds(self) -> float:
        """Draw the duration of a judgement: log-normal, with mean MEAN_SECONDS."""
        return MEAN_SECONDS * self.random.lognormvariate(-0.125, 0.5)

    def _lease_item(self, person: Person) -> int | None:
        """Lease the first available item, or occasionally choose a gold item; return its number.

        None if nothing is left for the person. Numbers of gold items are negative.
        """
        if self.random.randrange(ITEMS_PER_GOLD) == 0:
            gold = range(-GOLD_ITEMS, 0)
            return self.random.choice([item for item in gold if item not in person.taken_items])
        # Decided items at the beginning of the queue are not looked at again.
        while (
            self.first_open_index < len(self.items) and not self.items[self.first_open_index].needed
        ):
            self.first_open_index += 1
        for index in range(self.first_open_index, len(self.items)):
            item = self.items[index]
            # As the judge queue: no more people at a time than the item needs votes.
            if item.needed > item.leased and index not in person.taken_items:
                item.leased += 1
                return index
        return None

    def _answer(self, judge: int, number: int, now: float) -> None:
        """Store a judge's answer to an item or gold item, and end the item's lease."""
        person = self.people[judge]
        is_gold = number < 0
        truth = self.gold[_convert_gold_number(number)] if is_gold else self.items[number].truth
        answer = person.answer(number, truth)
        person.answers[number] = answer
        self.votes.append(CastVote(number, judge, answer, now))
        if is_gold:
            return
        item = self.items[number]
        item.votes[self.plan.build_vote(answer)] += 1
        item.leased -= 1
        item.needed = count_votes_still_needed(item.votes, self.plan.policy)

    def is_confirmed_error(self, item: SimulatedItem) -> bool:
        """Return whether the votes confirm that the model was wrong."""
        # Such examples are not judged: the model gave the author's label.
        if item.model == item.author:
            return False
        decision = decide_by_votes(item.votes, self.plan.policy)
        if self.plan.labels:
            labels = self.plan.labels
            return is_validated_error(decision, labels[item.author], labels[item.model])
        return decision.verdict is not None and decision.verdict == VERDICTS[item.author]
