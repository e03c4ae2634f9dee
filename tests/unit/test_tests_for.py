"""Which tests a change needs, and which compare files."""

import pytest

from scripts import snapshots, tests_for


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("validation/consensus/consensus.py", "tests/unit/validation/test_consensus.py"),
        ("templates/leaderboard/board.html", "tests/web/test_board.py"),
        ("docs/owners.md", "tests/unit/test_docs.py"),
        ("tests/unit/test_docs.py", "tests/unit/test_docs.py"),
        ("tasks/migrations/0001_squashed_0018_invitations.py", "tests/unit/test_migrations.py"),
        ("requirements.txt", "tests/unit/test_licences.py"),
        ("LICENSE", "tests/test_house.py"),
    ],
)
def test_a_change_needs_its_tests(file, needed):
    assert needed in tests_for.tests_for([file])


def test_a_pure_rule_does_not_need_all_tests():
    assert len(tests_for.tests_for(["leaderboard/ranking/pareto.py"])) < 60


def test_each_kind_of_compared_files_has_tests():
    for kind in snapshots.TESTS:
        tests = list(snapshots.tests_of([kind]))
        assert tests
        assert all((snapshots.ROOT / test).exists() for test in tests)
