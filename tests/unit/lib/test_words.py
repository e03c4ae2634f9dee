"""Equality, words and containment in scripts with and without spaces, marks and capitals."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.words import (
    MARKS,
    MAX_MARKS,
    collapse_spaces,
    compose,
    compose_start,
    compose_value,
    contains_phrase,
    find_spans,
    fold,
    has_word_boundaries,
    is_mark,
    split_answer_words,
    split_runs,
    split_words,
    strip_punctuation,
)

STORABLE = st.characters(exclude_categories=["Cs"])
SCRIPTS = (
    "aZé12_'-. ," "ßſıİ" "αΣςώ" "Яё" "שלוֹם" "مُحمدـ١" "हिन्दी" "กินข้าว๑" "ພາສາ" "ខ្មែរ" "မြန်မာ"
    "北京朝阳" "東京タワーガ" "서울입니다" "\u0301\u0307\u0323\u3099" "\u200d\ufeff\u00a0"
    "ＡｂＣ３ｶﾞ" "ﬁ½²"
)  # fmt: skip
texts = st.text(st.one_of(st.sampled_from(SCRIPTS), STORABLE), max_size=12)
languages = st.sampled_from(["", "en", "tr", "az-Latn", "zh"])


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    ("text", "wanted", "language", "is_held"),
    [
        ("It was  PARIS, in 1889.", "paris, in", "", True),
        ("Der Betrag ist 3120 Euro.", "12", "", False),
        ("Parisian", "Paris", "", False),
        ("Paris's", "Paris", "", True),
        ("x(12)", "(12)", "", False),  # a sign is parted from a letter by a space
        ("a_12", "12", "", False),
        ("anything", "", "", True),
        ("", "anything", "", False),
        # Chinese and Japanese
        ("我住在北京市朝阳区。", "北京", "", True),
        ("我住在北 京市。", "北京", "", True),
        ("我住在上海市。", "北京", "", False),
        ("答えは東京です。", "東京", "", True),
        ("ﾄｳｷｮｳです", "トウキョウ", "", True),
        ("３１２人", "12", "", False),
        ("１２人", "12", "", True),
        ("3.12", "12", "", False),
        ("3.12", "3", "", False),
        ("It is 3.12.", "3.12", "", True),
        ("In 12. Then 13.", "12", "", True),
        ("1,912 people", "912", "", False),
        ("1,912 people", "1", "", False),
        ("1,912 people", "1,912", "", True),
        ("1,2 and 3", "2", "", True),
        ("It is -12 degrees", "12", "", False),
        ("−12", "12", "", False),
        ("(-12)", "-12", "", True),
        ("x=-3", "3", "", False),
        ("COVID-19", "19", "", True),
        ("pages 1-72", "72", "", True),
        ("12 - 3", "3", "", True),
        ("- 4", "4", "", True),
        ("in 1990,1991", "1990", "", True),
        ("a12.b", "b", "", True),
        # Signs of keyboards and of typographers
        ("I don’t", "don't", "", True),
        ("He said „Paris“", '"paris"', "", True),
        ("twenty‑one", "twenty-one", "", True),
        ("תל־אביב", "תל-אביב", "", True),
        # Thai, Lao, Khmer, Burmese
        ("เมืองหลวงคือกรุงเทพมหานคร", "กรุงเทพ", "", True),
        ("กินข้าว", "ก", "", False),  # the vowel above belongs to the letter
        ("๑๒ บาท", "12", "", True),
        ("ນະຄອນຫຼວງວຽງຈັນ", "ວຽງຈັນ", "", True),
        ("រាជធានីភ្នំពេញ", "ភ្នំពេញ", "", True),
        ("မြို့တော်နေပြည်တော်", "နေပြည်တော်", "", True),
        # Korean: a boundary before, particles and “to be” after
        ("수도는 서울입니다.", "서울", "", True),
        ("우리는 서울에서만 만났다", "서울", "", True),
        ("그것은 부산이었다", "부산", "", True),
        ("북서울", "서울", "", False),
        ("서울대학교에 다닌다", "서울", "", False),
        ("TV는 12세부터", "12", "", True),
        ("답은 Seoul이다", "Seoul", "", True),
        ("서울(수도)이다", "(수도)", "", True),
        # Hindi, Arabic, Hebrew
        ("राम ने रामायण पढ़ी", "रामायण", "", True),
        ("रामायण", "राम", "", False),
        ("مُحَمَّد هنا", "محمد", "", True),
        ("وبالقاهرة", "القاهرة", "", True),
        ("محمدية", "محمد", "", False),
        ("הוא גר בירושלים", "ירושלים", "", True),
        ("וכשבירושלים", "ירושלים", "", True),
        ("שולחן", "חן", "", False),
        ("שָׁלוֹם לכם", "שלום", "", True),
        # Greek, Turkish, Vietnamese, Cyrillic
        ("Η ΟΔΟΣ ΕΙΝΑΙ", "οδος", "", True),
        ("ΣΤΗΝ ΑΘΗΝΑ", "Αθήνα", "", True),
        ("ΤΟ ΠΡΟΪΟΝ", "προϊόν", "", True),
        ("προιόν", "προϊόν", "", False),
        ("İSTANBUL güzel", "istanbul", "", True),
        ("ISPARTA güzel", "ısparta", "", False),
        ("ISPARTA güzel", "ısparta", "tr", True),
        ("ISPARTA güzel", "isparta", "tr", False),
        (nfd("Thủ đô là Hà Nội."), "hà nội", "", True),
        ("Hà Nội", nfd("Hà"), "", True),
        ("Hà", "Ha", "", False),
        ("МОСКВА, лето", "москва", "", True),
    ],
)
def test_a_text_holds_another_as_words_of_its_own(text, wanted, language, is_held):
    assert contains_phrase(text, wanted, language=language) is is_held
    assert contains_phrase(nfd(text), nfd(wanted), language=language) is is_held


@given(texts, st.sampled_from(["", " ", "\n", ". ", "，", "\u00a0"]), texts, languages)
def test_what_stands_between_spaces_is_held(before, gap, wanted, language):
    wanted = collapse_spaces(wanted)
    if not wanted or is_mark(wanted[0]):  # a mark would join the space before it
        return
    text = f"{before}{gap} {wanted} {gap}{before}"
    assert contains_phrase(text, wanted, language=language)
    assert contains_phrase(wanted, wanted, language=language)


@given(st.text(st.sampled_from("很大北京กข東ア"), min_size=1), texts, texts)
def test_scripts_without_spaces_have_no_boundary(wanted, before, after):
    mark = after[:1]
    assert contains_phrase(f"{before}{wanted}", wanted)
    if not mark or not is_mark(unicodedata.normalize("NFKD", mark)[0]):
        assert contains_phrase(f"{wanted}{'' if _is_bound(after) else ' '}{after}", wanted)


def _is_bound(after: str) -> bool:
    """Whether what follows may change the letters before it."""
    return not any(is_mark(one) for one in unicodedata.normalize("NFKD", after))


@given(st.integers(0, 10**6), st.integers(0, 9))
def test_a_number_is_not_in_a_longer_one(number, digit):
    assert not contains_phrase(f"{digit}{number}0 Euro", str(number))
    assert contains_phrase(f"{number} Euro", str(number))


@given(texts, languages, st.booleans(), st.booleans())
def test_folding_again_changes_nothing_and_no_form_matters(text, language, compatible, points):
    how = {"language": language, "compatible": compatible, "points": points}
    once = fold(text, **how)
    assert fold(once, **how) == once == compose(once)
    assert fold(nfd(text), **how) == fold(compose(text), **how) == once


def test_every_character_is_folded_once_for_all():
    codes = (*range(0xD800), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20))
    once = fold("x ".join(map(chr, codes)), compatible=True)
    assert fold(once, compatible=True) == once


@given(st.text(st.characters(max_codepoint=127)))
def test_folding_ascii_is_lower_case(text):
    lower = text.replace("\r\n", "\n").replace("\r", "\n").lower()
    assert fold(text) == fold(text, compatible=True) == lower


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mills are 很大 here", ["Mills", "are", "很", "大", "here"]),
        ("กิน", ["กิ", "น"]),
        ("서울 시", ["서", "울", "시"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("it's e\u0301te\u0301", ["it's", "e\u0301te\u0301"]),
    ],
)
def test_words_stand_between_spaces(text, words):
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("हिन्दी में, है।", ["हिन्दी", "में", "है"]),
        ("שָׁלוֹם_x", ["שָׁלוֹם", "x"]),
        ("東京tower2", ["東", "京", "tower2"]),
        ("e\u0301te\u0301!", ["e\u0301te\u0301"]),
        ("...", []),
    ],
)
def test_runs_keep_marks_with_their_letters(text, runs):
    assert split_runs(text) == runs


@given(st.text(st.characters(max_codepoint=127)))
def test_runs_of_english_are_those_of_rouge_score(text):
    rouge = pytest.importorskip("rouge_score.tokenizers")  # `./test --quick` has no models
    assert split_runs(fold(text)) == rouge.DefaultTokenizer(use_stemmer=False).tokenize(text)


@given(texts)
def test_no_run_or_word_begins_with_a_mark_that_had_a_letter(text):
    plain = compose(f"x{text}")
    for pieces in (split_runs(plain), split_words(plain)):
        tailless = [piece for piece in pieces if is_mark(piece[0])]
        assert all(f" {piece}" in f" {plain}" for piece in tailless)


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("The  U.S. Army!", "us army", ""),
        ("Paris’", "Paris", ""),
        ("在北京。", "在 北京", ""),
        ("ＮＨＫ", "nhk", ""),
        ("٣", "3", ""),
        ("مُحَمَّد؟", "محمد", ""),
        ("ΟΔΟΣ", "οδος", ""),
        ("IŞIK", "ışık", "tr"),
        (nfd("Hà Nội"), "hà nội", ""),
        ("가나 다", "가 나다", ""),
    ],
)
def test_answers_that_say_the_same_have_the_same_words(one, other, language):
    assert split_answer_words(one, language=language) == split_answer_words(
        other, language=language
    )


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [("sınır", "sinir", ""), ("IŞIK", "ışık", ""), ("ha", "hà", ""), ("हिन्दी", "हन्दी", "")],
)
def test_answers_of_other_letters_have_other_words(one, other, language):
    assert split_answer_words(one, language=language) != split_answer_words(
        other, language=language
    )


def test_an_article_with_a_mark_is_none():
    assert split_answer_words("a\u0331 b") == ["a\u0331", "b"]


def test_signs_become_what_is_asked():
    assert strip_punctuation("3.5—“x”", replacement=" ", signs="") == "3.5  x "


def test_line_ends_become_lf():
    assert compose("a\r\nb\rc\r\r\n\n") == "a\nb\nc\n\n\n"
    assert compose("a\u2028b\x85c") == "a\u2028b\x85c"  # no line ends of a file


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_stretches_keep_their_place_behind_line_ends(line_end):
    passage = nfd(f"Zoë{line_end}{line_end}lives{line_end}in Łódź")
    for words in ("lives", f"lives{line_end}in", f"{line_end}in", nfd("Łódź")):
        start = passage.index(words)
        (moved,) = compose_value(
            [{"text": words, "start": start, "end": start + len(words)}], [passage]
        )
        assert compose(passage)[moved["start"] : moved["end"]] == moved["text"]
        assert moved["text"] == compose(words)


def test_a_stretch_that_begins_within_a_line_end_begins_with_it():
    assert compose_start("\nb", 2, ["a\r\nb"]) == compose_start("\r\nb", 1, ["a\r\nb"]) == 1


def test_stretches_keep_their_place():
    passage = nfd("Zoë lives in Łódź today")
    start = passage.index(nfd("Łódź"))
    mark = {"text": nfd("Łódź"), "start": start, "end": start + len(nfd("Łódź")), "tag": "place"}
    (moved,) = compose_value([mark], [passage])
    assert compose(passage)[moved["start"] : moved["end"]] == moved["text"] == compose("Łódź")
    assert moved["tag"] == "place"
    assert compose_value(mark, ["elsewhere"])["start"] == start
    assert compose_start("x", True, ["x"]) is compose_start("x", -1, ["x"]) is None
    assert compose_value({nfd("é"): (1, None)}) == {nfd("é"): [1, None]}


def test_a_phrase_is_found_where_it_stands_alone():
    assert [*find_spans("aaa AA ba a a", "aa")] == [(4, 6)]
    assert [*find_spans("ba a a", "a a")] == [(3, 6)]
    assert [*find_spans("非常好，好", "好")] == [(2, 3), (4, 5)]
    assert [*find_spans("x", "")] == []


def test_a_stretch_that_begins_with_a_mark_is_torn_off():
    assert not has_word_boundaries("e\u0301 x", 1, 2)
    assert has_word_boundaries("\u0301 x", 0, 1)
    assert is_mark(MARKS[0])
    assert not is_mark("")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a" + "\u0301\u0316" * 20_000, "\u0316"),
        ("서울" + "이나" * 20_000 + "x", "서울"),
        ("\u05d1" * 50_000, "\u05d1\u05d1"),
        ("a" * 50_000, "a"),
    ],
)
def test_no_text_takes_long(text, wanted):
    began = time.process_time()
    contains_phrase(text, wanted)
    compose(text)
    assert time.process_time() - began < 2


def test_marks_beyond_the_most_stay_as_they_are():
    marks = "\u0301" * (MAX_MARKS + 2)
    assert compose(f"e{marks} e\u0301") == f"\u00e9{marks[1:]} \u00e9"
