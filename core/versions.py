"""The version of the site."""

import tomllib
from functools import cache

from django.conf import settings


@cache
def get_version() -> str:
    """Return the version in `pyproject.toml`, its only source."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])
