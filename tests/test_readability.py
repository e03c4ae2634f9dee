"""The product reads as well as it did, by the measures of `scripts/readability.py`."""

import ast

import pytest

from scripts import readability

REACHED = {
    "comprehensions": 18.7,
    "double comprehensions": 0.05,
    "conditional expressions": 8.8,
    "stars": 2.9,
    "comments": 35.3,
    "private words": 1.8,
    "repeated functions": 13,
    "repeated classes": 0,
    "docstrings": 98,
}
"""How far each figure is. Later changes may improve them: then write the better figure here."""
EXAMPLES = {
    "comprehensions": "rows = [row for row in rows if row.is_open]",
    "double comprehensions": "words = [word for line in lines for word in line]",
    "conditional expressions": "name = title if title else code",
    "stars": "names = [*first, *second]",
    "private words": "found = Round.objects.first()",
}
"""What each measure counts."""
CURES = {
    "comprehensions": "Write a loop where the expression needs a second reading.",
    "double comprehensions": "Write a loop: for line in lines: words += line",
    "conditional expressions": "Write an if, or `title or code`.",
    "stars": "Write first + second.",
    "comments": "Say why above each surprising line.",
    "private words": "Name what it is: open_round = Round.objects.first()",
    "repeated functions": "Say the object too: write_report instead of write.",
    "repeated classes": "Say of what: ReportLine instead of Line.",
    "docstrings": "Begin with a verb: Return the rounds that are open.",
}


@pytest.fixture(scope="module")
def measurements():
    return readability.measure(readability.product_files())


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_measure_counts_its_example(name):
    tree = ast.parse(EXAMPLES[name])
    counted = {measure for node in ast.walk(tree) for measure, _ in readability.count_node(node)}
    assert name in counted


@pytest.mark.parametrize("name", REACHED)
def test_the_product_reads_as_well_as_before(name, measurements):
    limit = readability.LIMITS[name]._replace(value=REACHED[name])
    figure = measurements[name].figure
    bound = "least" if limit.is_least else "most"
    assert readability.keeps(limit, figure), (
        f"{name}: {figure:.1f}, at {bound} {limit.value:g}. {CURES[name]} "
        f"`python scripts/readability.py --list {name.replace(' ', chr(92) + ' ')}` shows where."
    )


def test_docstrings_begin_with_verbs():
    assert readability.begins_with_verb("Return the open rounds.")
    assert not readability.begins_with_verb("The open rounds.")
