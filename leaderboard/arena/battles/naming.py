"""Detection of answers in which a model names itself. Pure."""

import re
from collections.abc import Iterable
from itertools import chain

from core.text.words import fold, split_runs

FAMILIES = (
    ("gpt", "chatgpt", "openai"),
    ("claude", "anthropic"),
    ("gemini", "gemma", "palm", "bard", "deepmind", "google"),
    ("llama", "meta ai", "vicuna", "alpaca"),
    ("mistral", "mixtral", "ministral"),
    ("qwen", "tongyi", "alibaba"),
    ("deepseek",),
    ("grok", "xai"),
    ("cohere", "aya"),
    ("phi", "copilot", "microsoft"),
    ("smollm", "hugging face"),
    ("falcon", "tii"),
    ("granite", "ibm"),
    ("kimi", "moonshot"),
    ("glm", "chatglm", "zhipu"),
    ("olmo", "ai2"),
    ("yi", "01 ai"),
    ("nova", "titan", "amazon"),
    ("nemotron", "nvidia"),
)
"""The words of each maker's models, in lower case."""
_CLAIM_PATTERN = re.compile(
    r"\b(?:i['’]?\s?a?m|my\s+name\s+is|my\s+name['’]s|you\s+can\s+call\s+me|call\s+me"
    r"|i\s+was\s+(?:made|built|trained|created|developed)\s+by)\s+(?:an?\s+|the\s+)?([^\s.,;:!?]+(?:\s+[^\s.,;:!?]+)?)",
    re.IGNORECASE,
)
"""A sentence in which a speaker names itself or its maker; the group has up to two words."""


def is_self_named(answers: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether one of a model's answers reveals which model wrote it.

    names: the names of the model, such as `gpt-4o-mini`. An answer reveals the model if it
    contains one of these names or a word of the model's family. So does a sentence such as “I am
    Claude”, with a word of any family or a capitalised word.
    """
    own_words = _collect_words(names)
    family_words = tuple(f"{_normalise_words(word)} " for word in chain.from_iterable(FAMILIES))
    for answer in answers:
        plain = f" {_normalise_words(answer)} "
        if any(f" {word} " in plain for word in own_words):
            return True
        # A false claim also makes the voter think that they know the model.
        for claim in _CLAIM_PATTERN.findall(answer):
            if claim[:1].isupper() or f"{_normalise_words(claim)} ".startswith(family_words):
                return True
    return False


def _collect_words(names: Iterable[str]) -> set[str]:
    """Return names and their families' words, except the shortest, which occur by chance."""
    words: set[str] = set()
    for name in names:
        plain = _normalise_words(name)
        words.add(plain)
        words.update(_find_family_words(plain))
    return {word for word in words if len(word) > 2}


def _normalise_words(text: str) -> str:
    """Return the words in lower case, separated by single spaces.

    Letters and digits are separated: `gpt4o` becomes `gpt 4 o`.
    """
    separated = re.sub(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])", " ", text)
    return " ".join(split_runs(fold(separated)))


def _find_family_words(name: str) -> list[str]:
    """Return the words of all families that a name belongs to."""
    words: list[str] = []
    for family in FAMILIES:
        plain_words = [_normalise_words(word) for word in family]
        if any(f" {word} " in f" {name} " for word in plain_words):
            words += plain_words
    return words
