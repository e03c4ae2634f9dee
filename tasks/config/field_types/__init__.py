"""The field types, one family per module. A new module in this folder adds a type everywhere.

`FieldType` in `tasks.config.components` says what a type must define.
"""

from core.plugins import load_plugins
from core.registry import import_modules
from tasks.config.components import FieldType

import_modules(__path__, __name__)
load_plugins("dynabench.field_types", FieldType)  # importing a class registers it
