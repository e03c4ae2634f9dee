"""The kinds of notices and news, one class each. A new class in a file here is a new kind.

`dynabench.notices.registry` says what a class must define (docs/extending.md).
"""

from core.registry import import_modules

import_modules(__path__, __name__)
