"""Where people see numbers: a share, and what it means."""

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from evaluation.models import Score
from validation.rates.rates import Rate, Undefined, compute_clustered_rate, compute_rate
from validation.statistics.definitions import DEFINITIONS


def shown(rate, **values):
    return render_to_string("components/rate.html", {"rate": rate, **values}).strip()


def text_of(html):
    return " ".join(re.sub("<[^>]*>", "", html).split())


def test_a_share_has_its_interval_and_its_denominator():
    html = shown(Rate(0.1564, 0.1327, 0.183, 812, "wilson"), name="vmer")
    assert re.findall(r"\d+(?:\.\d)?", text_of(html)) == ["15.6", "95", "13.3", "18.3", "812"]
    assert 'href="/help/numbers/#vmer"' in html
    assert 'title="vMER: ' in html


def test_a_share_without_a_name_counts_examples():
    assert text_of(shown(compute_rate(1, 1))).endswith("; 1 example)")
    assert text_of(shown(compute_rate(1, 2))).endswith("; 2 examples)")


def test_few_authors_are_a_warning():
    assert "only 2 authors" in shown(compute_clustered_rate([(1, 5), (2, 5)]), name="mer")
    assert "only" not in shown(compute_clustered_rate([(1, 5), (2, 5)] * 5), name="mer")


def test_a_difference_is_in_points():
    gap = Rate(-0.05, -0.1, 0.02, 40, "newcombe", 20)
    text = text_of(shown(gap, name="human_model_gap"))
    assert re.findall(r"−?\d+(?:\.\d)?", text) == ["−5.0", "95", "−10.0", "2.0", "40"]
    assert "−5.0 points" in text
    assert "–" not in text  # which would be read as a sign


@pytest.mark.parametrize("template", ["score", "kind_score"])
@pytest.mark.parametrize(("low", "is_joined"), [(0.1, True), (-0.1, False)])
def test_no_dash_stands_before_a_negative_number(template, low, is_joined):
    score = Score(metric="drop", value=0.2, low=low, high=0.3, n=40)
    text = text_of(render_to_string(f"components/{template}.html", {"score": score}))
    assert ("–" in text) == is_joined
    assert ("−10.0" in text) != is_joined


def test_an_unknown_share_says_why():
    assert text_of(shown(Undefined("no <votes>"))) == "–unknown no &lt;votes&gt;"


def describe_term(meaning):
    return f"{meaning.title} ({meaning.symbol})" if meaning.symbol else meaning.title


def test_each_definition_has_its_place(client, db):
    page = client.get("/help/numbers/").text
    for name, meaning in DEFINITIONS.items():
        assert f'<dt id="{name}">{describe_term(meaning)}</dt>' in page
        assert meaning.formula in page


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_docs_say_the_same(name):
    docs = (Path(__file__).parents[2] / "docs/statistics.md").read_text().replace("**", "")
    meaning = DEFINITIONS[name]
    row = next(
        line for line in docs.splitlines() if line.startswith(f"| {describe_term(meaning)} |")
    )
    assert all(piece in row for piece in meaning.formula.split(" ÷ "))
