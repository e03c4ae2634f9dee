"""The verdict on an example: SQuAD's comparison, the rules, ensembles and the author's word."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.verdict.outcome import (
    Ensemble,
    Outcome,
    TargetVerdict,
    compute_squad_f1,
    is_exact_match,
    judge_outputs,
    normalise_squad_text,
    resolve_outcome,
)
from tasks.config.verdicts import AskUser, Contains, ExactMatch, StringF1

LABEL = ExactMatch(type="exact_match", fields=("label",))
ASK = AskUser(type="ask_user")
F1 = StringF1(type="string_f1", field="answer", threshold=0.4)
F1_ASKING = StringF1(type="string_f1", field="answer", threshold=0.4, ask_between=(0.3, 0.5))
ENSEMBLES: Sequence[Ensemble] = get_args(Ensemble)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Eiffel Tower", "eiffel tower"),
        ("an  apple, a\tday", "apple day"),
        ("U.S.", "us"),
        ("don't", "dont"),
        ("well-known", "wellknown"),  # punctuation vanishes, it does not become a space
        ("A.", ""),
        ("theatre", "theatre"),
        ("a the an", ""),
        ("Ünïcode “quoted”, Paris’", "ünïcode quoted paris"),  # as MLQA: punctuation of all scripts
        ("", ""),
        (" ?! ", ""),
    ],
)
def test_normalisation_is_squads(text: str, normal: str) -> None:
    assert normalise_squad_text(text) == normal


@pytest.mark.parametrize(
    ("prediction", "gold", "f1", "em"),
    [
        ("Denver Broncos", "Denver Broncos", 1.0, True),
        ("the Denver Broncos.", "denver broncos", 1.0, True),
        ("Broncos", "Denver Broncos", 2 / 3, False),
        ("Carolina Panthers", "Denver Broncos", 0.0, False),
        ("Broncos Denver", "Denver Broncos", 1.0, False),  # a bag of words has no order
        ("Santa Clara, California", "Levi's Stadium in Santa Clara", 0.5, False),
        ("to to to", "to", 0.5, False),  # repeated words count as often as in both
        ("1840 to 1850", "from 1840 to 1850", 6 / 7, False),
        ("", "", 1.0, True),
        ("the", "...", 1.0, True),
        ("", "Denver", 0.0, False),
        ("Denver", "the", 0.0, False),
    ],
)
def test_f1_and_em(prediction: str, gold: str, f1: float, em: bool) -> None:
    assert compute_squad_f1(prediction, gold) == pytest.approx(f1, abs=1e-15)
    assert is_exact_match(prediction, gold) is em


ENGLISH = st.text(st.sampled_from("aThe nd12.,-$'’“—…Ünïa\n"), max_size=30)


@given(ENGLISH, ENGLISH)
def test_english_scores_are_those_of_mlqas_evaluation(one, other):
    assert compute_squad_f1(one, other) == pytest.approx(mlqa_f1(one, other, "en")) or not (
        normalise_squad_text(one)
        or normalise_squad_text(other)  # nothing against nothing is right here
    )
    mlqa = pytest.importorskip("lm_eval.tasks.mlqa.utils")  # `./test --quick` has no models
    assert is_exact_match(one, other) == mlqa.exact_match_score(one, other, "en")


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("我住在北京市。", "北京市", "zh"),
        ("1949年10月1日，北京", "北京 1949 年", "zh"),
        ("भारत की राजधानी नई दिल्ली है।", "नई दिल्ली", "hi"),
        ("Hà Nội, Việt Nam", "thành phố Hà Nội", "vi"),
    ],
)
def test_scores_in_other_languages_are_those_of_mlqas_evaluation(one, other, language):
    assert compute_squad_f1(one, other, language) == pytest.approx(mlqa_f1(one, other, language))


def mlqa_f1(one, other, language):
    """As lm-evaluation-harness has it, from MLQA's own script."""
    mlqa = pytest.importorskip("lm_eval.tasks.mlqa.utils")
    return mlqa.f1_score(one, other, language)


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ("cafe\u0301", "café"),
        ("Paris’", "Paris"),
        ("٣", "3"),
        ("ＮＨＫ。", "NHK"),
        ("ΟΔΟΣ", "οδος"),
        ("Ha\u0300 No\u0323\u0302i", "Hà Nội"),
    ],
)
def test_one_answer_in_two_forms_is_right(said, true):
    assert is_exact_match(said, true)
    assert compute_squad_f1(said, true) == 1


def test_a_korean_answer_with_a_particle_is_partly_right():
    assert compute_squad_f1("서울입니다", "서울") == pytest.approx(4 / 7)


def test_the_verdict_does_not_depend_on_the_form():
    expected, label = {"label": "café", "tags": ["é", "b"]}, "cafe\u0301"
    assert judge_outputs(expected, [{"label": label}], LABEL, "all").fooled is False
    both = ExactMatch(type="exact_match", fields=("tags",))
    assert judge_outputs(expected, [{"tags": ["b", "e\u0301"]}], both, "all").fooled is False


def test_contains_takes_what_stands_within_scripts_without_spaces():
    rule = Contains(type="contains", field="answer")
    said = [{"answer": "我住在北京市。"}]
    assert judge_outputs({"answer": "北京"}, said, rule, "all").fooled is False
    assert judge_outputs({"answer": "上海"}, said, rule, "all").fooled is True
    turkish = [{"answer": "ISPARTA güzel"}]
    assert judge_outputs({"answer": "ısparta"}, turkish, rule, "all").fooled is True
    assert judge_outputs({"answer": "ısparta"}, turkish, rule, "all", "tr").fooled is False


PHRASES = st.lists(st.sampled_from(["the", "a", "Red", "red.", "fox", "fox-hole", "7", "é", "!"]))


@given(PHRASES.map(" ".join), PHRASES.map(" ".join))
def test_f1_is_symmetric_and_one_for_equal_bags_alone(one: str, other: str) -> None:
    f1 = compute_squad_f1(one, other)
    assert f1 == compute_squad_f1(other, one)
    assert 0 <= f1 <= 1
    bags = [Counter(normalise_squad_text(text).split()) for text in (one, other)]
    assert (f1 == 1) == (bags[0] == bags[1])
    assert (f1 == 0) == (not bags[0] & bags[1] and bags[0] != bags[1])
    assert f1 == 1 or not is_exact_match(one, other)


@given(PHRASES.map(" ".join))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise_squad_text(normalise_squad_text(text)) == normalise_squad_text(text)


def words(shared: int, mine: int, theirs: int) -> tuple[str, str]:
    both = [f"w{i}" for i in range(shared)]
    ours = both + [f"m{i}" for i in range(mine - shared)]
    return " ".join(ours), " ".join(both + [f"t{i}" for i in range(theirs - shared)])


@pytest.mark.parametrize(
    ("shared", "mine", "theirs", "fooled"),
    [(2, 5, 5, False), (1, 2, 3, False), (4, 10, 11, True), (3, 10, 4, False), (0, 1, 1, True)],
)
def test_fooled_is_strictly_below_the_threshold(
    shared: int, mine: int, theirs: int, fooled: bool
) -> None:
    gold, said = words(shared, mine, theirs)
    verdict = judge_outputs({"answer": gold}, [{"answer": said}], F1, "all")
    assert verdict.fooled is fooled
    assert verdict.target_verdicts[0].score == 2 * shared / (mine + theirs)


@pytest.mark.parametrize(
    ("shared", "mine", "theirs", "fooled"),
    [
        (3, 10, 11, True),  # 6/21, just below 0.3
        (3, 10, 10, None),  # 0.3
        (2, 5, 5, None),  # 0.4
        (1, 2, 2, None),  # 0.5
        (11, 21, 22, False),  # 22/43, just above 0.5
    ],
)
def test_near_the_threshold_the_author_is_asked(
    shared: int, mine: int, theirs: int, fooled: bool | None
) -> None:
    gold, said = words(shared, mine, theirs)
    outcome = judge_outputs({"answer": gold}, [{"answer": said}], F1_ASKING, "all")
    assert outcome.fooled is fooled
    assert outcome.target_verdicts[0].score == 2 * shared / (mine + theirs)


def test_a_span_is_compared_by_its_text() -> None:
    expected = {"question": "Who?", "answer": {"text": "the fox", "start": 4, "end": 11}}
    output = {"answer": "Fox!", "start": 8, "end": 12}
    assert judge_outputs(expected, [output], F1, "all").target_verdicts == (
        TargetVerdict(False, 1.0),
    )
    exact = ExactMatch(type="exact_match", fields=("answer",))
    assert judge_outputs(expected, [{"answer": "the fox"}], exact, "all").fooled is False
    assert judge_outputs(expected, [output], exact, "all").fooled is True


@pytest.mark.parametrize(
    ("expected", "output", "fooled"),
    [
        ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, False),
        ({"a": "x", "b": "y"}, {"a": "x", "b": "z"}, True),
        ({"a": "x", "b": "y"}, {"a": "z", "b": "y"}, True),
        ({"a": ["x", "y"], "b": 1}, {"a": ["y", "x"], "b": 1}, False),
        ({"a": ["x", "x"], "b": 1}, {"a": ["x"], "b": 1}, True),
        ({"a": [{"text": "x", "start": 0, "end": 1}], "b": 1}, {"a": [], "b": 1}, True),
        (
            {"a": [{"text": "x", "start": 0, "end": 1}], "b": 1},
            {"a": [{"end": 1, "start": 0, "text": "x"}], "b": 1},
            False,
        ),
    ],
)
def test_exact_match_needs_every_field(
    expected: dict[str, Any], output: dict[str, Any], fooled: bool
) -> None:
    rule = ExactMatch(type="exact_match", fields=("a", "b"))
    outcome = judge_outputs(expected, [output], rule, "majority")
    assert outcome == Outcome(
        fooled, (TargetVerdict(fooled),), "fooled" if fooled else "not_fooled"
    )


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_without_a_model_there_is_no_verdict(ensemble: Ensemble) -> None:
    assert judge_outputs({"label": "x"}, [], LABEL, ensemble) == Outcome(None, (), "no_model")


def test_who_marks_a_wrong_answer_is_not_asked() -> None:
    marked = AskUser(type="ask_user", marked_is_wrong=True)
    assert judge_outputs({}, [{"reply": "x"}], marked, "all").status == "fooled"


def test_ask_user_leaves_it_open_until_the_author_speaks_once() -> None:
    outcome = judge_outputs({"question": "?"}, [{"answer": "x"}], ASK, "majority")
    assert outcome == Outcome(None, (TargetVerdict(None),), "undecided")
    assert resolve_outcome(outcome, True) == Outcome(False, (TargetVerdict(False),), "not_fooled")
    fooled = resolve_outcome(outcome, False)
    assert fooled == Outcome(True, (TargetVerdict(True),), "fooled")
    for decided in (fooled, resolve_outcome(outcome, True), judge_outputs({}, [], ASK, "all")):
        with pytest.raises(ValueError, match="undecided"):
            resolve_outcome(decided, True)


@pytest.mark.parametrize(
    ("expected", "output", "words_"),
    [
        ({}, {"label": "x"}, "The example lacks the field 'label'"),
        ({"label": "x"}, {"lable": "x"}, "The target's output lacks the field 'label'"),
    ],
)
def test_a_missing_field_is_named(
    expected: dict[str, Any], output: dict[str, Any], words_: str
) -> None:
    with pytest.raises(ValueError, match=words_):
        judge_outputs(expected, [output], LABEL, "all")


def judged(answers: Sequence[bool | None], ensemble: Ensemble) -> Outcome:
    """The outcome of targets that are fooled, right or undecided, in a rule that can be all."""
    says = {True: "zzz", False: "w0", None: "w0 t0 t1"}  # F1 of 0, 1 and 0.5
    outputs = [{"answer": says[answer]} for answer in answers]
    outcome = judge_outputs({"answer": "w0"}, outputs, F1_ASKING, ensemble)
    assert [verdict.fooled for verdict in outcome.target_verdicts] == list(answers)
    return outcome


@pytest.mark.parametrize(
    ("answers", "everyone", "majority", "anyone"),
    [
        ((True,), True, True, True),
        ((False,), False, False, False),
        ((None,), None, None, None),
        ((True, False), False, False, True),  # one of two is no majority
        ((True, None), None, None, True),
        ((False, None), False, False, None),
        ((True, True, False), False, True, True),
        ((True, False, False), False, False, True),
        ((True, True, None), None, True, True),
        ((True, False, None), False, None, True),
        ((False, False, None), False, False, None),
        ((True, None, None), None, None, True),
    ],
)
def test_ensembles(
    answers: tuple[bool | None, ...],
    everyone: bool | None,
    majority: bool | None,
    anyone: bool | None,
) -> None:
    found = [judged(answers, ensemble).fooled for ensemble in ("all", "majority", "any")]
    assert found == [everyone, majority, anyone]


ANSWERS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=6)


@given(ANSWERS, st.sampled_from(ENSEMBLES))
def test_decided_exactly_when_the_undecided_cannot_change_it(
    answers: list[bool | None], ensemble: Ensemble
) -> None:
    choices = [(True, False) if answer is None else (answer,) for answer in answers]
    endings = {judged(ending, ensemble).fooled for ending in product(*choices)}
    outcome = judged(answers, ensemble)
    assert outcome.fooled == (endings.pop() if len(endings) == 1 else None)
    if outcome.status == "undecided":
        for right in (True, False):
            told = tuple(not right if answer is None else answer for answer in answers)
            assert (
                resolve_outcome(outcome, right).fooled is judged(told, ensemble).fooled is not right
            )


@given(ANSWERS, st.sampled_from(ENSEMBLES), st.randoms())
def test_the_order_of_targets_does_not_matter(
    answers: list[bool | None], ensemble: Ensemble, random: Any
) -> None:
    shuffled = list(answers)
    random.shuffle(shuffled)
    assert judged(shuffled, ensemble).status == judged(answers, ensemble).status


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_fooling_one_more_never_turns_fooled_into_not_fooled(
    answers: list[bool], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(answers) - 1))
    more = [*answers[:index], True, *answers[index + 1 :]]
    verdicts = [judged(answers, ensemble).fooled for ensemble in ("all", "majority", "any")]
    assert verdicts == sorted(verdicts, key=bool)  # all is the hardest, any the easiest
    for ensemble in ENSEMBLES:
        if judged(answers, ensemble).fooled:
            assert judged(more, ensemble).fooled


def test_a_chinese_character_is_a_word():
    assert compute_squad_f1("在老磨坊。", "老磨坊") == 2 * 3 / (4 + 3)
    assert is_exact_match("老磨坊。", "老磨坊")
