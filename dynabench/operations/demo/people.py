"""The simulated people: what they write and how they judge. They know neither model nor round.

Skill and care are drawn from one distribution. A few people are careless, and three collude. One
is a writer who submits wrong labels and ends each text with a sign. The other two are judges, who
vote as the sign says.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from dynabench.operations.demo.texts import IDEAS, LABELS, PLAIN_STYLE, Idea, write_idea
from validation.consensus.consensus import Vote

IDEAS_PER_ROUND = 30
"""The number of clever ideas that a writer has in a round. Each round gets new ones."""
COLLUSION_SIGNS = dict(zip(LABELS, (" !", " ..", " ;"), strict=True))
FLAG, UNCLEAR = Vote(verdict="flagged"), Vote(verdict="cannot_tell")


@dataclass(frozen=True)
class Text:
    """A simulated text, with the label that a careful reader gives it.

    label: empty if the text says nothing. way: the way in which it is written. difficulty: how
    likely an average reader misreads it (0-1).
    """

    words: str
    label: str  # what it says; empty: nothing
    way: str = PLAIN_STYLE
    difficulty: float = 0.0


@dataclass
class Writer:
    """A simulated writer, who remembers within a round which ideas fooled its model.

    skill, care: from 0 to 1. pace: how much the writer writes, relative to others. rng: their
    random generator. idea_scores: how well each idea worked.
    """

    name: str
    skill: float
    care: float
    pace: float
    rng: Random
    colludes: bool = False
    ideas: Sequence[Idea] = ()
    idea_scores: Counter[Idea] = field(default_factory=Counter)

    def begin_round(self) -> None:
        """Draw new ideas and forget which ideas worked."""
        plain_ideas = [idea for idea in IDEAS if idea.way == PLAIN_STYLE]
        self.ideas = plain_ideas + self.rng.sample(IDEAS, IDEAS_PER_ROUND)
        self.idea_scores = Counter()

    def write(self, place_name: str, prompt: str, goal: str) -> tuple[Text, Idea | None]:
        """Return a text for the goal, written as well as the writer can, and its idea.

        The idea is None for a careless text. goal: the label to write for. Colluding writers write
        for another one.
        """
        if self.rng.random() > self.care:
            return self._write_carelessly(place_name, prompt), None
        target_label = goal
        if self.colludes:
            target_label = self.rng.choice([label for label in LABELS if label != goal])
        idea = self._choose_idea(target_label)
        words = write_idea(idea, place_name, self.rng)
        if self.colludes:
            # Colluding judges read the label to vote for from this sign.
            words += COLLUSION_SIGNS[goal]
        return Text(words, idea.label, idea.way, idea.difficulty), idea

    def learn(self, idea: Idea | None, is_fooled: bool) -> None:
        """Remember whether an idea fooled the model."""
        if not idea:
            return
        # An idea keeps its score if one text in four fools the model.
        if is_fooled:
            self.idea_scores[idea] += 3
        else:
            self.idea_scores[idea] -= 1

    def _choose_idea(self, label: str) -> Idea:
        """Return an idea for the label.

        Skilled writers prefer ideas that worked and are seldom plain.
        """
        fitting_ideas = [idea for idea in self.ideas if idea.label == label]
        clever_ideas = [idea for idea in fitting_ideas if idea.way != PLAIN_STYLE]
        if not clever_ideas or self.rng.random() > self.skill:
            return self.rng.choice(fitting_ideas)
        # Every idea keeps a chance, also one that has failed often.
        weights = [max(0.2, 1 + self.idea_scores[idea]) for idea in clever_ideas]
        return self.rng.choices(clever_ideas, weights)[0]

    def _write_carelessly(self, place_name: str, prompt: str) -> Text:
        """Return a text with a random label, or hardly a sentence, with an empty label."""
        if self.rng.random() < 0.3:
            return Text(f"{place_name} {self.rng.randint(100, 999)} ok ok {prompt.lower()}", "")
        idea = self.rng.choice(self.ideas)
        return Text(write_idea(idea, place_name, self.rng), idea.label, idea.way, idea.difficulty)


@dataclass
class Judge:
    """A simulated judge. skill, care: from 0 to 1."""

    name: str
    skill: float
    care: float
    rng: Random
    colludes: bool = False

    def vote(self, text: Text) -> Vote:
        """Return the judge's vote: a label, FLAG or UNCLEAR."""
        signed_labels = [
            label for label, sign in COLLUSION_SIGNS.items() if text.words.endswith(sign)
        ]
        if self.colludes and signed_labels:
            return Vote(label=signed_labels[0])
        if self.rng.random() > self.care:
            return Vote(label=self.rng.choice(LABELS))
        if not text.label:
            if self.rng.random() < 0.8:
                return FLAG
            return UNCLEAR
        # An average reader has a skill of 0.5, and misreads it as often as its difficulty says.
        if self.rng.random() < 2 * text.difficulty * (1 - self.skill):
            other_labels = [label for label in LABELS if label != text.label]
            if self.rng.random() < 0.2:
                return UNCLEAR
            return Vote(label=self.rng.choice(other_labels))
        return Vote(label=text.label)


def draw_people(seed: int, writers: int, judges: int) -> tuple[list[Writer], list[Judge]]:
    """Return simulated writers and judges that depend only on the seed.

    Of 12 writers two are careless and one colludes; of 8 judges one is careless and two collude.
    Smaller numbers keep these proportions, rounded down.
    """

    def draw_traits(role: str, number: int) -> tuple[str, float, float, Random]:
        name = f"sim-{role}-{number + 1:02}"
        rng = Random(f"{seed} {name}")
        return name, rng.betavariate(4, 3), 0.9 + 0.1 * rng.random(), rng

    authors = []
    for number in range(writers):
        name, skill, care, rng = draw_traits("writer", number)
        authors.append(Writer(name, skill, care, rng.gammavariate(3, 1 / 3), rng))
    readers = [Judge(*draw_traits("judge", number)) for number in range(judges)]
    for writer in authors[: writers // 6]:
        writer.care *= 0.5
    for judge in readers[: judges // 8]:
        judge.care *= 0.5
    for writer in authors[writers - writers // 12 :]:
        writer.colludes = True
    for judge in readers[judges - judges // 4 :]:
        judge.colludes = True
    return authors, readers
