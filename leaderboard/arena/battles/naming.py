"""Whether a model says in its answers who it is. Pure: names and texts in, yes or no out."""

import re
from collections.abc import Iterable

from core.text.words import folded, runs_of

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
"""Words of one maker's models, in lower case."""
_SAYS = re.compile(
    r"\b(?:i['’]?\s?a?m|my\s+name\s+is|my\s+name['’]s|you\s+can\s+call\s+me|call\s+me"
    r"|i\s+was\s+(?:made|built|trained|created|developed)\s+by)\s+(?:an?\s+|the\s+)?([^\s.,;:!?]+(?:\s+[^\s.,;:!?]+)?)",
    re.IGNORECASE,
)
"""A sentence about the speaker, and the two words that follow."""


def names_itself(answers: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether one of a model's answers names its model.

    names: the names of the model, such as `gpt-4o-mini`. An answer names it with one of these or a
    word of its family anywhere, or with a sentence such as “I am Claude”: a word of any family, or
    a word that begins with a capital letter.
    """
    own = [_plain(name) for name in names]
    words = {word for name in own for word in (name, *_family(name)) if len(word) > 2}
    spoken = tuple(f"{_plain(word)} " for family in FAMILIES for word in family)
    for answer in answers:
        plain = f" {_plain(answer)} "
        if any(f" {word} " in plain for word in words):
            return True
        for said in _SAYS.findall(answer):
            if said[:1].isupper() or f"{_plain(said)} ".startswith(spoken):
                return True
    return False


def _plain(text: str) -> str:
    """Return the words in lower case with a space between them.

    Letters and digits are separated: `gpt4o` becomes `gpt 4 o`.
    """
    parted = re.sub(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])", " ", text)
    return " ".join(runs_of(folded(parted)))


def _family(name: str) -> tuple[str, ...]:
    """Return the words of all families that a name belongs to."""
    words = f" {name} "
    return tuple(
        _plain(word)
        for family in FAMILIES
        if any(f" {_plain(one)} " in words for one in family)
        for word in family
    )
