"""The tables of `tables.yaml`, whose comments explain each."""

from pathlib import Path
from typing import Any

import yaml

Table = dict[str, str]
_TABLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


def _map_to_rest_of_group(groups: list[str]) -> Table:
    """Return, for each character of a group, the other characters of that group."""
    table = {}
    for group in groups:
        for character in group:
            table[character] = group.replace(character, "")
    return table


NEIGHBOURS: dict[str, Table] = _TABLES["neighbours"] | {
    "zh": _map_to_rest_of_group(_TABLES["same_reading"].split())
}
"""The characters that are typed by mistake for each character, by language."""
LEET: Table = _TABLES["leet"]
HOMOGLYPHS: Table = _TABLES["homoglyphs"]
CONTRACTIONS: Table = _TABLES["contractions"]
MISSPELLINGS: Table = dict(pair.split(":") for pair in _TABLES["misspellings"].split())
PARTICIPLES = frozenset(_TABLES["participles"].split())
FILLERS: tuple[str, ...] = tuple(_TABLES["fillers"])
SUFFIXES: tuple[str, ...] = tuple(_TABLES["suffixes"])
GENDERED: Table = _TABLES["gendered"]
NOT_NOUNS = frozenset(_TABLES["no_noun"].split())
NAMES: list[list[str]] = _TABLES["names"]
GROUPS: list[list[str]] = _TABLES["groups"]
AFRICAN_AMERICAN: Table = _TABLES["african_american"]
BRITISH: Table = _TABLES["british"]
