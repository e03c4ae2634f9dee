"""Adds the server's check of a model to the wheel, if it is built in a whole checkout."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ServersCheck(BuildHookInterface):  # type: ignore[type-arg]
    """A build hook that takes what `server` in pyproject.toml names, all of it or nothing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the server's modules to the files of the wheel."""
        checkout = Path(self.root).parents[1]
        if (checkout / "evaluation/isolation/inference/precheck.py").is_file():
            for name in self.config["server"]:
                build_data["force_include"][str(checkout / name)] = f"dynabench/_server/{name}"
