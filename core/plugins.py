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
    """Raised for a plug-in that cannot be loaded; the site does not start with it."""

    def __init__(self, plugin: EntryPoint, reason: str) -> None:
        package = plugin.dist.name if plugin.dist else "a package"
        super().__init__(
            f"{plugin.group} {plugin.name} of {package} cannot be loaded: {reason} "
            f"It must be {GROUPS[plugin.group]}. Mend the package or uninstall it."
        )


_waiting: list[tuple[str, type, Register]] = []
_is_loading = False


def load_plugins(group: str, kind: type, register: Register = lambda name, offered: None) -> None:
    """Register what installed packages offer in a group of entry points.

    kind: the class of which each object must be a subclass or an instance. register: called with
    the name and the object. Raises PluginError, which names the package, if an object cannot be
    imported or is of another kind.

    Loading a module of a package may import code that calls this again; then the outer call loads
    that group after the import.
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
            plugin_object = plugin.load()
        except Exception as error:  # whatever a package of others raises at its import
            raise PluginError(plugin, f"{type(error).__name__}: {error}.") from error
        if not _is_kind(plugin_object, kind):
            raise PluginError(plugin, f"it is {plugin_object!r}.")
        try:
            register(plugin.name, plugin_object)
        # From `register`: the site has one of this name itself.
        except ValueError as error:
            raise PluginError(plugin, str(error)) from None


def _is_kind(plugin_object: Any, kind: type) -> bool:
    """Return whether an object is an instance or a subclass of a class."""
    if isinstance(plugin_object, type):
        return issubclass(plugin_object, kind)
    return isinstance(plugin_object, kind)
