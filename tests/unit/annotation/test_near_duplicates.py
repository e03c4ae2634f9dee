"""Near-duplicates: what counts as the same, how well it is found, and that it never changes."""

import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.rules.near_duplicates import (
    BAND_COUNT,
    BIN_COUNT,
    MIN_CHARS,
    are_alike,
    compute_band_keys,
    compute_jaccard,
    compute_signature,
    get_compared_text,
    get_written_text,
    is_comparable,
    normalise_text,
    split_grams,
)
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER
from tests.unit.tasks.config_texts import MINIMAL

TEXT = "The soup came cold and the waiter was kind enough to bring us another bowl."


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  It's  GREAT!! ", "it s great"),
        ("Straße", "STRASSE"),
        ("ﬁne １２", "fine 12"),
        ("a\tb\nc\u00a0d", "a b c d"),
        ("in\u200bvisible", "invisible"),
        ("это-хорошо", "Это хорошо"),
    ],
)
def test_what_counts_as_the_same(text, same):
    assert normalise_text(text) == normalise_text(same)
    assert compute_signature(text) == compute_signature(same)


def test_what_does_not():
    assert normalise_text("I love it 😀") != normalise_text("I love it 😡")
    assert normalise_text("nicht") != normalise_text("night")


def test_grams():
    assert split_grams("Abcdef") == {"abcde", "bcdef"}
    assert split_grams("Hi") == {"hi"}
    assert split_grams("?!") == split_grams("") == set()


def test_nothing_is_like_nothing():
    with pytest.raises(ValueError, match="without grams"):
        compute_signature("...")
    assert compute_band_keys("...") == ()
    assert compute_jaccard("", "") == 0


def test_short_texts_are_not_compared():
    assert compute_band_keys("x" * (MIN_CHARS - 1)) == compute_band_keys("Who is he?") == ()
    assert len(compute_band_keys("x" * MIN_CHARS)) == BAND_COUNT
    assert not are_alike("Who is he?", "Who is he?")
    assert are_alike(TEXT, TEXT.upper())
    assert not are_alike(TEXT, "The soup came hot, and nobody was kind to us at all.")


def test_what_is_written_in_words():
    config = load_config((OFFICIAL_FOLDER / "nli" / "task.yaml").read_text())
    assert get_written_text(config, {"hypothesis": "It is.", "label": "neutral"}) == "It is."
    assert get_written_text(config, {"label": "neutral"}) == ""


def test_jaccard_by_hand():
    assert compute_jaccard("abcdef", "abcdeg") == pytest.approx(1 / 3)
    assert compute_jaccard("abc", "ABC.") == 1


@given(st.text(min_size=1))
def test_signatures_and_keys_have_their_shapes(text):
    keys = compute_band_keys(text)
    assert len(keys) in (0, BAND_COUNT)
    assert all(0 <= key < 2**63 for key in keys)
    if split_grams(text):
        found = compute_signature(text)
        assert len(found) == BIN_COUNT
        assert all(0 <= value < 2**63 for value in found)


def pairs(count):
    """Texts and what becomes of them when some words are changed."""
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghij", k=6)) for _ in range(400)]
    for number in range(count):
        text = draw.sample(words, 40)
        changed = number % 30 + 1
        yield " ".join(text), " ".join(text[changed:] + draw.sample(words, changed))


def test_equal_bins_estimate_the_similarity_without_bias():
    errors = []
    for first, second in pairs(300):
        both = zip(compute_signature(first), compute_signature(second), strict=True)
        errors.append(sum(a == b for a, b in both) / BIN_COUNT - compute_jaccard(first, second))
    assert abs(sum(errors) / len(errors)) < 0.02


def test_pairs_are_found_as_often_as_the_bands_promise():
    similar = unlike = found = candidates = 0
    for first, second in pairs(600):
        share = bool(set(compute_band_keys(first)) & set(compute_band_keys(second)))
        if compute_jaccard(first, second) >= 0.75:
            similar, found = similar + 1, found + share
        elif compute_jaccard(first, second) < 0.2:
            unlike, candidates = unlike + 1, candidates + share
    assert similar > 50
    assert found >= 0.98 * similar
    assert unlike > 50
    assert candidates < 0.15 * unlike


def test_near_copies_share_a_key_and_other_texts_do_not():
    copy = TEXT.replace("another bowl", "another bowl soon").upper()
    other = "A dog that sleeps all day long under the old oak tree in the garden."
    assert compute_jaccard(TEXT, copy) > 0.8
    assert set(compute_band_keys(TEXT)) & set(compute_band_keys(copy))
    assert not set(compute_band_keys(TEXT)) & set(compute_band_keys(other))


def test_keys_of_a_table_stay_valid_in_every_process():
    """A change here makes every stored key worthless."""
    assert compute_signature(TEXT)[0] == 327333446460689679
    assert compute_band_keys(TEXT)[0] == 4420879646881347294
    code = f"from annotation.rules.near_duplicates import *; print(compute_band_keys({TEXT!r}))"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(compute_band_keys(TEXT))


def test_files_are_compared_where_the_words_are_few():
    both = "[{name: text, type: text}, {name: picture, type: image}]"
    config = load_config(MINIMAL.replace("[{name: text, type: text}]", both))
    picture = {"digest": "abc"}
    assert get_compared_text(config, {"text": TEXT, "picture": picture}) == TEXT
    assert get_compared_text(config, {"text": "What?", "picture": picture}) == "What?\nabc"
    assert get_compared_text(config, {"text": "What?"}) == "What?"


def test_chinese_counts_by_characters():
    one, other = "我们昨天在老磨坊旁边看到了三只白色的鸟", "我们昨天在老磨坊旁边看到了三只黑色的鸟"
    assert are_alike(one, one + "。")
    assert compute_jaccard(one, other) > 0.7
    assert compute_band_keys(one)
    assert not compute_band_keys("我们昨天看到鸟")


@pytest.mark.parametrize(
    "text",
    [
        "เมืองหลวงของประเทศไทยคือกรุงเทพมหานคร",
        "Thủ đô của Việt Nam là Hà Nội",
        "한국의 수도는 서울입니다 그리고 아주 큰 도시입니다",
    ],
)
def test_the_form_of_a_text_does_not_make_it_another(text):
    assert compute_band_keys(text) == compute_band_keys(unicodedata.normalize("NFD", text)) != ()
    assert are_alike(text, unicodedata.normalize("NFD", text).upper())


def test_texts_without_spaces_count_by_letters():
    assert is_comparable("เมืองหลวงคือ")
    assert split_grams("กขคง") == {"กข", "ขค", "คง"}
