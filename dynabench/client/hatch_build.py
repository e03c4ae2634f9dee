"""Adds files to a built package that git lacks or that are elsewhere in the checkout."""

import runpy
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Assembly(BuildHookInterface):  # type: ignore[type-arg]
    """A build hook for the wheel and the sdist.

    In a checkout, or in the archive that a site serves, it generates the modules from the API's
    schema. Elsewhere, for example in an sdist, they must exist already. A wheel built from a
    checkout also contains the server's check of models: all the files that `server` in
    pyproject.toml names, or none.
    """

    def dependencies(self) -> list[str]:
        """Return the packages that the build needs."""
        return ["PyYAML==6.0.3"] if self._find_generator().is_file() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the generated modules, and add the server's modules to the wheel."""
        checkout = self._find_checkout()
        if self._find_generator().is_file():
            sys.path.insert(0, str(checkout))
            from scripts.client_code import generate_client

            generate_client()
        freshness = runpy.run_path(str(Path(self.root) / "freshness.py"))
        freshness["check_generated_modules"]()
        if self.target_name == "sdist":
            # Git ignores them, and so would hatchling. The wheel takes all of the folder.
            build_data["artifacts"] += [f"/{name}" for name in freshness["GENERATED"]]
        if (checkout / "evaluation/isolation/inference/precheck.py").is_file():
            for name in self.config.get("server", ()):
                build_data["force_include"][str(checkout / name)] = f"dynabench/_server/{name}"

    def _find_checkout(self) -> Path:
        """Return the folder of the checkout that would contain this folder."""
        return Path(self.root).parents[1]

    def _find_generator(self) -> Path:
        """Return the path of the script that generates the modules, in a checkout."""
        return self._find_checkout() / "scripts/client_code.py"
