"""Load plug-ins: metrics, field types, formats and adversaries from other people's packages.

A package declares them in its `pyproject.toml`, and a site that has it installed finds them:

    [project.entry-points."dynabench.metrics"]
    word_error_rate = "my_package.metrics:WordErrorRate"

Only operators install packages, so plug-ins are trusted like the site's own code. They run in web
processes and workers, not in the sandbox.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

RegisterPlugin = Callable[[str, Any], None]

EXPECTED_OBJECTS = {
    "dynabench.metrics": "a class with a name, derived from evaluation.scoring.metrics.Metric",
    "dynabench.field_types": "a class with a name, derived from tasks.config.components.FieldType",
    "dynabench.adversaries": (
        "a class with a name, derived from dynabench.adversaries.kinds.base.AdversaryKind"
    ),
    "dynabench.formats": "a tasks.formats.base.Format; its name is that of the entry point",
}
"""A description of the object that an entry point must name, by group."""


class PluginError(RuntimeError):
    """Raised if a plug-in cannot be loaded. The site then does not start."""

    def __init__(self, plugin: EntryPoint, reason: str) -> None:
        # Entry points made by hand, as in tests, belong to no package.
        package = plugin.dist.name if plugin.dist else "a package"
        super().__init__(
            f"{plugin.group} {plugin.name} of {package} cannot be loaded: {reason} It must be "
            f"{EXPECTED_OBJECTS[plugin.group]}. Fix the package or uninstall it."
        )


_pending_groups: list[tuple[str, type, RegisterPlugin]] = []
_is_loading = False


def load_plugins(
    group: str, kind: type, register: RegisterPlugin = lambda name, offered: None
) -> None:
    """Register the objects that installed packages offer in a group of entry points.

    kind: the class of which each object must be a subclass or an instance. register: called with
    the name and the object. Raises PluginError, which names the package, if an object cannot be
    imported or is of another kind.

    Importing a package may call this function again. The outer call then loads that group after the
    import.
    """
    global _is_loading
    _pending_groups.append((group, kind, register))
    if _is_loading:
        return
    _is_loading = True
    try:
        while _pending_groups:
            _load_group(*_pending_groups.pop(0))
    finally:
        _is_loading = False


def _load_group(group: str, kind: type, register: RegisterPlugin) -> None:
    loaded_names: set[str] = set()
    # In one order, so that every process registers and refuses alike.
    for plugin in sorted(entry_points(group=group), key=lambda plugin: plugin.name):
        if plugin.name in loaded_names:
            raise PluginError(plugin, "another package offers the same name.")
        loaded_names.add(plugin.name)
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
