"""The simulated people: what they write and how they read. They know neither model nor round.

Skill and care are drawn from one distribution. A few are careless, and three collude: a writer who
submits wrong labels and ends each text with a sign, and two judges who vote as the sign says.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from dynabench.operations.demo.texts import IDEAS, LABELS, PLAIN, Idea, write_idea
from validation.consensus.consensus import Vote

IDEAS_PER_ROUND = 30
"""How many ideas a writer has in a round, drawn again for each."""
COLLUSION_SIGNS = dict(zip(LABELS, (" !", " ..", " ;"), strict=True))
FLAG, UNCLEAR = Vote(verdict="flagged"), Vote(verdict="cannot_tell")


@dataclass(frozen=True)
class Text:
    """A simulated text, with the label that a careful reader gives it.

    label: empty if it says nothing. hard: how likely an average reader misreads it (0-1).
    """

    words: str
    label: str  # what it says; empty: nothing
    way: str = PLAIN
    hard: float = 0.0


@dataclass
class Writer:
    """A simulated writer, who remembers within a round which ideas fooled its model.

    skill, care: 0-1.
    """

    name: str
    skill: float
    care: float
    pace: float
    chance: Random
    colludes: bool = False
    ideas: Sequence[Idea] = ()
    worked: Counter[Idea] = field(default_factory=Counter)

    def begin_round(self) -> None:
        """Draw new ideas and forget which ideas worked."""
        plain = [idea for idea in IDEAS if idea.way == PLAIN]
        self.ideas = plain + self.chance.sample(IDEAS, IDEAS_PER_ROUND)
        self.worked = Counter()

    def write(self, place: str, prompt: str, goal: str) -> tuple[Text, Idea | None]:
        """Return a text for the goal, as good as the writer can, and its idea.

        The idea is None for a careless text.
        """
        if self.chance.random() > self.care:
            return self._careless(place, prompt), None
        target_label = goal
        if self.colludes:
            target_label = self.chance.choice([label for label in LABELS if label != goal])
        idea = self._idea(target_label)
        words = write_idea(idea, place, self.chance)
        if self.colludes:
            words += COLLUSION_SIGNS[goal]
        return Text(words, idea.label, idea.way, idea.hard), idea

    def learn(self, idea: Idea | None, is_fooled: bool) -> None:
        """Remember whether an idea fooled the model."""
        if not idea:
            return
        if is_fooled:
            self.worked[idea] += 3
        else:
            self.worked[idea] -= 1

    def _idea(self, label: str) -> Idea:
        """Return an idea for the label. Skilled writers prefer what worked and are seldom plain."""
        fitting_ideas = [idea for idea in self.ideas if idea.label == label]
        clever_ideas = [idea for idea in fitting_ideas if idea.way != PLAIN]
        if not clever_ideas or self.chance.random() > self.skill:
            return self.chance.choice(fitting_ideas)
        weights = [max(0.2, 1 + self.worked[idea]) for idea in clever_ideas]
        return self.chance.choices(clever_ideas, weights)[0]

    def _careless(self, place: str, prompt: str) -> Text:
        """Return a text with a random label, or hardly a sentence."""
        if self.chance.random() < 0.3:
            return Text(f"{place} {self.chance.randint(100, 999)} ok ok {prompt.lower()}", "")
        idea = self.chance.choice(self.ideas)
        return Text(write_idea(idea, place, self.chance), idea.label, idea.way, idea.hard)


@dataclass
class Judge:
    """A simulated judge. skill, care: 0-1."""

    name: str
    skill: float
    care: float
    chance: Random
    colludes: bool = False

    def vote(self, text: Text) -> Vote:
        """Return a vote for a label, or FLAG or UNCLEAR."""
        signed = [label for label, sign in COLLUSION_SIGNS.items() if text.words.endswith(sign)]
        if self.colludes and signed:
            return Vote(label=signed[0])
        if self.chance.random() > self.care:
            return Vote(label=self.chance.choice(LABELS))
        if not text.label:
            if self.chance.random() < 0.8:
                return FLAG
            return UNCLEAR
        if self.chance.random() < 2 * text.hard * (1 - self.skill):
            other_labels = [label for label in LABELS if label != text.label]
            if self.chance.random() < 0.2:
                return UNCLEAR
            return Vote(label=self.chance.choice(other_labels))
        return Vote(label=text.label)


def draw_people(seed: int, writers: int, judges: int) -> tuple[list[Writer], list[Judge]]:
    """Return simulated writers and judges that depend only on the seed.

    Of 12 writers two are careless and one colludes; of 8 judges one is careless and two collude.
    Smaller numbers keep these proportions, rounded down.
    """

    def drawn(role: str, number: int) -> tuple[str, float, float, Random]:
        name = f"sim-{role}-{number + 1:02}"
        chance = Random(f"{seed} {name}")
        return name, chance.betavariate(4, 3), 0.9 + 0.1 * chance.random(), chance

    authors = []
    for number in range(writers):
        name, skill, care, chance = drawn("writer", number)
        authors.append(Writer(name, skill, care, chance.gammavariate(3, 1 / 3), chance))
    readers = [Judge(*drawn("judge", number)) for number in range(judges)]
    for writer in authors[: writers // 6]:
        writer.care *= 0.5
    for judge in readers[: judges // 8]:
        judge.care *= 0.5
    for writer in authors[writers - writers // 12 :]:
        writer.colludes = True
    for judge in readers[judges - judges // 4 :]:
        judge.colludes = True
    return authors, readers
