"""The files of a benchmark's folder: all problems at once, each with its place."""

import pytest

from dynabench.client.benchmarks.folder import MAX_TEXT_BYTES, ROLES, read_folder
from dynabench.client.benchmarks.problems import FolderError
from dynabench.client.benchmarks.starting import derive_code, write_benchmark
from tasks.config.loading import check_config
from tasks.models import TaskMember


@pytest.fixture
def folder(tmp_path):
    write_benchmark(tmp_path / "mine", "my-benchmark")
    return tmp_path / "mine"


def find_problems(folder):
    with pytest.raises(FolderError) as refused:
        read_folder(folder)
    return [(each.file, each.line, each.column) for each in refused.value.problems]


def test_a_new_folder_is_right(folder):
    found = read_folder(folder)
    assert (found.task, found.visibility["is_visible"]) == ("my-benchmark", False)
    config, problems = check_config(found.config_text)
    assert config.name == "My benchmark"
    # It is what an owner begins with, so it lacks examples of their own.
    assert {problem.path for problem in problems} == {"examples.good", "examples.bad"}
    assert found.target.model == "starter-sentiment"
    assert (found.round.number, found.round.is_open) == (1, False)
    assert (found.members, len(found.text_lines)) == ([], 6)
    ignored = (folder / ".gitignore").read_text().splitlines()
    assert ".env" in ignored
    assert "dynabench.lock" not in ignored


def test_the_roles_are_those_of_the_site():
    assert set(ROLES) == set(TaskMember.Role.values)


def test_the_problems_of_all_files_come_at_once(folder):
    (folder / "benchmark.yaml").write_text("task: My Task\nvisible: maybe\n")
    (folder / "target.yaml").write_text("name: a\nurl: https://u.test\nmodel: m\n")
    (folder / "round.yaml").write_text("number: 0\nmax_collected: many\nends_at: soon\n")
    (folder / "members.csv").write_text("email,role\nann,owner\nb@x.org,king\nc@x.org\n")
    (folder / "texts.jsonl").write_text('{"prompt": "a"}\n[1]\n{"prompt": }\n')
    assert find_problems(folder) == [
        ("benchmark.yaml", 1, 1),
        ("benchmark.yaml", 2, 1),
        ("target.yaml", 3, 1),
        ("round.yaml", 1, 1),
        ("round.yaml", 2, 1),
        ("round.yaml", 3, 1),
        ("members.csv", 2, 1),
        ("members.csv", 3, 9),
        ("members.csv", 4, 1),
        ("texts.jsonl", 2, 1),
        ("texts.jsonl", 3, 12),
    ]


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("members.csv", b"mail,role\n", ("members.csv", 1, 1)),
        ("members.csv", b"", ("members.csv", 1, 1)),
        ("members.csv", b'email,role\n"a@x.org,owner\n', ("members.csv", 2, 1)),
        ("members.csv", b"email,role\na@x.org,owner\n\nA@x.org,judge\n", ("members.csv", 4, 1)),
        ("members.csv", b"email,role\n\xff@x.org,owner\n", ("members.csv", 2, 1)),
        ("task.yaml", b"name: caf\xe9\n", ("task.yaml", 1, 10)),
        ("task.yaml", b"", ("task.yaml", 0, 0)),
        ("target.yaml", b"url: https://x.test\n", ("target.yaml", 0, 0)),
        ("target.yaml", b"name: a\nsource: o/m\nsecret_from: TARGET_A\n", ("target.yaml", 3, 1)),
        ("target.yaml", b"name: a\nmodel: m\noptions: {}\n", ("target.yaml", 3, 1)),
        ("target.yaml", b"name: a\nurl: https://me:pw@x.test/a\n", ("target.yaml", 2, 1)),
        ("texts.csv", b"prompt\na\n", ("texts.jsonl", 0, 0)),
        ("texts.jsonl", b"[" * 100_000, ("texts.jsonl", 1, 1)),
    ],
)
def test_a_wrong_file_is_named(folder, name, data, place):
    (folder / name).write_bytes(data)
    assert find_problems(folder) == [place]


def test_a_file_that_is_too_large_is_not_read(folder):
    with (folder / "texts.jsonl").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    assert find_problems(folder) == [("texts.jsonl", 0, 0)]


def test_many_wrong_lines_are_cut(folder):
    (folder / "texts.jsonl").write_text("x\n" * 500)
    assert len(find_problems(folder)) == 20


def test_a_folder_of_something_else_says_how_to_begin(tmp_path):
    (problem,) = find_problems(tmp_path)
    assert problem[0].endswith("benchmark.yaml")


def test_parts_may_be_missing(folder):
    for name in ("target.yaml", "round.yaml", "members.csv", "texts.jsonl"):
        (folder / name).unlink()
    found = read_folder(folder)
    assert (found.target, found.round, found.members, found.texts_path) == (None, None, None, None)


def test_comments_and_times(folder):
    (folder / "members.csv").write_text("email,role\r\n#a@x.org,owner\r\n b@x.org , Judge \r\n")
    (folder / "round.yaml").write_text("ends_at: 2027-03-01\n")
    found = read_folder(folder)
    assert [(each.email, each.role, each.line) for each in found.members] == [
        ("b@x.org", "judge", 3)
    ]
    assert found.round.plan == {"ends_at": "2027-03-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("name", "code"), [("My benchmark_2", "my-benchmark-2"), ("a/b", "a-b"), ("NLI", "nli")]
)
def test_a_code_comes_from_a_name(name, code):
    assert derive_code(name) == code


def test_a_name_without_letters_is_refused():
    with pytest.raises(ValueError, match="benchmark"):
        derive_code("…")
