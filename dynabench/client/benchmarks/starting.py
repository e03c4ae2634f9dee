"""Write a new folder that describes a benchmark."""

import re
from pathlib import Path
from string import Template

from dynabench.client.benchmarks.folder import CODE_PATTERN

TEMPLATE = Path(__file__).parent / "template"
FILE_NAMES = {"gitignore": ".gitignore"}
"""Names that differ, because git would read the template's own file."""


def derive_code(name: str) -> str:
    """Return a task's code derived from a folder's name. Raises ValueError.

    >>> derive_code("My benchmark_2")
    'my-benchmark-2'
    """
    code = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not CODE_PATTERN.fullmatch(code):
        raise ValueError(
            f"{name!r} can't be the name of a benchmark. Use letters, numbers and hyphens, such as "
            "my-benchmark."
        )
    return code


def write_benchmark(folder: Path, name: str) -> list[str]:
    """Write the files of a new benchmark, and return their names in order. Raises ValueError.

    folder: an empty folder, or one that does not exist.
    """
    code = derive_code(name)
    title = code.replace("-", " ").capitalize()
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted(TEMPLATE.iterdir()):
        # Such as a folder of bytecode.
        if not path.is_file():
            continue
        file_name = FILE_NAMES.get(path.name, path.name)
        text = path.read_text(encoding="utf-8")
        # Texts and comments contain dollars and braces that are none of ours.
        text = Template(text).safe_substitute(code=code, title=title)
        (folder / file_name).write_text(text, encoding="utf-8", newline="\n")
        names.append(file_name)
    return sorted(names)
