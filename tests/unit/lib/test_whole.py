"""A file has its name only once it is complete."""

import pytest

from core.files.whole import write_whole


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows.jsonl"
    with write_whole(path) as unfinished_path:
        unfinished_path.write_text("one")
        assert not path.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["rows.jsonl"]


def test_an_error_leaves_the_former_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("former")
    with pytest.raises(OSError, match="full"):
        stop_half_way(path)
    assert path.read_text() == "former"


def stop_half_way(path):
    with write_whole(path) as unfinished_path:
        unfinished_path.write_text("half")
        raise OSError("the disk is full")
