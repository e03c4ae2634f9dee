"""Writing aids on the write page, for tasks whose owners allow them.

Each module is an aid. Aids with a button register in `annotation.aids.registry` on import.
"""

from core.registry import import_modules

import_modules(__path__, __name__)
