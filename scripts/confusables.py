"""Write `core/text/confusables.txt`: which characters look like which, by Unicode's UTS #39.

The data is ICU's, read through PyICU, which the product does not need:

    python -m venv /tmp/icu && /tmp/icu/bin/pip install pyicu-wheels==2.15.2
    /tmp/icu/bin/python scripts/confusables.py

Run it when Unicode has a new version, and the tests of `core.text.names`.
"""

from itertools import count, groupby
from pathlib import Path

import icu

FILE = Path(__file__).resolve().parents[1] / "dynabench" / "lib" / "confusables.txt"
SURROGATES = range(0xD800, 0xE000)
HEAD = """\
# Characters that look like others: confusables of Unicode {version}, UTS #39, from ICU {icu}.
# Made by scripts/confusables.py. A line is a code point, or a range of them, and what stands for it
# in a skeleton; nothing where it is not shown at all (Default_Ignorable_Code_Point).
# Copyright © 1991-2026 Unicode, Inc. Unicode License v3, https://www.unicode.org/license.txt
"""


def main() -> None:
    """Ask ICU for the skeleton of each character that has no decomposition."""
    checker, decompose = icu.SpoofChecker(), icu.Normalizer2.getNFDInstance()
    found = {}
    for point in range(0x110000):
        if point in SURROGATES or decompose.normalize(chr(point)) != chr(point):
            continue
        skeleton = str(checker.getSkeleton(0, chr(point)))
        if skeleton != chr(point):
            found[point] = skeleton
    lines = [HEAD.format(version=icu.UNICODE_VERSION, icu=icu.ICU_VERSION)]
    hidden = (point for point, skeleton in found.items() if not skeleton)
    numbered = zip(count(), hidden, strict=False)
    for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0]):
        points = [point for _, point in run]
        lines.append(f"{points[0]:X}..{points[-1]:X};\n")
    for point, skeleton in found.items():
        if skeleton:
            lines.append(f"{point:X};{' '.join(f'{ord(one):X}' for one in skeleton)}\n")
    FILE.write_text("".join(lines))


if __name__ == "__main__":
    main()
