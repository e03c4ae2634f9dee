"""Write the client's types and plain methods, of the API's schema.

    python scripts/client_code.py

Reads docs/openapi-v1.yaml and dynabench/client/methods.toml; writes dynabench/client/types.py and
dynabench/client/plain.py, which git ignores, unless they are of these sources already. ./run,
./test and the build of the wheel call it. It needs PyYAML and nothing else.
"""

import os
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "dynabench/client"
sys.path.insert(0, str(ROOT))  # as a script it would find only its own folder

from scripts.client_methods import write_methods  # noqa: E402
from scripts.client_types import write_types  # noqa: E402


def read_schema() -> dict[str, Any]:
    """Return the committed schema of the API."""
    # The parser in C takes a sixth of the time, but not every build of PyYAML has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (ROOT / "docs/openapi-v1.yaml").read_text()
    schema: dict[str, Any] = yaml.load(text, loader)  # noqa: S506 - both are safe
    return schema


def generate_client() -> bool:
    """Write both modules, where they are missing or outdated; return whether they were written."""
    # Not imported: its package needs what is written here.
    freshness = SimpleNamespace(**runpy.run_path(str(CLIENT / "freshness.py")))
    digest = freshness.compute_source_digest(ROOT)
    if not freshness.list_stale_modules(digest):
        return False
    schema = read_schema()
    methods = tomllib.loads((CLIENT / "methods.toml").read_text())
    texts = {"types.py": write_types(schema), "plain.py": write_methods(schema, methods)}
    for name, text in texts.items():
        # Under another name first: another process may import the module at this moment.
        unfinished = CLIENT / f".{name}.{os.getpid()}"
        unfinished.write_text(f"{freshness.build_first_line(digest)}\n{text}")
        unfinished.replace(CLIENT / name)
    return True


if __name__ == "__main__":
    generate_client()
