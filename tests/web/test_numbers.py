"""Where people see numbers: a share, and what it means."""

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from validation.rates.rates import Rate, Undefined, clustered_rate, rate
from validation.statistics.definitions import DEFINITIONS


def shown(rate, **values):
    return render_to_string("components/rate.html", {"rate": rate, **values}).strip()


def text_of(html):
    return " ".join(re.sub("<[^>]*>", "", html).split())


def test_a_share_has_its_interval_and_its_denominator():
    html = shown(Rate(0.1564, 0.1327, 0.183, 812, "wilson"), name="vmer")
    assert text_of(html) == "15.6% (95% interval 13.3 to 18.3; 812 tries)"
    assert 'href="/help/numbers/#vmer"' in html
    assert 'title="vMER' in html


def test_a_share_without_a_name_counts_examples():
    assert text_of(shown(rate(1, 1))).endswith("; 1 example)")
    assert text_of(shown(rate(1, 2))).endswith("; 2 examples)")


def test_few_authors_are_a_warning():
    assert "only 2 authors" in shown(clustered_rate([(1, 5), (2, 5)]), name="mer")
    assert "only" not in shown(clustered_rate([(1, 5), (2, 5)] * 5), name="mer")


def test_a_difference_is_in_points():
    gap = Rate(-0.05, -0.1, 0.02, 40, "newcombe", 20)
    assert text_of(shown(gap, name="human_model_gap")) == (
        "−5.0 points (95% interval −10.0 to 2.0; 40 votes)"
    )


def test_an_unknown_share_says_why():
    assert text_of(shown(Undefined("no <votes>"))) == "unknown (no &lt;votes&gt;)"


def test_each_definition_has_its_place(client, db):
    page = client.get("/help/numbers/").text
    for name, meaning in DEFINITIONS.items():
        assert f'<dt id="{name}">{meaning.title}</dt>' in page
        assert meaning.formula in page


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_docs_say_the_same(name):
    docs = (Path(__file__).parents[2] / "docs/statistics.md").read_text().replace("**", "")
    meaning = DEFINITIONS[name]
    row = next(line for line in docs.splitlines() if line.startswith(f"| {meaning.title} |"))
    assert all(piece in row for piece in meaning.formula.split(" ÷ "))
