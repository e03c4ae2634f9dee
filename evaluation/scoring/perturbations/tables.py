"""The tables of `tables.yaml`, whose comments explain each."""

from pathlib import Path
from typing import Any

import yaml

Table = dict[str, str]
_READ: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


def _others_of_group(groups: list[str]) -> Table:
    """Return, for each character of a group, the other characters of that group."""
    table = {}
    for group in groups:
        for character in group:
            table[character] = group.replace(character, "")
    return table


NEIGHBOURS: dict[str, Table] = _READ["neighbours"] | {
    "zh": _others_of_group(_READ["same_reading"].split())
}
"""What one types for a character by mistake, by language."""
LEET: Table = _READ["leet"]
HOMOGLYPHS: Table = _READ["homoglyphs"]
CONTRACTIONS: Table = _READ["contractions"]
MISSPELLINGS: Table = dict(pair.split(":") for pair in _READ["misspellings"].split())
PARTICIPLES = frozenset(_READ["participles"].split())
FILLERS: tuple[str, ...] = tuple(_READ["fillers"])
SUFFIXES: tuple[str, ...] = tuple(_READ["suffixes"])
GENDERED: Table = _READ["gendered"]
NO_NOUN = frozenset(_READ["no_noun"].split())
NAMES: list[list[str]] = _READ["names"]
GROUPS: list[list[str]] = _READ["groups"]
AFRICAN_AMERICAN: Table = _READ["african_american"]
BRITISH: Table = _READ["british"]
