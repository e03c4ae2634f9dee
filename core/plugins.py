"""Plug-ins: metrics, field types and file formats from other people's packages.

A package offers one in its `pyproject.toml`, and the site that has it installed finds it:

    [project.entry-points."dynabench.metrics"]
    word_error_rate = "my_package.metrics:WordErrorRate"

Only operators install packages, so what is found here is trusted like the site's own code. It runs
in web processes and workers, and never sees the sandbox.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

Register = Callable[[str, Any], None]

GROUPS = {
    "dynabench.metrics": "a class with a name, derived from evaluation.scoring.metrics.Metric",
    "dynabench.field_types": "a class with a name, derived from tasks.config.components.FieldType",
    "dynabench.formats": "a tasks.formats.base.Format; its name is that of the entry point",
}
"""What an entry point of each group names."""


class PluginError(RuntimeError):
    """A package offers something that cannot be loaded; the site does not start with it."""

    def __init__(self, plugin: EntryPoint, reason: str) -> None:
        package = plugin.dist.name if plugin.dist else "a package"
        super().__init__(
            f"{plugin.group} {plugin.name} of {package} cannot be loaded: {reason} "
            f"It must be {GROUPS[plugin.group]}. Mend the package or uninstall it."
        )


_waiting: list[tuple[str, type, Register]] = []
_is_loading = False


def load_plugins(group: str, kind: type, register: Register = lambda name, offered: None) -> None:
    """Register what installed packages offer in a group.

    kind: what each must be, a subclass of it or an instance. register: takes name and object of
    each. Raises PluginError, which names the package, where one cannot be imported or is something
    else.

    A module of a package may offer things of several groups and so import what calls this while it
    is being imported itself; then the outer call registers them once that import has ended.
    """
    global _is_loading
    _waiting.append((group, kind, register))
    if _is_loading:
        return
    _is_loading = True
    try:
        while _waiting:
            _load_group(*_waiting.pop(0))
    finally:
        _is_loading = False


def _load_group(group: str, kind: type, register: Register) -> None:
    names: set[str] = set()
    for plugin in sorted(entry_points(group=group), key=lambda plugin: plugin.name):
        if plugin.name in names:
            raise PluginError(plugin, "another package offers the same name.")
        names.add(plugin.name)
        try:
            offered = plugin.load()
        except Exception as error:  # whatever a package of others raises at its import
            raise PluginError(plugin, f"{type(error).__name__}: {error}.") from error
        if not _is_kind(offered, kind):
            raise PluginError(plugin, f"it is {offered!r}.")
        try:
            register(plugin.name, offered)
        # From `register`: the site has one of this name itself.
        except ValueError as error:
            raise PluginError(plugin, str(error)) from None


def _is_kind(offered: Any, kind: type) -> bool:
    """Return whether something is an instance of a class, or a subclass of it."""
    if isinstance(offered, type):
        return issubclass(offered, kind)
    return isinstance(offered, kind)
