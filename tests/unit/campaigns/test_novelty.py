"""What was found before is worth less."""

from dynabench.campaigns.rules.novelty import clusters, weights


def test_groups_share_keys_directly_or_over_others():
    keys = {1: {10, 11}, 2: {11, 12}, 3: {12}, 4: set(), 5: {99}}
    assert clusters(keys, 1) == [[1, 2, 3], [4], [5]]
    assert clusters(keys, 2) == [[1], [2], [3], [4], [5]]
    assert clusters({1: {7, 8}, 2: {7, 8}}, 2) == [[1, 2]]
    assert clusters({}, 1) == []


def test_the_first_of_a_group_gets_all():
    assert weights([[4, 9, 11], [5]]) == {4: 1.0, 9: 0.5, 11: 1 / 3, 5: 1.0}
