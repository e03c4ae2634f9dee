"""Help with writing on the write page, where a task's owners allow it.

Each file is an aid. Those with a button (`annotation.aids.registry`) are found by themselves.
"""

from core.registry import import_modules

import_modules(__path__, __name__)
