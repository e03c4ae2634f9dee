"""Search: change words of given sentences until the models give another answer."""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import (
    AdversaryKind,
    Attack,
    Blank,
    Probe,
    ProbeAnswer,
    Search,
    Setting,
    SettingError,
    Step,
    read_labelled_line,
    split_lines,
)
from dynabench.adversaries.kinds.edits import (
    KEPT_WORDS,
    Word,
    edit_letters,
    find_similar_words,
    remove_word,
    replace_word,
    split_text,
)

GROUP_MESSAGE = gettext_noop("Line %(number)d: separate at least two words with commas.")
NO_CHANGE_MESSAGE = gettext_noop("Choose at least one kind of change.")


class SearchLimits(NamedTuple):
    """The limits of the search for one sentence.

    word_share: the greatest share of its words that may change (0-1). edits: the number of
    mistyped forms tried for each word; 0 for none. beam: how many texts are carried on.
    own_groups, has_similar_words: see `find_similar_words`. masked_words: how many words of the
    site's masked language model are tried for each word; 0 for none.
    """

    word_share: float
    edits: int
    beam: int
    has_similar_words: bool
    own_groups: Sequence[Sequence[str]] = ()
    masked_words: int = 0

    def count_changes(self, word_count: int) -> int:
        """Return how many words of a sentence may change: at least one."""
        return max(1, int(word_count * self.word_share))


class Draft(NamedTuple):
    """A changed sentence. chance: what the models give the right label. steps: the changes made."""

    chance: float
    text: str
    steps: tuple[str, ...]


class WordSearch(AdversaryKind, name="search"):
    """Changes the words that matter most, as long as the text stays readable.

    It asks about the sentence without each word, which shows how much the word matters. Then it
    changes the words in this order, and keeps the changes after which the models are least sure of
    the right label.
    """

    title = gettext_noop("Word search")
    summary = gettext_noop(
        "Changes letters and words of your sentences until the models give another label."
    )
    place = 2
    no_talk_reason = gettext_noop(
        "Word search changes a sentence with a known label, and a conversation has none."
    )
    reads_context = False
    settings = (
        Setting(
            "sentences",
            gettext_noop("Sentences with their labels"),
            "lines",
            "",
            gettext_noop("One per line, such as: positive | We loved the small room."),
        ),
        Setting("letters", gettext_noop("Change letters"), "flag", True),
        Setting("words", gettext_noop("Replace words with similar ones"), "flag", True),
        Setting(
            "masked",
            gettext_noop("Replace words with suggestions of a masked language model"),
            "flag",
            False,
            gettext_noop("Only words that are likely there and keep the meaning are tried."),
            needs_masked_model=True,
        ),
        Setting(
            "own_words",
            gettext_noop("Your own similar words"),
            "lines",
            "",
            gettext_noop("One group per line, such as: waiter, server, attendant"),
        ),
        Setting(
            "share",
            gettext_noop("Maximum share of changed words, in percent"),
            "number",
            25,
            low=1,
            high=60,
        ),
        Setting(
            "beam",
            # Translators: a number of texts: a search carries the best ones on at each step
            gettext_noop("Texts kept at each step"),
            "number",
            1,
            gettext_noop(
                "Enter 1 for the fastest search. A higher number finds more, but needs more calls."
            ),
            low=1,
            high=8,
        ),
    )

    def plan_attacks(
        self, settings: Mapping[str, Any], labels: Sequence[str], rng: Random
    ) -> list[Attack]:
        """Return an attack for each sentence, in random order. Raises SettingError."""
        # Adversaries that were created before have no such setting.
        has_masked_words = settings.get("masked", False)
        if not (settings["letters"] or settings["words"] or has_masked_words):
            raise SettingError("letters", NO_CHANGE_MESSAGE)
        own_groups = _read_groups(settings["own_words"])
        limits = SearchLimits(
            word_share=settings["share"] / 100,
            edits=LETTER_EDITS if settings["letters"] else 0,
            beam=settings["beam"],
            has_similar_words=settings["words"],
            own_groups=own_groups,
            masked_words=MASKED_WORDS if has_masked_words else 0,
        )
        attacks = []
        for number, line in split_lines("sentences", settings["sentences"]):
            label, text = read_labelled_line("sentences", number, line, labels)
            seed = f"{rng.getrandbits(64)}"
            attacks.append(Attack(label, partial(_begin_search, text, limits, seed)))
        if not attacks:
            raise SettingError("sentences", NO_SENTENCE_MESSAGE)
        rng.shuffle(attacks)
        return attacks


LETTER_EDITS = 8
"""How many mistyped forms of a word are tried."""
MASKED_WORDS = 10
"""How many words of the masked language model are tried in place of a word."""
NO_SENTENCE_MESSAGE = gettext_noop("Enter at least one sentence.")


def _read_groups(text: str) -> list[list[str]]:
    """Return the owner's groups of similar words, in lower case. Raises SettingError."""
    groups = []
    for number, line in split_lines("own_words", text):
        words = [word.strip().lower() for word in line.split(",") if word.strip()]
        if len(words) < 2:
            raise SettingError("own_words", GROUP_MESSAGE, number=number)
        groups.append(words)
    return groups


def _begin_search(
    text: str, limits: SearchLimits, seed: str, _context: Mapping[str, Any]
) -> Search:
    return search_sentence(text, limits, Random(seed))


def search_sentence(text: str, limits: SearchLimits, rng: Random) -> Search:
    """Search for a change of a sentence that fools the models; end at the first one.

    A sentence that the models get wrong as it is stays as it is: its author wrote it, so it is no
    find of the search.
    """
    answer = yield Probe(text, "original", is_offered=False)
    words = split_text(text)
    if answer.is_fooled or not words:
        return
    ranked_words = yield from _rank_words(text, words, answer.chance)
    drafts = [Draft(answer.chance, text, ())]
    for word in ranked_words[: limits.count_changes(len(words))]:
        found_drafts, is_fooled = yield from _change_word(drafts, word, limits, rng)
        if is_fooled:
            return
        # Each text once; sorted by all parts, so that equal chances have one order.
        drafts = sorted({draft.text: draft for draft in drafts + found_drafts}.values())
        drafts = drafts[: limits.beam]


def _rank_words(
    text: str, words: Sequence[Word], chance: float
) -> Generator[Step, ProbeAnswer, list[Word]]:
    """Return the words that may change, those that matter most first."""
    drops = []
    for word in words:
        if word.is_kept:
            continue
        shorter_text = remove_word(text, word)
        if shorter_text:
            answer = yield Probe(shorter_text, f"without “{word.text}”", is_offered=False)
            drops.append((answer.chance - chance, word.start, word))
    return [word for _drop, _start, word in sorted(drops)]


def _change_word(
    drafts: Sequence[Draft], word: Word, limits: SearchLimits, rng: Random
) -> Generator[Step, ProbeAnswer, tuple[list[Draft], bool]]:
    """Return the drafts with one more word changed, and whether the last one fools the models."""
    found_drafts: list[Draft] = []
    for draft in drafts:
        place = _find_place(draft.text, word)
        if place is None:
            continue
        replacements = yield from _list_replacements(draft.text, place, limits, rng)
        for replacement in replacements:
            changed_text = replace_word(draft.text, place, replacement)
            steps = (*draft.steps, f"{word.text} → {replacement}")
            answer = yield Probe(changed_text, ", ".join(steps))
            found_drafts.append(Draft(answer.chance, changed_text, steps))
            if answer.is_fooled:
                return found_drafts, True
    return found_drafts, False


def _find_place(text: str, word: Word) -> Word | None:
    """Return the word's place in a changed text, the nearest one; None if it is gone."""
    places = [place for place in split_text(text) if place.text == word.text]
    return min(places, key=lambda place: abs(place.start - word.start), default=None)


def _list_replacements(
    text: str, word: Word, limits: SearchLimits, rng: Random
) -> Generator[Step, ProbeAnswer, list[str]]:
    """Return what may replace a word: similar words first, because they read better."""
    replacements: list[str] = []
    if limits.has_similar_words:
        replacements += find_similar_words(text, word, limits.own_groups)
    if limits.masked_words:
        answer = yield Blank(text, word.start, word.end, limits.masked_words)
        # A word that turns the meaning is likely in many places, and would change the label.
        replacements += [one for one in answer.words if one.lower() not in KEPT_WORDS]
    # Last, because a misspelled word reads worse than another word.
    replacements += edit_letters(word.text, rng, limits.edits)
    return list(dict.fromkeys(replacements))
