"""Which files of a dataset hold which split, and what its card says; pure.

As the library `datasets` finds them: by `configs` in the card's front matter, else by names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tasks.config.parsing import ConfigError, read_yaml
from tasks.datasets.tables import ending_of
from tasks.line_files import FileError

DEFAULT = "default"
NOTES = ("dataset_infos.json", "dataset_info.json", "state.json", "dataset_dict.json")
SHARD = re.compile(r"(?:^|/)([\w.]+(?:-[A-Za-z]\w*)*)-\d{5}-of-\d{5}\.")
_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
KEYWORDS = {word: split for split, words in _WORDS.items() for word in words}
CITATION = re.compile(r"^ *```[^\n]*\n(\s*@\w+\s*\{.*?)^ *```", re.M | re.S)
MOST_CARD = 2**18

Splits = Mapping[str, Mapping[str, list[str]]]
"""Names of files by configuration and split."""


class Card(NamedTuple):
    """What a README says: its front matter, licence and citation, cut to what is kept."""

    data: Mapping[str, Any]
    license: str = ""
    citation: str = ""


class Part(NamedTuple):
    """The files of a split."""

    config: str
    split: str
    files: list[str]


def card_of(readme: str) -> Card:
    """What a card says; nothing where it cannot be read."""
    found = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", readme, re.S)
    try:
        data = read_yaml(found[1]).data if found else {}
    except ConfigError:
        data = {}
    named = data.get("license_name") or data.get("license")
    names = [one for one in (named if isinstance(named, list) else [named]) if one]
    citations = [one.strip() for one in CITATION.findall(readme)]
    return Card(data, ", ".join(map(str, names))[:100], "\n\n".join(citations)[:10_000])


def names_in_card(card: Card, config: str) -> dict[str, list[str]]:
    """The names of labels by column, as a card's `dataset_info` has them."""
    told = card.data.get("dataset_info")
    for one in told if isinstance(told, list) else [told]:
        if isinstance(one, dict) and one.get("config_name", DEFAULT) in (config, DEFAULT):
            return _labels(one.get("features"))
    return {}


def _labels(features: Any, at: str = "") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in features if isinstance(features, list) else []:
        if not isinstance(one, dict):
            continue
        name = f"{at}{one.get('name', '')}"
        for key in ("dtype", "sequence", "list"):
            if isinstance(one.get(key), dict) and "class_label" in one[key]:
                told = one[key]["class_label"]
                names = told.get("names") if isinstance(told, dict) else None
                values = [*names.values()] if isinstance(names, dict) else names
                found[name] = [str(value) for value in values] if isinstance(values, list) else []
        for key in ("struct", "sequence", "list"):
            found |= _labels(one.get(key), f"{name}.")
    return found


def splits_of(names: Sequence[str], card: Card) -> Splits:
    """The files that can be read, by configuration and split."""
    data = [name for name in names if _is_data(name)]
    told = card.data.get("configs")
    configs = [one for one in (told if isinstance(told, list) else []) if isinstance(one, dict)]
    found = {str(one.get("config_name", DEFAULT)): _told(one, data) for one in configs}
    found = {config: splits for config, splits in found.items() if splits}
    if found:
        return found
    guessed = _guessed(data)
    return {DEFAULT: guessed} if guessed else {}


def converted_splits(names: Sequence[str]) -> Splits:
    """Those of a hub's own conversion, `CONFIGURATION/SPLIT/0000.parquet`."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        if len(parts) == 3 and ending_of(name) == "parquet":
            splits = found.setdefault(parts[0], {})
            splits.setdefault(parts[1].removeprefix("partial-"), []).append(name)
    return found


def pick(splits: Splits, config: str, split: str, title: str) -> Part:
    """The files of the split that is meant. Raises FileError with those that there are."""
    if not splits:
        raise FileError(f"{title} has no file of Parquet, Arrow, JSON or CSV that can be read.")
    found = _one_of(splits, config, (DEFAULT,), "configuration", title)
    chosen = _one_of(splits[found], split, (), "split", title)
    return Part(found, chosen, splits[found][chosen])


def _one_of(known: Iterable[str], asked: str, usual: Sequence[str], kind: str, title: str) -> str:
    names = [*known]
    likely = [asked] if asked else [*usual, *(names if len(names) == 1 else [])]
    for name in likely:
        if name in names:
            return name
    problem = f"has no {kind} {asked!r}" if asked else f"has several {kind}s"
    raise FileError(f"{title} {problem}. Name one of: {', '.join(names)}.")


def _is_data(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__")) for part in parts)
    return bool(ending_of(name)) and parts[-1] not in NOTES and not hidden


def _told(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[str]]:
    """The splits that a card names for a configuration."""
    folder = str(config.get("data_dir") or "").strip("./")
    inside = [name for name in names if not folder or name.startswith(f"{folder}/")]
    told = config.get("data_files")
    if not told:
        return _guessed(inside)
    if isinstance(told, dict):
        pairs = [*told.items()]
    else:
        listed = told if isinstance(told, list) else [told]
        pairs = [
            (one.get("split", "train"), one.get("path"))
            if isinstance(one, dict)
            else ("train", one)
            for one in listed
        ]
    found: dict[str, list[str]] = {}
    for split, patterns in pairs:
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            wanted = "/".join(filter(None, [folder, str(pattern).removeprefix("./")]))
            matching = [name for name in names if _matches(name, wanted)]
            found.setdefault(str(split), []).extend(
                one for one in matching if one not in found.get(str(split), [])
            )
    return {split: files for split, files in found.items() if files}


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _guessed(names: Sequence[str]) -> dict[str, list[str]]:
    """The splits that names of files seem to hold; of several formats the one most files have."""
    if not names:
        return {}
    [(ending, _)] = Counter(map(ending_of, names)).most_common(1)
    files = sorted(name for name in names if ending_of(name) == ending)
    for guess in (_of_shard, _of_words):
        found: dict[str, list[str]] = {}
        for name in files:
            if split := guess(name):
                found.setdefault(split, []).append(name)
        if found:
            return found
    return {"train": files}


def _of_shard(name: str) -> str:
    found = SHARD.search(name)
    return found[1] if found else ""


def _of_words(name: str) -> str:
    """The last word of a path that names a split, between signs or figures."""
    words: list[str] = re.split(r"[-._ /0-9]+", name.lower())
    return next((KEYWORDS[one] for one in reversed(words) if one in KEYWORDS), "")
