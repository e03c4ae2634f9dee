"""manage.py assisted_rate: a share from few votes with a judge model, from a file."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

HEADER = "author,judge,people,chance"


def estimate(tmp_path, lines, *options):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join([HEADER, *lines]))
    out = StringIO()
    call_command("assisted_rate", str(path), *options, stdout=out)
    return out.getvalue()


def make_lines(judge="1"):
    """Forty examples of eight authors, every second of which people judged."""
    return [
        f"a{number % 8},{judge},{'' if number % 2 else number // 2 % 2},0.5" for number in range(40)
    ]


def test_people_decide_whatever_the_judge_says(tmp_path):
    for judge in ("0", "1"):
        rate = json.loads(estimate(tmp_path, make_lines(judge), "--json"))
        assert rate["value"] == pytest.approx(0.5)
        assert rate["voted_count"] == 20
        assert rate["low"] < 0.5 < rate["high"]
    assert "20 of 40" in estimate(tmp_path, make_lines())


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["a,1,1"], "line 2"),
        (["a,1,1,0.5", "a,no,1,0.5"], "line 3"),
        (["a,2,1,0.5"], "line 2"),
        (["a,nan,1,0.5"], "line 2"),
        (["a,1,1,0"], "votes.csv"),
        ([], "10"),
        (make_lines()[:16], "10"),
    ],
)
def test_files_that_tell_nothing_are_refused(tmp_path, lines, named):
    with pytest.raises(CommandError, match=named):
        estimate(tmp_path, lines)


def test_a_file_without_a_column_or_no_file_is_refused(tmp_path):
    with pytest.raises(CommandError):
        call_command("assisted_rate", str(tmp_path / "none.csv"))
    (tmp_path / "other.csv").write_text("author,judge\n")
    with pytest.raises(CommandError, match="people"):
        call_command("assisted_rate", str(tmp_path / "other.csv"))
