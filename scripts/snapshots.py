"""Name the tests that compare what the product says with files, by the kind of files.

    python scripts/snapshots.py [queries|access|schema|pictures …]

`./test --update` runs them so that they write the files.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "access": ("tests/api/test_access.py", "tests/web/test_roles.py"),
    "pictures": ("tests/browser/test_pictures.py",),
    "queries": (),
    "schema": ("tests/api/test_schema.py",),
}
"""By kind; those of `queries` are the tests that count."""


def tests_of(kinds: Iterable[str]) -> Iterator[str]:
    """Yield the test files of some kinds, or of all. Raises KeyError for an unknown kind."""
    for kind in list(kinds) or sorted(TESTS):
        yield from TESTS[kind]
        if kind == "queries":
            yield from tests_that_count_queries()


def tests_that_count_queries() -> Iterator[str]:
    """Yield the tests that use `tests/support/query_counts.py`."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if "support.query_counts import" in file.read_text():
            yield str(file.relative_to(ROOT))


if __name__ == "__main__":
    try:
        print(*tests_of(sys.argv[1:]), sep="\n")
    except KeyError as unknown:
        sys.exit(f"There are no files of the kind {unknown}. Kinds: {', '.join(sorted(TESTS))}.")
