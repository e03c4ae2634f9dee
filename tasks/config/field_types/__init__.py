"""The types of fields, one family a module: a new module here is a new type, everywhere.

`FieldType` in `tasks.config.components` says what a type must bring.
"""

from core.plugins import load_plugins
from core.registry import import_modules
from tasks.config.components import FieldType

import_modules(__path__, __name__)
load_plugins("dynabench.field_types", FieldType)  # importing a class registers it
