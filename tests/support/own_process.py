"""What checks of files load in their own process, which knows no Django."""

import pickle
import subprocess
import sys
from functools import cache
from typing import Any

from core.files import bounded

KNOWN = (
    *("core.files.bounded", "functools", "pathlib"),
    *(
        "evaluation.isolation.inference.precheck",
        "evaluation.test_sets.parsing",
        "evaluation.test_sets.writing",
    ),
    *(
        "evaluation.training.row_files",
        "evaluation.isolation.uploads.adapters",
        "evaluation.isolation.uploads.archives",
    ),
    *("evaluation.isolation.uploads.image_archives", "evaluation.isolation.uploads.model_folders"),
    *("tasks.config.components", "tasks.config.schema", "tasks.config.verdicts"),
    *("tasks.contexts.archives", "tasks.contexts.columns", "tasks.contexts.files"),
    *("tasks.datasets.hub", "tasks.datasets.reading", "core.files.decoding"),
)
"""Modules of such checks and of what they are given, which a test loads there, all at once."""


class Loaded(pickle.Unpickler):
    """A job of `bounded`, as that process takes it."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        assert module_name in KNOWN or loads(module_name), f"{module_name} needs Django."
        return super().find_class(module_name, global_name)


@cache
def loads(*names: str) -> bool:
    """Whether the process of a check can import these modules."""
    program = [sys.executable, "-c", f"import {', '.join(names)}"]
    done = subprocess.run(program, cwd=bounded.ROOT, env=bounded._build_environment(), check=False)
    return done.returncode == 0
