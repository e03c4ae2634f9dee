"""The kinds of adversaries: what they propose, and what they leave alone."""

from random import Random

import pytest

from dynabench.adversaries.kinds.base import (
    KINDS,
    AdversaryKind,
    ProbeAnswer,
    SettingError,
    list_kinds,
)
from dynabench.adversaries.kinds.edits import (
    KEPT_WORDS,
    edit_letters,
    find_similar_words,
    split_text,
)
from dynabench.adversaries.kinds.rules import MAX_CASES, fill_slots
from dynabench.adversaries.kinds.search import SearchLimits, search_sentence

LABELS = ("good", "bad")
RIGHT, WRONG = ProbeAnswer(False, 0.9), ProbeAnswer(True, 0.1)
TEXT = "The patient waiter brought us a wonderful supper"


def plan(kind, **chosen):
    settings = {one.name: one.default for one in KINDS[kind].settings} | chosen
    return list(KINDS[kind].plan_attacks(settings, LABELS, Random(0)))


def follow(search, answer):
    """Return the probes of a search that `answer` decides."""
    probes, probe = [], next(search, None)
    while probe is not None:
        probes.append(probe)
        try:
            probe = search.send(answer(probe))
        except StopIteration:
            break
    return probes


def test_kinds_are_found_and_sorted():
    assert [kind.name for kind in list_kinds()][:2] == ["rules", "search"]


def test_a_kind_without_its_parts_is_refused():
    with pytest.raises(TypeError, match="summary, place, settings, plan_attacks"):

        class Half(AdversaryKind, name="half"):
            title = "Half"

    assert "half" not in KINDS


def test_a_name_is_used_once():
    with pytest.raises(TypeError):

        class Again(KINDS["rules"].__class__, name="rules"):
            pass


def test_a_mistyped_word_keeps_its_ends():
    for word in edit_letters("wonderful", Random(0), 99):
        assert (word[0], word[-1]) == ("w", "l")
        assert abs(len(word) - len("wonderful")) <= 1
        assert word != "wonderful"
    assert len(edit_letters("wonderful", Random(0), 3)) == 3
    assert edit_letters("bad", Random(0), 9) == []


def test_similar_words_are_written_like_the_word_and_fit_its_article():
    def similar(text, place, *groups):
        return find_similar_words(text, split_text(text)[place], groups)

    assert similar("Good food", 0) == ["Fine", "Decent"]
    assert similar("GOOD food", 0) == ["FINE", "DECENT"]
    assert similar("a good day", 1, ("good", "excellent", "great")) == ["great", "fine", "decent"]
    assert similar("no such word", 2) == []


def test_a_search_starts_with_the_words_that_matter():
    def answer(probe):
        return ProbeAnswer(False, 0.2 if "patient" not in probe.text else 0.9)

    limits = SearchLimits(0.01, 4, 1, has_similar_words=False)
    probes = follow(search_sentence(TEXT, limits, Random(0)), answer)
    changed = [probe for probe in probes if probe.is_offered]
    assert len(changed) == 4
    assert all(probe.text.endswith("waiter brought us a wonderful supper") for probe in changed)


def test_a_search_ends_at_the_first_find():
    limits = SearchLimits(0.5, 4, 1, has_similar_words=True)
    search = search_sentence(TEXT, limits, Random(0))
    probes = follow(search, lambda probe: WRONG if probe.is_offered else RIGHT)
    assert [probe.is_offered for probe in probes].count(True) == 1
    assert probes[-1].is_offered


def test_a_sentence_that_fools_as_it_is_stays_as_it_is():
    probes = follow(
        search_sentence(TEXT, SearchLimits(0.5, 4, 1, True), Random(0)), lambda one: WRONG
    )
    assert [(probe.text, probe.is_offered) for probe in probes] == [(TEXT, False)]


def test_a_search_changes_at_most_its_share_of_words():
    limits = SearchLimits(0.25, 3, 2, has_similar_words=True)
    words = TEXT.split()
    chances = iter(range(1000, 0, -1))
    probes = follow(
        search_sentence(TEXT, limits, Random(0)),
        lambda one: ProbeAnswer(False, next(chances) / 1000),
    )
    for probe in probes:
        if probe.is_offered:
            changed = sum(a != b for a, b in zip(words, probe.text.split(), strict=True))
            assert 1 <= changed <= 2


def test_a_wider_beam_asks_more_and_repeats_itself_in_the_same_way():
    def texts(beam):
        search = search_sentence(TEXT, SearchLimits(0.4, 3, beam, True), Random(5))
        return [
            probe.text for probe in follow(search, lambda one: ProbeAnswer(False, len(one.text)))
        ]

    assert len(texts(3)) > len(texts(1))
    assert texts(3) == texts(3)


def test_negations_are_never_changed():
    text = "They never listened and could not cook without smoke"
    probes = follow(
        search_sentence(text, SearchLimits(1.0, 5, 1, True), Random(0)), lambda one: RIGHT
    )
    kept = {word for word in text.split() if word in KEPT_WORDS}
    assert kept == {"never", "not", "without"}
    assert all(kept <= {*probe.text.split()} for probe in probes)


def test_a_text_without_words_is_not_searched():
    probes = follow(
        search_sentence("12 !", SearchLimits(1.0, 5, 1, True), Random(0)), lambda one: RIGHT
    )
    assert len(probes) == 1


def test_a_template_makes_every_text_once():
    slots = "who = Ana, Bo\nhow = well, badly"
    (attack,) = plan("rules", templates="bad | {who} cooks {how}. {who}!", slots=slots)
    texts = [probe.text for probe in follow(attack.begin({}), lambda one: RIGHT)]
    assert texts == [f"{a} cooks {b}. {a}!" for a in ("Ana", "Bo") for b in ("well", "badly")]
    assert attack.label == "bad"


def test_a_template_can_name_fields_of_the_context():
    (attack,) = plan("rules", templates="bad | It is false that {premise}")
    probes = follow(attack.begin({"premise": "it rained."}), lambda one: RIGHT)
    assert [probe.text for probe in probes] == ["It is false that it rained."]


def test_a_large_template_is_sampled():
    values = ", ".join(map(str, range(30)))
    (attack,) = plan("rules", templates="bad | {a} and {b}", slots=f"a = {values}\nb = {values}")
    texts = [probe.text for probe in follow(attack.begin({}), lambda one: RIGHT)]
    assert len({*texts}) == MAX_CASES
    assert texts == [probe.text for probe in follow(attack.begin({}), lambda one: RIGHT)]


def test_a_slot_without_values_stays():
    assert list(fill_slots("{a} {b}", {"a": ["x"]})) == ["x {b}"]


@pytest.mark.parametrize("right", [True, False])
def test_variants_are_asked_only_of_what_the_model_gets_right(right):
    (attack,) = plan("rules", invariance="good | Ana sings. | Ana -> Mei, Olu")
    probes = follow(attack.begin({}), lambda one: RIGHT if right else WRONG)
    variants = [probe.text for probe in probes if probe.is_offered]
    assert variants == (["Mei sings.", "Olu sings."] if right else [])


def test_a_direction_adds_what_speaks_for_the_label():
    (attack,) = plan("rules", direction="good | Ana sings. | We clapped.")
    probes = follow(attack.begin({}), lambda one: RIGHT)
    assert [probe.text for probe in probes] == ["Ana sings.", "Ana sings. We clapped."]


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        ("rules", "templates", "no label"),
        ("rules", "templates", "ugly | {x}"),
        ("rules", "slots", "x:"),
        ("rules", "slots", "x ="),
        ("rules", "invariance", "good | Ana sings. | Ana"),
        ("rules", "invariance", "good | Ana sings. | Bo -> Mei"),
        ("rules", "invariance", "good | Ana sings."),
        ("rules", "direction", "good | Ana sings."),
        ("search", "sentences", "good"),
        ("search", "sentences", "\n".join(["good | Fine."] * 2001)),
        ("search", "own_words", "one"),
    ],
)
def test_a_wrong_line_is_refused(kind, setting, value):
    with pytest.raises(SettingError) as refusal:
        plan(kind, **{setting: value})
    assert refusal.value.setting == setting


def test_a_template_that_makes_too_many_texts_is_refused():
    slots = "\n".join(f"{letter} = {', '.join(map(str, range(50)))}" for letter in "abc")
    with pytest.raises(SettingError) as refusal:
        plan("rules", templates="bad | {a}{b}{c}", slots=slots)
    assert refusal.value.setting == "templates"


def test_something_must_be_asked():
    for kind, setting in (("rules", "templates"), ("search", "sentences")):
        with pytest.raises(SettingError) as refusal:
            plan(kind)
        assert refusal.value.setting == setting
