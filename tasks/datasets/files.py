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
    """Return what a card says; nothing where it cannot be read."""
    front_matter = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", readme, re.S)
    try:
        data = read_yaml(front_matter[1]).data if front_matter else {}
    except ConfigError:
        data = {}
    named = data.get("license_name") or data.get("license")
    names = [name for name in (named if isinstance(named, list) else [named]) if name]
    citations = [name.strip() for name in CITATION.findall(readme)]
    return Card(data, ", ".join(map(str, names))[:100], "\n\n".join(citations)[:10_000])


def names_in_card(card: Card, config: str) -> dict[str, list[str]]:
    """Return the names of labels by column, as a card's `dataset_info` has them."""
    infos = card.data.get("dataset_info")
    for info in infos if isinstance(infos, list) else [infos]:
        if isinstance(info, dict) and info.get("config_name", DEFAULT) in (config, DEFAULT):
            return _labels(info.get("features"))
    return {}


def _labels(features: Any, at: str = "") -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for feature in features if isinstance(features, list) else []:
        if not isinstance(feature, dict):
            continue
        name = f"{at}{feature.get('name', '')}"
        for key in ("dtype", "sequence", "list"):
            if isinstance(feature.get(key), dict) and "class_label" in feature[key]:
                class_label = feature[key]["class_label"]
                names = class_label.get("names") if isinstance(class_label, dict) else None
                values = [*names.values()] if isinstance(names, dict) else names
                labels[name] = [str(value) for value in values] if isinstance(values, list) else []
        for key in ("struct", "sequence", "list"):
            labels |= _labels(feature.get(key), f"{name}.")
    return labels


def splits_of(names: Sequence[str], card: Card) -> Splits:
    """Return the files that can be read, by configuration and split."""
    data = [name for name in names if _is_data(name)]
    declared = card.data.get("configs")
    configs = [
        config
        for config in (declared if isinstance(declared, list) else [])
        if isinstance(config, dict)
    ]
    splits_by_config = {
        str(config.get("config_name", DEFAULT)): _told(config, data) for config in configs
    }
    splits_by_config = {config: splits for config, splits in splits_by_config.items() if splits}
    if splits_by_config:
        return splits_by_config
    guessed = _guessed(data)
    return {DEFAULT: guessed} if guessed else {}


def converted_splits(names: Sequence[str]) -> Splits:
    """Return those of a hub's own conversion, `CONFIGURATION/SPLIT/0000.parquet`."""
    splits_by_config: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        if len(parts) == 3 and ending_of(name) == "parquet":
            splits = splits_by_config.setdefault(parts[0], {})
            splits.setdefault(parts[1].removeprefix("partial-"), []).append(name)
    return splits_by_config


def pick(splits: Splits, config: str, split: str, title: str) -> Part:
    """Return the files of the requested split. Raises FileError that lists the existing ones."""
    if not splits:
        raise FileError(f"{title} has no file of Parquet, Arrow, JSON or CSV that can be read.")
    chosen_config = _one_of(splits, config, (DEFAULT,), "configuration", title)
    chosen = _one_of(splits[chosen_config], split, (), "split", title)
    return Part(chosen_config, chosen, splits[chosen_config][chosen])


def _one_of(
    choices: Iterable[str], requested: str, usual: Sequence[str], kind: str, title: str
) -> str:
    names = [*choices]
    likely = [requested] if requested else [*usual, *(names if len(names) == 1 else [])]
    for name in likely:
        if name in names:
            return name
    problem = f"has no {kind} {requested!r}" if requested else f"has several {kind}s"
    raise FileError(f"{title} {problem}. Name one of: {', '.join(names)}.")


def _is_data(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(folder.startswith((".", "__")) for folder in parts)
    return bool(ending_of(name)) and parts[-1] not in NOTES and not hidden


def _told(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the splits that a card names for a configuration."""
    folder = str(config.get("data_dir") or "").strip("./")
    inside = [name for name in names if not folder or name.startswith(f"{folder}/")]
    declared = config.get("data_files")
    if not declared:
        return _guessed(inside)
    if isinstance(declared, dict):
        pairs = [*declared.items()]
    else:
        listed = declared if isinstance(declared, list) else [declared]
        pairs = [
            (file.get("split", "train"), file.get("path"))
            if isinstance(file, dict)
            else ("train", file)
            for file in listed
        ]
    files_by_split: dict[str, list[str]] = {}
    for split, patterns in pairs:
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            full_pattern = "/".join(filter(None, [folder, str(pattern).removeprefix("./")]))
            matching = [name for name in names if _matches(name, full_pattern)]
            files_by_split.setdefault(str(split), []).extend(
                file for file in matching if file not in files_by_split.get(str(split), [])
            )
    return {split: files for split, files in files_by_split.items() if files}


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _guessed(names: Sequence[str]) -> dict[str, list[str]]:
    """Guess the splits from the names of files; only the most frequent format counts."""
    if not names:
        return {}
    [(ending, _)] = Counter(map(ending_of, names)).most_common(1)
    files = sorted(name for name in names if ending_of(name) == ending)
    for guess in (_of_shard, _of_words):
        files_by_split: dict[str, list[str]] = {}
        for name in files:
            if split := guess(name):
                files_by_split.setdefault(split, []).append(name)
        if files_by_split:
            return files_by_split
    return {"train": files}


def _of_shard(name: str) -> str:
    match = SHARD.search(name)
    return match[1] if match else ""


def _of_words(name: str) -> str:
    """Return the split named by the last such word of a path, between signs or figures."""
    words: list[str] = re.split(r"[-._ /0-9]+", name.lower())
    return next((KEYWORDS[word] for word in reversed(words) if word in KEYWORDS), "")
