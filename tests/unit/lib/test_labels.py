"""Which label a value names."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.words import (
    build_label_key,
    find_label,
    format_label,
    iterate_alike_labels,
    order_labels_by_names,
)

LABELS = ("positive", "Not sure", "café", "1", "2.50", "true", "正面", "ß")
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).map(str.strip)
label_lists = st.lists(names.filter(bool), min_size=1, max_size=5, unique_by=build_label_key)
changes = st.sampled_from(
    [
        str.upper,
        str.lower,
        str.casefold,
        lambda text: f" {text}\u00a0\n",
        lambda text: f"\ufeff{text}",
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFKC", text),
    ]
)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("positive", "positive"),
        (" Positive\u00a0", "positive"),
        ("ｐｏｓｉｔｉｖｅ", "positive"),
        ("not  SURE", "Not sure"),
        ("cafe\u0301", "café"),
        ("CAFE\u0301", "café"),
        ("正面\u3000", "正面"),
        ("SS", "ß"),
        (1, "1"),
        (1.0, "1"),
        ("1.0", "1"),
        ("１", "1"),
        (2.5, None),
        ("2.50", "2.50"),
        (True, "true"),
        ("TRUE", "true"),
        ("cafe", None),
        ("posi", None),
        ("", None),
        (None, None),
        (["positive"], None),
        (float("nan"), None),
    ],
)
def test_a_value_names_a_label(value, label):
    assert find_label(value, LABELS) == label


@pytest.mark.parametrize("values", [("US", "us", "Us"), ("Positive", "positive", " POSITIVE ")])
def test_an_equal_label_comes_first_and_two_are_none(values):
    labels, odd = values[:2], values[2]
    assert [find_label(label, labels) for label in labels] == [*labels]
    assert [find_label(f" {label} ", labels) for label in labels] == [*labels]
    assert find_label(odd, labels) is None


@given(st.lists(names.filter(bool), min_size=1, max_size=5, unique=True), st.data())
def test_each_label_is_itself_whatever_the_others(labels, data):
    label = data.draw(st.sampled_from(labels))
    assert find_label(label, labels) == label


@given(label_lists, changes, st.data())
def test_what_looks_like_one_label_alone_is_that_label(labels, change, data):
    label = data.draw(st.sampled_from(labels))
    assert find_label(change(label), labels) == label or build_label_key(
        change(label)
    ) != build_label_key(label)


@given(names, names, names)
def test_equality_of_labels_is_an_equivalence(one, two, three):
    assert build_label_key(build_label_key(one)) == build_label_key(one)
    keys = {build_label_key(one), build_label_key(two), build_label_key(three)}
    alike = [*iterate_alike_labels([one, two, three])]
    assert len(alike) == 3 - len(keys)
    assert [*iterate_alike_labels([three, two, one])] == [] or alike


@given(st.integers(-(10**9), 10**9))
def test_a_whole_number_is_its_label(number):
    labels = (str(number), "other")
    for value in (number, float(number), str(number), f"{number}.0", f" {number}.00"):
        assert find_label(value, labels) == str(number)


def test_names_are_spelled_as_the_labels():
    assert order_labels_by_names(["NEGATIVE", "Positive"], ("positive", "negative")) == (
        "negative",
        "positive",
    )
    assert order_labels_by_names([1, 0.0], ("0", "1")) == ("1", "0")
    assert order_labels_by_names(["us", "US"], ("US", "us")) == ("us", "US")
    assert order_labels_by_names(["Us", "uS"], ("US", "us")) is None
    assert order_labels_by_names(["a", "a"], ("a", "b")) is None
    assert order_labels_by_names(["a"], ("a", "b")) is None
    assert order_labels_by_names(["a", "b", "A"], ("a", "b")) is None


def test_labels_that_look_alike_are_found_with_their_place():
    assert [*iterate_alike_labels(["café", "a", "cafe\u0301", "A ", "b"])] == [
        (2, "café"),
        (3, "a"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(False, "false"), (3, "3"), (3.5, "3.5"), (" a ", "a"), (None, None), ({}, None)],
)
def test_a_value_is_written_as_a_label(value, text):
    assert format_label(value) == text
