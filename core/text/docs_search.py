"""Search the pages of `docs/`: match the words of a question with those of sections.

The pages are few and in memory, so every section is read for every question.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from core.text.docs import DocsPage, Section

MAX_RESULTS = 20
EXCERPT_CHARS = 160
"""The number of characters of a section that a result shows."""
MAX_WORDS = 8
"""The maximum number of words of a question that are looked up."""
MAX_QUESTION_CHARS = 200
"""The maximum number of characters of a question; the rest is ignored."""
_WORD_PATTERN = re.compile(r"\w+")
_FILLER_WORDS = frozenset(
    ("a", "an", "and", "are", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it")
    + ("me", "my", "of", "on", "or", "the", "to", "we", "what", "when", "where", "why", "you")
)
SYNONYMS = {
    "account": ("sign in",),
    "agreement": ("alpha",),
    "backup": ("restore",),
    "cancel": ("stop", "withdraw"),
    "citation": ("cite",),
    "context": ("text", "passage"),
    "cuda": ("gpu",),
    "dashboard": ("owners",),
    "delete": ("remove", "erase"),
    "download": ("export",),
    "email": ("mail", "e-mail"),
    "erase": ("delete",),
    "error": ("fail", "problem"),
    "export": ("download",),
    "fool": ("catch",),
    "gdpr": ("privacy", "stored about people"),
    "install": ("set up", "deploy"),
    "key": ("token",),
    "label": ("answer",),
    "login": ("sign in",),
    "logout": ("sign out",),
    "mail": ("email",),
    "password": ("sign in",),
    "pay": ("payment", "cents"),
    "payment": ("pay",),
    "quota": ("limit",),
    "ranking": ("leaderboard",),
    "remove": ("delete",),
    "resolve": ("dealt with", "report"),
    "restart": ("start",),
    "retract": ("withdraw",),
    "retry": ("try again", "tried again", "again", "repeat"),
    "score": ("metric",),
    "setting": ("configuration", "variable"),
    "target": ("model to fool",),
    "undo": ("take back", "withdraw"),
    "unfollow": ("follow",),
    "upgrade": ("update", "release"),
    "validate": ("judge",),
    "validation": ("judgement", "vote"),
    "vote": ("judge", "judgement"),
    "withdraw": ("retract",),
}
"""Other words that the documents use for a word of a question."""


@dataclass(frozen=True)
class SearchResult:
    """A section that answers a question, with an excerpt around the first match."""

    name: str
    page_title: str
    section: Section
    excerpt: SafeString

    @property
    def link(self) -> str:
        """Return the URL fragment that leads to the section; "" at the top of the page."""
        return f"#{self.section.anchor}" if self.section.anchor else ""


@dataclass(frozen=True)
class Term:
    """A word of a question.

    word, synonyms: patterns for the word and for its synonyms. starts: the first letters of the
    word and of each synonym. A text that contains none of them needs no search.
    """

    word: re.Pattern[str]
    synonyms: re.Pattern[str]
    starts: tuple[str, ...]

    def compute_score(self, text: str, max_score: int) -> int:
        """Return the word's score in a text: 3 per occurrence, 1 per occurrence of a synonym.

        max_score: the upper limit of the score.
        """
        folded_text = _fold_case(text)
        # Much faster than the patterns, and most texts end here.
        if not any(start in folded_text for start in self.starts):
            return 0
        words = 3 * len(self.word.findall(folded_text))
        if words >= max_score:
            return max_score
        return min(max_score, words + len(self.synonyms.findall(folded_text)))


# The sections of all pages with their titles, which change when the site is upgraded.
@lru_cache(4096)
def _fold_case(text: str) -> str:
    return text.casefold()


def cut_question(question: str) -> str:
    """Return the question without spaces around it, cut off at MAX_QUESTION_CHARS."""
    return question.strip()[:MAX_QUESTION_CHARS]


def search_pages(pages: Iterable[tuple[str, DocsPage]], question: str) -> list[SearchResult]:
    """Return up to MAX_RESULTS sections in which every word of the question occurs, the best first.

    pages: (name, page) pairs. Equally good sections keep the order of the pages. Filler words, and
    words after the first MAX_WORDS, are ignored.
    """
    terms = [_build_term(word) for word in _list_words(cut_question(question))]
    if not terms:
        return []
    scored_sections = []
    for name, page in pages:
        for section in page.sections:
            score = _score_section(terms, page.title, section)
            if score:
                scored_sections.append((score, name, page.title, section))
    scored_sections.sort(key=lambda scored: -scored[0])
    any_term = re.compile(
        "|".join(f"{term.word.pattern}|{term.synonyms.pattern}" for term in terms), re.IGNORECASE
    )
    # Only of those that are shown, because an excerpt takes longer than a score.
    return [
        SearchResult(name, page_title, section, _cut_excerpt(any_term, section.text))
        for _, name, page_title, section in scored_sections[:MAX_RESULTS]
    ]


def _list_words(question: str) -> list[str]:
    """Return up to MAX_WORDS different words of the question, without filler words.

    Also leaves out single letters. Keeps the letters or filler words if no other word is left.

    >>> _list_words("How do I retry a retry?"), _list_words("c c"), _list_words("the")
    (['retry'], ['c'], ['the'])
    """
    words = list(dict.fromkeys(_WORD_PATTERN.findall(question.casefold())))
    telling_words = [word for word in words if word not in _FILLER_WORDS]
    # Single letters, as of a formula, occur in nearly every section.
    long_words = [word for word in telling_words if len(word) > 1]
    return (long_words or telling_words or words)[:MAX_WORDS]


def _build_term(word: str) -> Term:
    """Return the term for a word: patterns that match its other endings and its synonyms."""
    stem = _build_stem_pattern(word)
    stems = [stem]
    # Of "unblock" a page may only tell how to block.
    if word.startswith("un") and len(word) > 5:
        stems.append(_build_stem_pattern(word[2:]))
    synonyms: list[str] = []
    for known_word, names in SYNONYMS.items():
        if _build_stem_pattern(known_word) == stem:
            synonyms += names
    # A stem is letters, and perhaps a group of endings behind them.
    starts = [stem.partition("(")[0] for stem in stems]
    return Term(
        re.compile(rf"\b(?:{'|'.join(stems)})\w*"),
        # Of no synonyms a pattern that finds nothing.
        re.compile(rf"\b(?:{'|'.join(map(re.escape, synonyms)) or '(?!)'})s?\b"),
        (*starts, *synonyms),
    )


def _build_stem_pattern(word: str) -> str:
    """Return a pattern for the word without its ending.

    >>> [_build_stem_pattern(word) for word in ("retries", "retry", "models", "resolved")]
    ['retr(?:y|ie)', 'retr(?:y|ie)', 'model', 'resolv']
    """
    for ending in ("ies", "ied", "ying", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return re.escape(word.removesuffix(ending)) + "(?:y|ie)"
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return re.escape(word.removesuffix(ending))
    return re.escape(word)


def _score_section(terms: Sequence[Term], page_title: str, section: Section) -> int:
    """Return how well the section answers the question; higher is better.

    Returns 0 if a term occurs in neither the section nor the page's title. If terms occur only in
    the title, just the part before the first subheading scores.
    """
    total = 0
    is_in_section = False
    for term in terms:
        own_score = 4 * term.compute_score(section.title, 3) + term.compute_score(section.text, 9)
        title_score = 2 * term.compute_score(page_title, 3)
        if not own_score + title_score:
            return 0
        total += own_score + title_score
        is_in_section = is_in_section or own_score > 0
    # Words of the page's title alone lead to the top of the page, not to each section.
    return total if is_in_section or not section.title else 0


def _cut_excerpt(any_term: re.Pattern[str], text: str) -> SafeString:
    """Return an excerpt around the first match, with the matches marked."""
    first_match = any_term.search(text)
    start = max(0, first_match.start() - EXCERPT_CHARS // 3) if first_match else 0
    if start:
        start = text.find(" ", start) + 1
    excerpt = text[start : start + EXCERPT_CHARS]
    if start + EXCERPT_CHARS < len(text):
        excerpt = excerpt.rsplit(" ", 1)[0] + " …"
    if start:
        excerpt = "… " + excerpt
    return _mark_matches(any_term, excerpt)


def _mark_matches(pattern: re.Pattern[str], text: str) -> SafeString:
    """Return the text as HTML with each match in `<mark>`."""
    pieces = []
    position = 0
    for match in pattern.finditer(text):
        pieces.append((text[position : match.start()], match.group()))
        position = match.end()
    return format_html("{}{}", format_html_join("", "{}<mark>{}</mark>", pieces), text[position:])
