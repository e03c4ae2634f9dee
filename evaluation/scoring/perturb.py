"""Make perturbed variants of examples: the same right answer, another text.

A kind never changes what must stay: answers, label words, addresses, numbers and names. The same
seed gives the same variants. docs/evaluation.md lists the kinds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from itertools import chain
from random import Random
from typing import Any, Literal

from evaluation.contract import SetRow
from evaluation.scoring.metrics.base import extract_text
from evaluation.scoring.perturbations import letters, people, words
from evaluation.scoring.perturbations.source import (
    Edit,
    Source,
    apply_edits,
    find_protected_spans,
    measure_distance,
    move_position,
)
from evaluation.scoring.perturbations.tables import (
    AFRICAN_AMERICAN,
    BRITISH,
    GROUPS,
    NEIGHBOURS,
)

Family = Literal["robustness", "fairness"]
TermGroups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class PerturbationKind:
    """A way to perturb texts. If its edits change, it gets a new version.

    languages: primary subtags; `*` for any. changeable_words: words that may change although they
    look like names; None lets all names change. field_policy: "each" draws every field separately.
    "alike" draws all fields alike, so that a name changes the same way everywhere. "longest"
    changes only the longest field.
    """

    name: str
    family: Family
    edits: Callable[..., Iterable[Edit]]
    languages: tuple[str, ...] = ("*",)
    params: Mapping[str, Any] = field(default_factory=dict)
    changeable_words: Collection[str] | None = ()
    field_policy: Literal["each", "alike", "longest"] = "each"
    version: int = 1

    def supports(self, language: str) -> bool:
        """Return whether the kind can perturb texts in a language."""
        return "*" in self.languages or language.partition("-")[0] in self.languages


@dataclass(frozen=True)
class PerturbationScope:
    """The parts of a task's examples that models read, and the parts that must stay unchanged.

    passage_field: the field in which answers are spans; None if answers are not spans. group_terms:
    the owner's lists of terms, which replace ours.
    """

    fields: Sequence[str]
    answer_field: str
    passage_field: str | None
    labels: Sequence[str]
    language: str
    group_terms: TermGroups | None = None

    def list_fixed_phrases(self, row: SetRow) -> list[str]:
        """Return the phrases that must stay: labels, or answers that are spans of a passage."""
        phrases = self.labels
        if self.passage_field is not None:
            phrases = [extract_text(gold) for gold in row.gold]
        return list(filter(None, phrases))  # an empty phrase would match everywhere


@dataclass(frozen=True)
class Variant:
    """A perturbed variant of an example. distance: edit distance from the base, in characters."""

    kind: str
    row: SetRow
    distance: int


ENGLISH_ONLY = ("en",)
SMALL_SHARE_RANGE = {"low": 0.02, "high": 0.05}  # of the letters that can change
NAMES = frozenset(name.lower() for name in people.OTHER_NAME)
TITLES = frozenset({"mr", "ms", "mrs", "he", "she", "his", "her", "him"})

MAX_SEARCH_WORK = 5_000_000
"""The maximum of characters in a row's texts times those of the searched phrases: 20,000 × 250."""

PERTURBATION_KINDS: dict[str, PerturbationKind] = {
    kind.name: kind
    for kind in (
        PerturbationKind(
            "lower_case",
            "robustness",
            partial(letters.change_case, change=str.lower),
            changeable_words=None,
        ),
        PerturbationKind(
            "upper_case",
            "robustness",
            partial(letters.change_case, change=str.upper),
            changeable_words=None,
        ),
        PerturbationKind(
            "no_final_punctuation",
            "robustness",
            letters.drop_final_punctuation,
            changeable_words=None,
        ),
        PerturbationKind(
            "extra_spaces", "robustness", letters.insert_extra_spaces, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind(
            "missing_spaces", "robustness", letters.drop_spaces, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind("contractions", "robustness", words.contract_phrases, ENGLISH_ONLY),
        PerturbationKind("expansions", "robustness", words.expand_contractions, ENGLISH_ONLY),
        PerturbationKind(
            "keyboard_neighbour",
            "robustness",
            letters.replace_with_neighbours,
            tuple(NEIGHBOURS),
            {**SMALL_SHARE_RANGE, "tables": NEIGHBOURS},
        ),
        PerturbationKind(
            "swapped_letters", "robustness", letters.swap_letters, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind(
            "dropped_letters", "robustness", letters.drop_letters, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind(
            "doubled_letters", "robustness", letters.double_letters, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind(
            "misspellings",
            "robustness",
            words.misspell_words,
            ENGLISH_ONLY,
            {"low": 0.2, "high": 0.5},
        ),
        PerturbationKind("homoglyphs", "robustness", letters.replace_with_homoglyphs),
        PerturbationKind("zero_width", "robustness", letters.insert_zero_width),
        PerturbationKind(
            "leet_digits", "robustness", letters.replace_with_leet, params=SMALL_SHARE_RANGE
        ),
        PerturbationKind(
            "no_diacritics", "robustness", letters.strip_diacritics, changeable_words=None
        ),
        PerturbationKind(
            "filler", "robustness", words.insert_filler, ENGLISH_ONLY, field_policy="longest"
        ),
        PerturbationKind(
            "neutral_suffix",
            "robustness",
            words.append_suffix,
            ENGLISH_ONLY,
            changeable_words=None,
            field_policy="longest",
        ),
        PerturbationKind(
            "other_gender",
            "fairness",
            people.swap_gender,
            ENGLISH_ONLY,
            changeable_words=NAMES | TITLES,
        ),
        PerturbationKind(
            "given_names",
            "fairness",
            people.replace_names,
            ENGLISH_ONLY,
            changeable_words=NAMES,
            field_policy="alike",
        ),
        PerturbationKind(
            "group_terms",
            "fairness",
            people.replace_group_terms,
            ENGLISH_ONLY,
            {"groups": GROUPS},
            field_policy="alike",
        ),
        PerturbationKind(
            "british", "fairness", people.replace_dialect, ENGLISH_ONLY, {"table": BRITISH}
        ),
        PerturbationKind(
            "african_american",
            "fairness",
            people.replace_dialect,
            ENGLISH_ONLY,
            {"table": AFRICAN_AMERICAN},
        ),
    )
}


def make_variants(
    row: SetRow, scope: PerturbationScope, *, family: Family, seed: int, max_variants: int = 4
) -> list[Variant]:
    """Return at most `max_variants` variants of a row, each of a different kind, ordered by a hash.

    Parameters
    ----------
    row
        The example.
    scope
        The fields that models read, and the phrases that must stay.
    family
        "robustness" or "fairness".
    seed
        The seed of the draws.
    max_variants
        The maximum number of variants.

    Notes
    -----
    Answers are located again in the changed passage; a variant that breaks one of them is dropped.
    A row that exceeds MAX_SEARCH_WORK gets no variants. Order and ids depend only on the arguments,
    and a variant's id reveals neither its base nor its kind.
    """
    passage, fixed_phrases = scope.passage_field, scope.list_fixed_phrases(row)
    texts = {}
    for name in scope.fields:
        text = row.inputs.get(name)
        if name != scope.answer_field and isinstance(text, str) and text:
            texts[name] = text
    # Each phrase is searched in each text, so a hostile row could cause endless work.
    if sum(map(len, texts.values())) * (1 + sum(map(len, fixed_phrases))) > MAX_SEARCH_WORK:
        return []
    kinds = select_kinds(family, scope.language, scope.group_terms)
    row_variants: list[Variant] = []
    # In an order drawn for this row, so that every kind gets a share of the examples.
    for kind in sorted(kinds, key=lambda kind: _hash_variant(kind, seed, row.uid, "kind")):
        if len(row_variants) == max_variants:
            break
        edits = _edit_fields(kind, texts, fixed_phrases, seed, row.uid, scope)
        gold = row.gold
        if passage is not None:
            gold = _move_gold(row, passage, edits)
        if not edits or not gold:
            continue
        new_texts = {name: apply_edits(texts[name], edits[name]) for name in edits}
        uid = compute_variant_uid(row.uid, kind.name, kind.version, seed)
        variant_row = SetRow(uid, {**row.inputs, **new_texts}, gold, row.slices)
        total = sum(
            measure_distance(field_edits, texts[name]) for name, field_edits in edits.items()
        )
        row_variants.append(Variant(kind.name, variant_row, total))
    return row_variants


def select_kinds(
    family: Family, language: str, group_terms: TermGroups | None = None
) -> list[PerturbationKind]:
    """Return the kinds of a family for a language. An owner's terms apply in any language.

    Parameters
    ----------
    family
        "robustness" or "fairness".
    language
        The task's language, a tag such as `en-GB`.
    group_terms
        The owner's lists of terms for groups of people, if any.
    """
    kinds = []
    for kind in PERTURBATION_KINDS.values():
        has_own_terms = kind.name == "group_terms" and group_terms
        if kind.family == family and (kind.supports(language) or has_own_terms):
            kinds.append(kind)
    return kinds


def compute_variant_uid(uid: str, kind: str, version: int, seed: int) -> str:
    """Return a variant's id: the keyed hash of its base, kind and version.

    The id is always the same and reveals nothing to people who do not know the seed.

    Parameters
    ----------
    uid
        The base's id.
    kind, version
        The kind's name and version.
    seed
        The secret seed of the suite, from which the key is derived.
    """
    # Without the key, ids would reveal which examples are variants of one base.
    key = sha256(f"twins|{seed}".encode()).digest()
    return blake2b(f"{kind}|{version}|{uid}".encode(), key=key, digest_size=16).hexdigest()


def _hash_variant(kind: PerturbationKind, seed: int, uid: str, name: str) -> bytes:
    return sha256(f"{kind.name}|{kind.version}|{seed}|{uid}|{name}".encode()).digest()


def _edit_fields(
    kind: PerturbationKind,
    texts: Mapping[str, str],
    fixed_phrases: Sequence[str],
    seed: int,
    uid: str,
    scope: PerturbationScope,
) -> dict[str, list[Edit]]:
    """Return the edits of each field that changes."""
    params, changeable_words = kind.params, kind.changeable_words
    if "groups" in params:
        groups = scope.group_terms or GROUPS
        params = {"groups": groups}
        # Terms such as “Indian” look like names. They are what this kind changes.
        changeable_words = set(" ".join(chain.from_iterable(groups)).lower().split())
    # Which keys are neighbours depends on the language's keyboard.
    if "tables" in params:
        table = params["tables"][scope.language.partition("-")[0]]
        params = {**SMALL_SHARE_RANGE, "table": table}
    names = list(texts)
    if kind.field_policy == "longest":
        # A filler in both the question and the passage would be two changes.
        names = sorted(texts, key=lambda name: -len(texts[name]))[:1]
    field_edits = {}
    for name in names:
        # One random generator for all fields, so that a name gets the same substitute everywhere.
        draw_name = "" if kind.field_policy == "alike" else name
        rng = Random(_hash_variant(kind, seed, uid, draw_name))
        source = Source(
            texts[name],
            find_protected_spans(texts[name], fixed_phrases, changeable_words=changeable_words),
        )
        # Kinds propose edits without considering what must stay.
        edits = source.select_allowed(kind.edits(source, rng, **params))
        if edits:
            field_edits[name] = edits
    return field_edits


def _move_gold(row: SetRow, passage: str, edits: Mapping[str, Sequence[Edit]]) -> tuple[Any, ...]:
    """Return the right answers at their new positions in the passage; empty if one is broken."""
    old_passage = str(row.inputs.get(passage, ""))
    passage_edits = edits.get(passage, ())
    new_passage = apply_edits(old_passage, passage_edits)
    moved_answers: list[Any] = []
    for gold in row.gold:
        text = extract_text(gold)
        # A span has a position, which shifts with the edits before it.
        if isinstance(gold, Mapping) and "start" in gold:
            start = move_position(gold["start"], passage_edits)
            if new_passage[start : start + len(text)] != text:
                return ()
            moved_answers.append({**gold, "start": start, "end": start + len(text)})
        elif text in old_passage and text not in new_passage:
            return ()
        else:
            moved_answers.append(gold)
    return tuple(moved_answers)
