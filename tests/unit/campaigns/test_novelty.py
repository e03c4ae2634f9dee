"""What was found before is worth less."""

from dynabench.campaigns.rules.novelty import clusters, share


def test_groups_share_keys_directly_or_over_others():
    keys = {5: {99}, 1: {10, 11}, 3: {12}, 2: {11, 12}, 4: set()}
    assert clusters(keys) == [[1, 2, 3], [4], [5]]
    assert clusters({}) == []
    assert clusters({one: {one // 2} for one in range(10_000)})[0] == [0, 1]  # no pairs of pairs


def test_the_first_of_those_that_are_nearly_the_same_gets_all():
    text = "Jonas has never been on the ferry that leaves at nine."
    assert share(text, []) == share(text, ["Jonas reads the news on the ferry every morning."]) == 1
    assert share(text, [text.upper(), text + "!", "Another one about the ferry."]) == 1 / 3
