"""A campaign played in memory by simulated people, under the rules of a real one.

Items are handed out, closed and decided as in the judge queue, by the task's policy. Honest people
are right with a Beta distribution of mean 0.85. Of the careless, a quarter each answers at random,
always the same, at random in 70 % of cases, and as somebody beside them. A ring answers alike:
whoever sees an item first answers at random, the others repeat it. `rules.evidence` sees votes,
times, gold and labels of authors, and nothing of who is who.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

from dynabench.campaigns.rules.evidence import Cast, proposals
from validation.rules.consensus import (
    Policy,
    Verdict,
    Vote,
    decide,
    validated_error,
    votes_still_needed,
)

EACH = 60
"""Judgements of a person at most."""
GOLD_EACH = 12
"""One judgement of so many is a gold item, as in the judge queue."""
GOLD_ITEMS = EACH  # so that nobody has seen all of them
ACCURACY = (25.5, 4.5)
"""Of honest people: the parameters of a Beta distribution with mean 0.85."""
WRITERS_RIGHT = 0.93
MODEL_WRONG = 0.45
BEYOND = 1.4
"""Votes that an item needs, as a multiple of those that could decide it at once."""
AT_ONCE = 12
"""People at work at a time."""
SECONDS = 30.0
KINDS = ("random", "constant", "mostly random", "copying")
VERDICTS: tuple[Verdict, Verdict] = ("correct", "incorrect")


@dataclass(frozen=True)
class Plan:
    """What is simulated. labels: of the task; empty where people judge by verdict. Pay in cents."""

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
        """How many answers an item may have."""
        return len(self.labels) or len(VERDICTS)

    def vote(self, answer: int) -> Vote:
        """An answer as the rules of consensus know it."""
        if self.labels:
            return Vote(label=self.labels[answer])
        return Vote(verdict=VERDICTS[answer])


@dataclass
class Item:
    """An example: its right answer, its author's and the model's; and the votes on it."""

    truth: int
    author: int
    model: int
    votes: Counter[Vote] = field(default_factory=Counter)
    leased: int = 0
    needed: int = 0


@dataclass
class Person:
    """Somebody who judges; `kind` is what the rules never see."""

    kind: str
    starts_at: float
    answer: Callable[[int, int], int]
    most: int
    done: set[int] = field(default_factory=set)
    said: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Played:
    """What came out. Shares are 0 to 1; cost in the smallest unit of a currency."""

    careless: int
    careless_found: int
    honest: int
    honest_proposed: int
    ring: int
    ring_found: int
    vmer_true: float
    vmer: float
    cost: int


def play(plan: Plan, seed: int) -> Played:
    """Play the campaign; the same seed plays the same one."""
    game = _Game(plan, Random(seed))
    game.run()
    gold = {-1 - place: truth for place, truth in enumerate(game.gold)}
    voted = {vote.item for vote in game.cast if vote.item >= 0} if plan.labels else ()
    authors = {item: game.items[item].author for item in voted}
    proposed = {one.judge for one in proposals(game.cast, gold, plan.answers, authors)}
    kinds = [person.kind for person in game.people]
    found = Counter(kinds[judge] for judge in proposed)
    careless = [kind for kind in kinds if kind in KINDS]
    errors = sum(map(game.is_error, game.items))
    real = sum(one.author == one.truth != one.model for one in game.items)
    return Played(
        careless=len(careless),
        careless_found=sum(found[kind] for kind in KINDS),
        honest=kinds.count("honest"),
        honest_proposed=found["honest"],
        ring=kinds.count("ring"),
        ring_found=found["ring"],
        vmer_true=real / len(game.items),
        vmer=errors / len(game.items),
        cost=len(game.items) * plan.pay_example
        + len(game.cast) * plan.pay_validation
        + errors * plan.pay_bonus,
    )


class _Game:
    def __init__(self, plan: Plan, random: Random) -> None:
        self.plan, self.random = plan, random
        self.cast: list[Cast] = []
        needed = BEYOND * votes_still_needed({}, plan.policy)
        count = max(1, int(plan.people * EACH / needed / MODEL_WRONG))
        self.items = [self._item() for _ in range(count)]
        self.gold = [random.randrange(plan.answers) for _ in range(GOLD_ITEMS)]
        self.first = 0  # items before it are closed
        self.people = list(self._people())

    def _item(self) -> Item:
        """An example that the model seems to get wrong: others are not judged."""
        truth = self.random.randrange(self.plan.answers)
        author = truth if self.random.random() < WRITERS_RIGHT else self._other(truth)
        wrong = self.random.random() < MODEL_WRONG
        model = self._other(author) if wrong else author
        needed = votes_still_needed({}, self.plan.policy) if wrong else 0
        return Item(truth, author, model, needed=needed)

    def _other(self, answer: int) -> int:
        """Another answer, by chance."""
        return (answer + self.random.randrange(1, self.plan.answers)) % self.plan.answers

    def _any(self) -> int:
        return self.random.randrange(self.plan.answers)

    def _people(self) -> Iterator[Person]:
        plan, random = self.plan, self.random
        lasts = plan.people * EACH * SECONDS / AT_ONCE
        sources = []
        for _ in range(plan.people - plan.careless - plan.ring):
            right = random.betavariate(*ACCURACY)
            most = EACH if random.random() < 0.85 else random.randrange(1, EACH)
            sources.append(Person("honest", random.uniform(0, lasts), self._honest(right), most))
        yield from sources
        for kind in [kind for kind, _ in zip(cycle(KINDS), range(plan.careless), strict=False)]:
            beside = random.choice(sources)
            copies = kind == "copying"
            starts_at = beside.starts_at + 5 if copies else random.uniform(0, lasts)
            answer = self._repeats(beside.said) if copies else self._careless(kind)
            yield Person(kind, starts_at, answer, EACH)
        shared: dict[int, int] = {}
        starts_at = random.uniform(0, lasts)
        for place in range(plan.ring):
            yield Person("ring", starts_at + place, self._together(shared), EACH)

    def _honest(self, right: float) -> Callable[[int, int], int]:
        return lambda _, truth: truth if self.random.random() < right else self._other(truth)

    def _careless(self, kind: str) -> Callable[[int, int], int]:
        if kind == "constant":
            always = self._any()
            return lambda item, truth: always
        share = 0.7 if kind == "mostly random" else 1.0
        honest = self._honest(ACCURACY[0] / sum(ACCURACY))
        return lambda item, truth: (
            self._any() if self.random.random() < share else honest(item, truth)
        )

    def _repeats(self, said: dict[int, int]) -> Callable[[int, int], int]:
        return lambda item, _: said[item] if item in said else self._any()

    def _together(self, shared: dict[int, int]) -> Callable[[int, int], int]:
        return lambda item, _: shared.setdefault(item, self._any())

    def run(self) -> None:
        """Everybody takes an item, answers it after a while, and takes the next."""
        events: list[tuple[float, int, int | None]] = [
            (person.starts_at, judge, None) for judge, person in enumerate(self.people)
        ]
        heapq.heapify(events)
        while events:
            now, judge, held = heapq.heappop(events)
            person = self.people[judge]
            if held is not None:
                self._answer(judge, held, now)
            if len(person.done) < person.most and (item := self._take(person)) is not None:
                person.done.add(item)
                heapq.heappush(events, (now + self._seconds(), judge, item))

    def _seconds(self) -> float:
        return SECONDS * self.random.lognormvariate(-0.125, 0.5)

    def _take(self, person: Person) -> int | None:
        """The first item in the queue with a free place; now and then gold, below zero."""
        if self.random.randrange(GOLD_EACH) == 0:
            gold = range(-GOLD_ITEMS, 0)
            return self.random.choice([item for item in gold if item not in person.done])
        while self.first < len(self.items) and not self.items[self.first].needed:
            self.first += 1
        for place in range(self.first, len(self.items)):
            item = self.items[place]
            if item.needed > item.leased and place not in person.done:
                item.leased += 1
                return place
        return None

    def _answer(self, judge: int, held: int, now: float) -> None:
        person = self.people[judge]
        truth = self.gold[-1 - held] if held < 0 else self.items[held].truth
        answer = person.said[held] = person.answer(held, truth)
        self.cast.append(Cast(held, judge, answer, now))
        if held >= 0:
            item = self.items[held]
            item.votes[self.plan.vote(answer)] += 1
            item.leased -= 1
            item.needed = votes_still_needed(item.votes, self.plan.policy)

    def is_error(self, item: Item) -> bool:
        """Whether people confirm that the model was wrong."""
        if item.model == item.author:
            return False
        decision = decide(item.votes, self.plan.policy)
        if self.plan.labels:
            labels = self.plan.labels
            return validated_error(decision, labels[item.author], labels[item.model])
        return decision.verdict is not None and decision.verdict == VERDICTS[item.author]
