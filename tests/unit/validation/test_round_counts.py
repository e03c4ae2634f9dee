"""Counts of a round: alike examples together, added up by author."""

from validation.rates.rates import ComparedCounts
from validation.rates.round_counts import Cell, Part, sum_collected

MINE = Cell(1, "fooled", True, True, "positive", True, True)
THEIRS = Cell(2, "no_model", False, False, "", False, False)
NOBODYS = Cell(None, "not_fooled", True, False, "", False, False)


def part(**counts):
    """A part with these examples and the comparisons of their authors."""
    made = Part(program_examples=1, program_votes=2)
    made.cells.update(counts.get("cells", {}))
    made.compared.update(counts.get("compared", {}))
    return made


def test_alike_examples_are_counted_by_what_they_share():
    counted = MINE.count_collected(3)
    assert (counted.collected, counted.fooled, counted.verified_fooled) == (3, 3, 3)
    assert THEIRS.count_collected(2).with_model == 0
    assert THEIRS.count_collected(2).with_outcome == 0


def test_each_example_of_an_unknown_author_is_an_author_of_its_own():
    whole = part(cells={MINE: 2, MINE._replace(judged=False): 1, THEIRS: 1, NOBODYS: 3})
    authors = whole.list_author_counts()
    assert sorted(author.collected for author in authors) == [1, 1, 1, 1, 3]
    assert sum_collected(authors).collected == 7


def test_parts_add_up():
    whole = part(cells={MINE: 1})
    whole += part(cells={MINE: 2, THEIRS: 1})
    assert whole.cells == {MINE: 3, THEIRS: 1}
    assert (whole.program_examples, whole.program_votes) == (2, 4)


def test_comparisons_add_up_by_known_author():
    first, second = ComparedCounts(1, 1, 0), ComparedCounts(2, 1, 1)
    whole = part(compared={(1, first): 2, (1, second): 1, (None, second): 2})
    assert list(whole.iterate_compared_authors()) == [second, second, ComparedCounts(4, 3, 1)]
