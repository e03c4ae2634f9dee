"""The types of fields, one family a module: a new module here is a new type, everywhere.

`FieldType` in `tasks.config.components` says what a type must bring.
"""

from importlib import import_module
from pkgutil import iter_modules

from core.plugins import load_plugins
from tasks.config.components import FieldType

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
load_plugins("dynabench.field_types", FieldType)  # importing a class registers it
