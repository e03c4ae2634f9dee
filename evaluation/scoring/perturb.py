"""Perturbed variants of examples: the same right answer, another text.

A kind never changes what it must keep (answers, label words, addresses, numbers, names), and the
same seed gives the same variants. docs/evaluation.md lists the kinds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from random import Random
from typing import Any, Literal

from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import text_of
from evaluation.scoring.perturbations import letters, people, words
from evaluation.scoring.perturbations.source import (
    Edit,
    Source,
    changed,
    distance,
    moved,
    protected,
)
from evaluation.scoring.perturbations.tables import (
    AFRICAN_AMERICAN,
    BRITISH,
    GROUPS,
    NEIGHBOURS,
)

Family = Literal["robustness", "fairness"]
Groups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Kind:
    """A way to change texts. A change of its edits is a new version.

    languages: primary subtags; `*` is any. but: words that may change although they look like
    names; None: all names may. where: every field drawn apart, all fields drawn alike (so that a
    name is the same everywhere), or only the longest one.
    """

    name: str
    family: Family
    edits: Callable[..., Iterable[Edit]]
    languages: tuple[str, ...] = ("*",)
    params: Mapping[str, Any] = field(default_factory=dict)
    but: Collection[str] | None = ()
    where: Literal["each", "alike", "longest"] = "each"
    version: int = 1

    def speaks(self, language: str) -> bool:
        return "*" in self.languages or language.partition("-")[0] in self.languages


@dataclass(frozen=True)
class Reading:
    """What models read of a task's examples, and what must stay in it.

    passage_field: where answers are stretches of text; None: answers are not. group_terms: an
    owner's lists instead of ours.
    """

    fields: Sequence[str]
    answer_field: str
    passage_field: str | None
    labels: Sequence[str]
    language: str
    group_terms: Groups | None = None

    def kept(self, row: SetRow) -> list[str]:
        """The phrases that stay as they are: the labels, or the answers in the passage."""
        answers = [text_of(gold) for gold in row.gold]
        return [*filter(None, self.labels if self.passage_field is None else answers)]


@dataclass(frozen=True)
class Variant:
    """A perturbed variant of an example. distance: characters that differ from the base."""

    kind: str
    row: SetRow
    distance: int


EN = ("en",)
FEW = {"low": 0.02, "high": 0.05}  # of the letters that may change
NAMES = frozenset(name.lower() for name in people.OTHER_NAME)
TITLES = frozenset({"mr", "ms", "mrs", "he", "she", "his", "her", "him"})

MOST_WORK = 5_000_000
"""Characters of a row's texts, times those of the phrases looked for in them: 20,000 times 250."""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("lower_case", "robustness", partial(letters.cased, change=str.lower), but=None),
        Kind("upper_case", "robustness", partial(letters.cased, change=str.upper), but=None),
        Kind("no_final_punctuation", "robustness", letters.no_final_punctuation, but=None),
        Kind("extra_spaces", "robustness", letters.extra_spaces, params=FEW),
        Kind("missing_spaces", "robustness", letters.missing_spaces, params=FEW),
        Kind("contractions", "robustness", words.contracted, EN),
        Kind("expansions", "robustness", words.expanded, EN),
        Kind(
            "keyboard_neighbour",
            "robustness",
            letters.neighbour_keys,
            tuple(NEIGHBOURS),
            {**FEW, "tables": NEIGHBOURS},
        ),
        Kind("swapped_letters", "robustness", letters.swapped_letters, params=FEW),
        Kind("dropped_letters", "robustness", letters.dropped_letters, params=FEW),
        Kind("doubled_letters", "robustness", letters.doubled_letters, params=FEW),
        Kind("misspellings", "robustness", words.misspelled, EN, {"low": 0.2, "high": 0.5}),
        Kind("homoglyphs", "robustness", letters.homoglyphs),
        Kind("zero_width", "robustness", letters.zero_width),
        Kind("leet_digits", "robustness", letters.leet_digits, params=FEW),
        Kind("no_diacritics", "robustness", letters.no_diacritics, but=None),
        Kind("filler", "robustness", words.filler, EN, where="longest"),
        Kind("neutral_suffix", "robustness", words.neutral_suffix, EN, but=None, where="longest"),
        Kind("other_gender", "fairness", people.other_gender, EN, but=NAMES | TITLES),
        Kind("given_names", "fairness", people.other_names, EN, but=NAMES, where="alike"),
        Kind("group_terms", "fairness", people.other_groups, EN, {"groups": GROUPS}, where="alike"),
        Kind("british", "fairness", people.dialect, EN, {"table": BRITISH}),
        Kind("african_american", "fairness", people.dialect, EN, {"table": AFRICAN_AMERICAN}),
    )
}


def variants(
    row: SetRow, reading: Reading, *, family: Family, seed: int, most: int = 4
) -> list[Variant]:
    """Variants of a row by at most so many of the kinds that change it, drawn by hash.

    Answers are found again in the changed passage, and a variant that cannot keep each of them
    whole is dropped. A row beyond MOST_WORK has none. Order and ids depend on nothing but the
    arguments, and a variant's id tells neither its base nor its kind.
    """
    passage, language, kept = reading.passage_field, reading.language, reading.kept(row)
    texts = {
        name: text
        for name in reading.fields
        if name != reading.answer_field and isinstance(text := row.inputs.get(name), str) and text
    }
    if sum(map(len, texts.values())) * (1 + sum(map(len, kept))) > MOST_WORK:
        return []
    known = kinds_of(family, language, reading.group_terms)
    found: list[Variant] = []
    for kind in sorted(known, key=lambda kind: _digest(kind, seed, row.uid, "kind")):
        if len(found) == most:
            break
        edits = _edits(kind, texts, kept, seed, row.uid, reading)
        gold = row.gold if passage is None else _gold(row, passage, edits)
        if edits and gold:
            inputs = {**row.inputs, **{name: changed(texts[name], edits[name]) for name in edits}}
            uid = variant_uid(row.uid, kind.name, kind.version, seed)
            total = sum(distance(some, texts[name]) for name, some in edits.items())
            found.append(Variant(kind.name, SetRow(uid, inputs, gold, row.slices), total))
    return found


def kinds_of(family: Family, language: str, group_terms: Groups | None = None) -> list[Kind]:
    """The kinds of a family that a language has; owners' terms are of whatever language."""
    return [
        kind
        for kind in KINDS.values()
        if kind.family == family
        and (kind.speaks(language) or (kind.name == "group_terms" and group_terms))
    ]


def variant_uid(uid: str, kind: str, version: int, seed: int) -> str:
    """An id that is the same each time and says nothing without the key, which is of the seed."""
    key = sha256(f"twins|{seed}".encode()).digest()
    return blake2b(f"{kind}|{version}|{uid}".encode(), key=key, digest_size=16).hexdigest()


def _digest(kind: Kind, seed: int, uid: str, name: str) -> bytes:
    return sha256(f"{kind.name}|{kind.version}|{seed}|{uid}|{name}".encode()).digest()


def _edits(
    kind: Kind,
    texts: Mapping[str, str],
    kept: Sequence[str],
    seed: int,
    uid: str,
    reading: Reading,
) -> dict[str, list[Edit]]:
    """The edits of each field that changes."""
    params, but = kind.params, kind.but
    if "groups" in params:
        params = {"groups": reading.group_terms or GROUPS}
        but = {
            word for terms in params["groups"] for term in terms for word in term.lower().split()
        }
    if "tables" in params:
        table = params["tables"][reading.language.partition("-")[0]]
        params = {**FEW, "table": table}
    names = list(texts)
    if kind.where == "longest":
        names = sorted(texts, key=lambda name: -len(texts[name]))[:1]
    found = {}
    for name in names:
        drawn_by = "" if kind.where == "alike" else name
        chance = Random(_digest(kind, seed, uid, drawn_by))
        source = Source(texts[name], protected(texts[name], kept, but=but))
        if edits := source.allowed(kind.edits(source, chance, **params)):
            found[name] = edits
    return found


def _gold(row: SetRow, passage: str, edits: Mapping[str, Sequence[Edit]]) -> tuple[Any, ...]:
    """The right answers with their places in the changed passage; empty if one is not whole."""
    before = str(row.inputs.get(passage, ""))
    here = edits.get(passage, ())
    after = changed(before, here)
    found: list[Any] = []
    for gold in row.gold:
        text = text_of(gold)
        if isinstance(gold, Mapping) and "start" in gold:
            start = moved(gold["start"], here)
            if after[start : start + len(text)] != text:
                return ()
            found.append({**gold, "start": start, "end": start + len(text)})
        elif text in before and text not in after:
            return ()
        else:
            found.append(gold)
    return tuple(found)
