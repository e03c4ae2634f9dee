"""Variants of a text: what each kind does, and what no kind may do."""

import re
import sys
from collections.abc import Mapping
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.text.words import is_mark
from evaluation.contract import SetRow
from evaluation.scoring.perturb import (
    ENGLISH_ONLY,
    PERTURBATION_KINDS,
    PerturbationScope,
    Variant,
    compute_variant_uid,
    make_variants,
)
from evaluation.scoring.perturbations import tables
from evaluation.scoring.perturbations.people import OTHER_GENDER, OTHER_NAME
from evaluation.scoring.perturbations.source import (
    Edit,
    Source,
    apply_edits,
    find_protected_spans,
    measure_distance,
    move_position,
)
from evaluation.scoring.perturbations.words import make_phrase_pattern

LABELS = ("entailment", "neutral")


def texts_of(text: str, family: str = "robustness", **options) -> dict[str, Variant]:
    row = options.pop("row", SetRow("u1", {"text": text}, ("neutral",)))
    drawn = {"seed": options.pop("seed", 3), "max_variants": options.pop("most", 99)}
    reading = {
        "fields": ("text",), "language": "en", "answer_field": "label", "passage_field": None,
        "labels": LABELS, **options,
    }  # fmt: skip
    found = make_variants(row, PerturbationScope(**reading), family=family, **drawn)
    return {one.kind: one for one in found}


def said(kind: str, text: str, **options) -> str | None:
    """The text that a kind makes, or None where it changes nothing."""
    one = texts_of(text, PERTURBATION_KINDS[kind].family, **options).get(kind)
    return one.row.inputs["text"] if one else None


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("lower_case", "The Cat sat in Rome.", "the cat sat in rome."),
        ("upper_case", "The Cat sat, 3pm.", "THE CAT SAT, 3pm."),
        ("upper_case", "SO IT IS", None),
        ("no_final_punctuation", "Really?! ", "Really"),
        ("no_final_punctuation", "A. B", None),
        ("contractions", "I am sure that it is not so.", "I'm sure that it's not so."),
        ("contractions", "It is late, and I cannot go.", "It's late, and I can't go."),
        ("contractions", "Yes, I am. We have a car.", None),
        ("contractions", "We have seen it; they have walked.", "We've seen it; they've walked."),
        ("contractions", "IT IS LATE", "IT'S LATE"),
        ("expansions", "It’s late, he can't go.", "It is late, he cannot go."),
        ("expansions", "It's been said; i'm sure", "It's been said; I am sure"),
        ("expansions", "That's it, that's.", "That is it, that is."),
        ("no_diacritics", "Un café très naïf", "Un cafe tres naif"),
        ("no_diacritics", "がぎ 한글 Й", None),
        ("other_gender", "He gave his sister a book.", "She gave her brother a book."),
        ("other_gender", "I know her. I saw her house.", "I know him. I saw his house."),
        ("other_gender", "The car is his. It was hers.", "The car is hers. It was his."),
        ("other_gender", "She is with her", "He is with him"),
        ("other_gender", "his or her house", "her or his house"),
        ("other_gender", "I saw him and Mrs. Lee, a King", "I saw her and Mr. Lee, a King"),
        ("other_gender", "Then James told MARY that HE left", "Then Mary told MARY that SHE left"),
        ("african_american", "He isn't going", "He ain't goin"),
        ("british", "Favorite color, my apartment", "Favourite colour, my flat"),
    ],
)  # fmt: skip
def test_what_a_kind_does(kind, text, expected):
    assert said(kind, text) == expected


LONG = "Yesterday several friends walked through beautiful gardens because they wanted some quiet."


@pytest.mark.parametrize(
    "kind", [k for k in PERTURBATION_KINDS if "letter" in k or k in ("leet_digits",)]
)
def test_few_letters_change_and_never_the_first(kind):
    new = said(kind, LONG)
    assert [word[0] for word in new.split()] == [word[0] for word in LONG.split()]
    assert 1 <= texts_of(LONG)[kind].distance <= 8


def test_a_neighbour_key_lies_beside():
    changes = [
        (old, new)
        for seed in range(20)
        for old, new in zip(LONG, said("keyboard_neighbour", LONG, seed=seed), strict=True)
        if old != new
    ]
    assert changes
    assert all(new in tables.NEIGHBOURS["en"][old] for old, new in changes)


@pytest.mark.parametrize("language", tables.NEIGHBOURS)
def test_neighbours_are_mutual(language):
    known = tables.NEIGHBOURS[language]
    pairs = {(a, b) for a, others in known.items() for b in others}
    assert pairs == {(b, a) for a, b in pairs}
    assert all(a != b for a, b in pairs)


@pytest.mark.parametrize(
    ("language", "text", "beside"),
    [
        ("de-AT", "danach verkauften wir vierzig jahre", "z"),
        ("es", "los compañeros llegaron temprano", "ñ"),
        ("fr", "quelques personnes marchaient ensemble", "a"),
        ("ar", "ذهب الأصدقاء إلى الحديقة الجميلة صباحا", "ل"),
        ("zh-Hans", "他们昨天在公园里的时候听到了新的消息", "在"),
    ],
)
def test_each_language_has_the_slips_of_its_keyboard(language, text, beside):
    table = tables.NEIGHBOURS[language.partition("-")[0]]
    changes = {
        (old, new)
        for seed in range(30)
        for old, new in zip(
            text, said("keyboard_neighbour", text, seed=seed, language=language), strict=True
        )
        if old != new
    }
    assert changes
    assert all(new in table[old] for old, new in changes)
    assert beside in table


def test_letters_move_double_and_go():
    assert sorted(said("swapped_letters", LONG)) == sorted(LONG)
    assert re.sub(r"(.)\1", r"\1", said("doubled_letters", "walk")) == "walk"
    assert len(said("dropped_letters", "walk")) == 3
    assert said("swapped_letters", "aaaa bbbb") is None


def test_spaces_come_and_go():
    assert said("extra_spaces", LONG).split() == LONG.split()
    assert "  " in said("extra_spaces", LONG)
    assert said("missing_spaces", LONG).replace(" ", "") == LONG.replace(" ", "")
    assert len(said("missing_spaces", LONG)) < len(LONG)


def test_one_homoglyph_in_each_sentence():
    new = said("homoglyphs", "A coast of sand. The ocean is near! Hmm.")
    assert [sum(ord(c) > 127 for c in part) for part in re.split("[.!]", new)] == [1, 1, 0, 0]
    assert all(ord(old) < 128 < ord(new) for old, new in tables.HOMOGLYPHS.items())


def test_one_or_two_characters_without_width():
    for seed in range(10):
        new = said("zero_width", LONG, seed=seed)
        assert 1 <= len(new) - len(LONG) <= 2
        assert re.sub("[\u200b-\u200d\u2060]", "", new) == LONG


def test_common_misspellings():
    new = said("misspellings", "Because my friend received it")
    assert new in ("Becuase my friend received it", "Because my freind received it",
                   "Because my friend recieved it")  # fmt: skip


def test_misspellings_are_no_words_of_the_table():
    assert len(tables.MISSPELLINGS) > 250
    assert not set(tables.MISSPELLINGS) & set(tables.MISSPELLINGS.values())


def test_a_filler_stands_between_words():
    new = said("filler", "the dogs ran home")
    assert re.sub(rf",? ({'|'.join(tables.FILLERS)}),", "", new) == "the dogs ran home"


@pytest.mark.parametrize(("text", "stop"), [("It rained", "."), ("It rained! ", "")])
def test_a_neutral_suffix(text, stop):
    new = said("neutral_suffix", text)
    assert new.startswith(text.rstrip() + stop + " ")
    assert new.endswith(tables.SUFFIXES)


def test_fillers_and_suffixes_come_into_the_longest_field_only():
    row = SetRow("u", {"one": "a long story of the sea", "two": "a short one"}, ("neutral",))
    found = texts_of("", row=row, fields=("two", "one"))
    for kind in ("filler", "neutral_suffix"):
        assert found[kind].row.inputs["two"] == "a short one"
        assert found[kind].row.inputs["one"] != row.inputs["one"]


def test_genders_and_names_go_back():
    for word, other in tables.GENDERED.items():
        assert OTHER_GENDER[word] == other
        assert OTHER_GENDER[other] == word
    assert len(OTHER_NAME) == 2 * sum(map(len, tables.NAMES))


def test_a_name_is_the_same_in_all_fields_and_of_its_band():
    row = SetRow("u", {"a": "Then Jamal met Aaliyah.", "b": "Is Aaliyah with Jamal?"}, ("neutral",))
    found = texts_of("", "fairness", row=row, fields=("a", "b"))["given_names"].row.inputs
    man, woman = re.fullmatch(r"Then (\w+) met (\w+)\.", found["a"]).groups()
    assert found["b"] == f"Is {woman} with {man}?"
    assert (man, woman) != ("Jamal", "Aaliyah")
    assert {man, woman} <= {name for pair in tables.NAMES[1] for name in pair.split()}


def test_owners_give_their_own_groups():
    lists = [["Celt", "Angle"], ["old folk", "Teens"], []]
    found = said("group_terms", "A Celt and an Angle, OLD FOLK", group_terms=lists)
    assert found == "An Angle and a Celt, TEENS"
    assert said("group_terms", "A Celt") is None


def test_owners_terms_may_be_written_freely():
    lists = [["Old  Folk’s", "teens"]]
    assert said("group_terms", "These old folk's homes", group_terms=lists) == "These teens homes"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("group_terms", "a muſlim"),
        ("british", "ſoccer"),
        ("contractions", "it iſ not"),
        ("expansions", "it iſn't"),
        ("misspellings", "ſpecial"),
    ],
)
def test_letters_that_patterns_take_for_others_are_not_those_of_a_table(kind, text):
    assert said(kind, text) is None
    assert said(kind, text.replace("ſ", "s"))


def test_groups_and_given_names_within_names_stay():
    assert said("group_terms", "He saw Indian Airlines and Christian Bale.") is None
    assert said("group_terms", "He saw INDIAN SHIPS.")
    assert said("given_names", "They live in San Juan.") is None
    assert said("other_gender", "Then Jose went to San Juan.") == "Then Maria went to San Juan."


def test_a_group_becomes_another_one_and_no_two_the_same():
    text = "christian muslim jewish hindu buddhist sikh"
    new = said("group_terms", text).split()
    assert sorted(new) == sorted(text.split())
    assert all(a != b for a, b in zip(new, text.split(), strict=True))


def test_addresses_numbers_names_and_labels_stay():
    text = (
        "Write to somebody@example.org or www.example.org about neutral things: 25 kilograms, "
        "#topics, the European Union and Barack Obama. NASA knows. Perhaps Marseille does."
    )
    kept = ("somebody@example.org", "www.example.org", "neutral", "25", "#topics", "European Union",
            "Barack Obama", "NASA", "Marseille")  # fmt: skip
    for seed in range(5):
        for kind, one in texts_of(text, seed=seed).items():
            if "case" not in kind:
                for words in kept:
                    assert words in one.row.inputs["text"], kind


def test_a_text_in_capitals_has_no_names():
    assert said("dropped_letters", "SEVERAL FRIENDS WALKED")


def test_only_kinds_of_the_language():
    german = texts_of("Gestern gingen Freunde spazieren", language="de-AT")
    assert german
    assert all(PERTURBATION_KINDS[kind].supports("de") for kind in german)
    assert not {"contractions", "filler"} & german.keys()
    assert texts_of("Die Bayern gingen", "fairness", language="de") == {}
    terms = {"language": "de", "group_terms": (("Bayern", "Schwaben"),)}
    assert said("group_terms", "Die Bayern gingen", **terms) == "Die Schwaben gingen"
    assert set(ENGLISH_ONLY) == {"en"}
    assert said("contractions", "it is so", language="en-GB") == "it's so"


def test_at_most_so_many_drawn_by_hash():
    chosen = set()
    for number in range(200):
        row = SetRow(f"u{number}", {"text": LONG}, ("neutral",))
        four = texts_of(LONG, row=row, most=4)
        assert len(four) == 4
        chosen |= set(four)
    assert chosen >= set(texts_of(LONG))


def test_what_is_no_text_or_the_answer_stays():
    row = SetRow(
        "u", {"text": "", "image": "x.png", "n": 3, "label": "some words here"}, ("neutral",)
    )
    assert texts_of("", row=row, fields=("text", "n", "label", "none")) == {}


PASSAGE = "It is not the river Thames in London; the museum opened near Paris in 1889, they said."
START = PASSAGE.index("museum")


def passage_row(*gold, question: str = "What opened near that city") -> SetRow:
    return SetRow("q1", {"question": question, "passage": PASSAGE}, gold)


def qa(row: SetRow, family: str = "robustness", **options) -> dict[str, Variant]:
    options = {"fields": ("question", "passage"), "answer_field": "answer",
               "passage_field": "passage", "labels": (), **options}  # fmt: skip
    return texts_of("", family, row=row, **options)


def test_answers_are_found_again_in_the_passage():
    span = {"text": "museum", "start": START, "end": START + 6}
    places = set()
    for seed in range(5):
        for kind, one in qa(passage_row(span, "the museum"), seed=seed).items():
            found, text = one.row.gold
            passage = one.row.inputs["passage"]
            assert passage[found["start"] : found["end"]] == found["text"] == "museum", kind
            assert text == "the museum"
            assert text in passage, kind
            places.add(found["start"])
    assert len(places) > 2


def test_an_answer_that_would_be_cut_drops_the_twin():
    within = {"text": "seu", "start": START + 2, "end": START + 5}  # no whole word: not protected
    assert "upper_case" not in qa(passage_row(within))
    assert "upper_case" not in qa(passage_row("seu"))
    assert "upper_case" in qa(passage_row("museum"))


def test_an_answer_that_never_was_in_the_passage_stays():
    for one in qa(passage_row("a gallery")).values():
        assert one.row.gold == ("a gallery",)


def test_edits():
    source = Source("one two three", [(4, 7)])
    edits = source.select_allowed(
        [Edit(8, 13, "3"), Edit(0, 1, "O"), Edit(0, 3, "1"), Edit(9, 9, ""), Edit(5, 6, "x"),
         Edit(3, 4, "_")]
    )  # fmt: skip
    assert edits == [Edit(0, 1, "O"), Edit(8, 13, "3")]
    assert apply_edits("one two three", edits) == "One two 3"
    assert (move_position(4, edits), move_position(13, edits)) == (4, 9)
    assert measure_distance([Edit(0, 3, "on"), Edit(3, 3, "!?"), Edit(4, 7, "owt")], "one two") == 5
    assert find_protected_spans("To A. To B", ["b"], changeable_words=("a", "b")) == [(9, 10)]


texts = st.lists(
    st.sampled_from(
        ["The", "she", "her", "his", "café", "museum", "museums", "do", "not", "It's", "Paris", "I",
         "am", "people", "Jose", "muslim", "a", "an", "favorite", "17%", "https://a.b/c", "neutral",
         ".", "!", ",", "because", "received", "don't", "und", "日本", "😀"]
    ),
    max_size=25,
).map(" ".join)  # fmt: skip
families = st.sampled_from(["robustness", "fairness"])
whatever = st.text(max_size=60)


@settings(max_examples=60, deadline=None)
@given(texts | whatever, texts, families, st.integers(0, 5))
def test_twins_of_any_text(passage, question, family, seed):
    answer = "museum"
    gold = tuple({"text": answer, "start": m.start(), "end": m.end()}
                 for m in re.finditer(answer, passage))[:2] or (answer,)  # fmt: skip
    row = SetRow("base-1", {"question": question, "passage": passage}, gold, {"tag": ("a",)})
    found = qa(row, family, seed=seed)
    assert found == qa(row, family, seed=seed)
    assert list(qa(row, family, seed=seed, most=2).values()) == list(found.values())[:2]
    for kind, one in found.items():
        new = one.row
        assert dict(new.inputs) != dict(row.inputs)
        assert new.inputs.keys() == row.inputs.keys()
        assert one.distance > 0
        assert new.slices == row.slices
        assert "base-1" not in new.uid
        assert kind not in new.uid
        for old, gold in zip(row.gold, new.gold, strict=True):
            if isinstance(gold, Mapping):
                kept = new.inputs["passage"][gold["start"] : gold["end"]]
                assert kept == gold["text"] == old["text"]
        for name in ("question", "passage"):
            for fixed in ("17%", "https://a.b/c"):
                assert new.inputs[name].count(fixed) == row.inputs[name].count(fixed), kind


def test_ids_are_unique_and_tell_nothing():
    uids = [
        compute_variant_uid(uid, kind, version, seed)
        for uid in ("a", "b")
        for kind in PERTURBATION_KINDS
        for version in (1, 2)
        for seed in (0, 1)
    ]
    assert len(set(uids)) == len(uids)
    assert {len(uid) for uid in uids} == {32}


def operations(work) -> int:
    """How many instructions of Python a call takes."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", ["a", "she and he do not ", "Moon. ", "an Indian ", "e@"])
@pytest.mark.parametrize("family", ["robustness", "fairness"])
def test_a_text_of_twice_the_length_takes_twice_the_work(family, part):
    few, many = (
        operations(partial(texts_of, part * (length // len(part)), family))
        for length in (1500, 3000)
    )
    assert many < 2.5 * few


def test_addresses_are_looked_for_once_a_word():
    """Looked for at each letter, a word of two million would take hours."""
    assert find_protected_spans("a" * 2_000_000, ()) == []


def test_long_edits_are_counted_place_by_place():
    assert measure_distance([Edit(0, 100, "B" * 99 + "aa")], "b" * 99 + "a") == 100


def test_a_row_beyond_all_measure_has_no_twins():
    assert texts_of("They do not know. " * 2000, most=1)
    assert not texts_of("They do not know. " * 30_000, most=1)
    many = SetRow("u1", {"text": "a word " * 3000}, tuple("word" * 100 for _ in range(9)))
    assert not texts_of("", row=many, passage_field="text")


def test_a_phrase_within_a_text_without_spaces_stays():
    assert find_protected_spans("我住在北京市朝阳区", ["北京"], changeable_words=None) == [(3, 5)]
    assert find_protected_spans("Parisian Paris", ["paris"], changeable_words=None) == [(9, 14)]


@pytest.mark.parametrize("kind", ["swapped_letters", "dropped_letters", "doubled_letters"])
def test_no_mark_is_left_without_its_letter(kind):
    text = "प्रधानमंत्री विश्वविद्यालय हिन्दुस्तान कार्यक्रमों महत्वपूर्ण"
    new = said(kind, text)
    assert new is None or not any(
        is_mark(letter) and (at == 0 or new[at - 1] == " ") for at, letter in enumerate(new)
    )
    letters = Source(text, ()).find_inner_letters()
    assert letters
    assert not any(is_mark(text[at + 1 : at + 2]) for at in letters)


def test_a_final_stop_of_another_script_goes():
    assert said("no_final_punctuation", "我住在北京。") == "我住在北京"
    assert said("no_final_punctuation", "यह अच्छा है।") == "यह अच्छा है"


def test_owners_terms_are_found_without_spaces():
    pattern = make_phrase_pattern(frozenset({"男人", "old man", "กา"}))
    found = [match[0] for match in pattern.finditer("这个男人和old  man, oldman, กาง กาํ")]
    assert found == ["男人", "old  man", "กา"]
