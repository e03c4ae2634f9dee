"""Names: which characters they hold, and which look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.names import UnfitName, build_skeleton, clean_name, remove_invisible_characters

LOOK_ALIKE = [
    ("раypal", "paypal"),  # Cyrillic er and a
    ("ΒΕRΤ", "BERT"),  # Greek
    ("ｐａｙｐａｌ", "paypal"),  # full width
    ("𝐛𝐞𝐫𝐭", "bert"),  # mathematical letters
    ("name\u200bx", "namex"),
    ("\u202eevil", "evil"),
    ("bert\u00ad-base", "bert-base"),
    ("mod\u0435l", "model"),
    ("modern", "modem"),
    ("model l", "model 1"),
    ("model O", "model 0"),
    ("A\u030angstr\u00f6m", "\u00c5ngstro\u0308m"),
    ("a  b", "a b"),
]
APART = [
    ("bert", "bart"),
    ("model 1", "model 2"),
    ("Größe", "Grösse"),
    ("模型", "模形"),
    ("a b", "ab"),
]
FIT = [
    "Größe 2", "Modèle été", "نموذج عربي", "می\u200cخواهم", "हिन्दी मॉडल", "क्\u200dष",
    "क्\u200cष", "中文模型", "日本語モデル", "한국어", "Ελληνικά", "русская модель",
    "❤\ufe0f model", "bert-base (v2)", "a & b",
]  # fmt: skip
UNFIT = [
    "name\u200bx", "\u202eevil", "a\nb", "a\tb", "a\u2028b", "a\u2029b", "\ud800x", "\ue000x",
    "a\u00adb", "a\u2066b\u2069", "a\u200db", "a\u200cb", "\u200dक्ष", "क्ष\u200d",
    "a\u3164b", "\ufeffname", "a\u180eb", "a\U000e0041b", "", "  ", "\u00a0", "\u3000",
    "\ufe0f", "\u115f", "Alpha\u2800", "a\ufffcb", "a\u0378b", "e" + "\u0338" * 5,
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKE)
def test_these_look_alike(one: str, other: str) -> None:
    assert build_skeleton(one) == build_skeleton(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_these_do_not(one: str, other: str) -> None:
    assert build_skeleton(one) != build_skeleton(other)


@pytest.mark.parametrize("name", FIT)
def test_names_of_many_scripts_are_taken_as_they_are(name: str) -> None:
    assert clean_name(name) == remove_invisible_characters(name) == name


@pytest.mark.parametrize("name", UNFIT)
def test_what_is_not_shown_is_refused(name: str) -> None:
    with pytest.raises(UnfitName) as error:
        clean_name(name)
    assert error.value.template % error.value.values == str(error.value)


def test_spaces_become_single_and_letters_are_composed() -> None:
    assert clean_name(" A\u0308pfel\u00a0\u3000 2 ") == "Äpfel 2"


def test_a_refusal_names_the_character() -> None:
    with pytest.raises(UnfitName, match=r"U\+200B"):
        clean_name("name\u200bx")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202eevil", "evil"),
        ("a\u200bb", "ab"),
        ("a\r\nb", "a  b"),
        ("क्\u200dष", "क्\u200dष"),
        (" x ", "x"),
    ],
)
def test_old_names_are_shown_without_what_is_not_seen(text: str, shown: str) -> None:
    assert remove_invisible_characters(text) == shown


@given(st.text(max_size=20))
def test_a_skeleton_is_its_own_and_survives_cleaning(text: str) -> None:
    found = build_skeleton(text)
    assert build_skeleton(found) == found
    try:
        name = clean_name(text)
    except UnfitName:
        return
    assert clean_name(name) == name == remove_invisible_characters(name)
    assert build_skeleton(name) == found
