"""Backups of each night below one folder: named by the moment, and removed when they are old."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from dynabench.operations.backups.stores import (
    MANIFEST_NAME,
    build_dated_address,
    create_store,
    remove_killed_backups,
    remove_older_backups,
)

THEN = datetime(2026, 1, 31, 3, 15, tzinfo=UTC)


def test_old_ones_go_and_what_is_not_ours_stays(tmp_path):
    for days in (0, 27, 28, 29):
        folder = tmp_path / build_dated_address(str(tmp_path), THEN - timedelta(days))
        (folder / "media/a").mkdir(parents=True)
        for name in (MANIFEST_NAME, "media/a/b"):
            (folder / name).write_text("x")
    for name in ("2025-01-01T0000.part", "2025-01-01"):
        (tmp_path / name).mkdir()
    gone = remove_older_backups(str(tmp_path), THEN - timedelta(28))
    assert sorted(gone) == ["2025-01-01T0000.part", "2026-01-02T0315"]
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["2025-01-01", "2026-01-03T0315", "2026-01-04T0315", "2026-01-31T0315"]


def test_a_bucket_keeps_its_question_mark():
    assert build_dated_address("s3://b/f/?region=eu", THEN) == "s3://b/f/2026-01-31T0315?region=eu"
    assert build_dated_address("/odd?/", THEN) == "/odd?/2026-01-31T0315"


def test_what_killed_ones_left_goes_and_what_is_being_written_stays(tmp_path):
    for name in ("2026-01-30T0315.part/media", "other.part"):
        (tmp_path / name).mkdir(parents=True)
    with create_store(build_dated_address(str(tmp_path), THEN)):
        remove_killed_backups(str(tmp_path))
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == ["2026-01-31T0315.part", "other.part"]


@pytest.mark.parametrize("days", ["0", "-1"])
def test_no_number_of_days_removes_all(tmp_path, days):
    """Of -1 day ago are all, also the one of this moment."""
    with pytest.raises(CommandError, match="--days"):
        call_command("backup", "--days", days, str(tmp_path))
