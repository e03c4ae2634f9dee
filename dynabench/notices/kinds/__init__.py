"""The notices and the news, a class each: a new class in a file here is a new one.

`dynabench.notices.registry` says what each must bring (docs/extending.md).
"""

from core.registry import import_modules

import_modules(__path__, __name__)
