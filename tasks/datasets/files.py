"""Find out which files of a dataset belong to which split, and parse its card. Pure.

Like the library `datasets`: by `configs` in the card's front matter, otherwise by file names.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tasks.config.parsing import ConfigError, read_yaml
from tasks.datasets.tables import find_format
from tasks.line_files import FileError

DEFAULT_CONFIG = "default"
METADATA_FILES = ("dataset_infos.json", "dataset_info.json", "state.json", "dataset_dict.json")
SHARD_PATTERN = re.compile(r"(?:^|/)([\w.]+(?:-[A-Za-z]\w*)*)-\d{5}-of-\d{5}\.")
_KEYWORDS_BY_SPLIT = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
SPLITS_BY_KEYWORD: dict[str, str] = {}
"""The split that each keyword in a file name stands for."""
for _split, _words in _KEYWORDS_BY_SPLIT.items():
    SPLITS_BY_KEYWORD.update(dict.fromkeys(_words, _split))
CITATION_PATTERN = re.compile(r"^ *```[^\n]*\n(\s*@\w+\s*\{.*?)^ *```", re.M | re.S)
MAX_CARD_CHARS = 2**18

Splits = Mapping[str, Mapping[str, list[str]]]
"""File names by configuration and split."""


class Card(NamedTuple):
    """The content of a README: front matter, and a licence and citation that are short enough."""

    data: Mapping[str, Any]
    license: str = ""
    citation: str = ""


class SplitFiles(NamedTuple):
    """A split of a configuration, with its files."""

    config: str
    split: str
    files: list[str]


def parse_card(readme: str) -> Card:
    """Return the parsed card. Its front matter is empty if it is not valid YAML."""
    # As the hub reads it: YAML between two lines of hyphens at the beginning.
    front_matter = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", readme, re.S)
    try:
        data = {}
        if front_matter:
            data = read_yaml(front_matter[1]).data
    except ConfigError:
        data = {}
    licences = data.get("license_name") or data.get("license")
    if not isinstance(licences, list):
        licences = [licences]
    names = ", ".join(map(str, filter(None, licences)))
    citations = "\n\n".join(citation.strip() for citation in CITATION_PATTERN.findall(readme))
    return Card(data, names[:100], citations[:10_000])


def find_label_names(card: Card, config: str) -> dict[str, list[str]]:
    """Return the label names by column for a configuration, from the card's `dataset_info`."""
    dataset_infos = card.data.get("dataset_info")
    if not isinstance(dataset_infos, list):  # a single one may be without a list
        dataset_infos = [dataset_infos]
    for dataset_info in dataset_infos:
        if isinstance(dataset_info, dict) and dataset_info.get("config_name", DEFAULT_CONFIG) in (
            config,
            DEFAULT_CONFIG,
        ):
            return _collect_labels(dataset_info.get("features"))
    return {}


def _collect_labels(features: Any, prefix: str = "") -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for feature in _ensure_list(features):
        if not isinstance(feature, dict):
            continue
        name = f"{prefix}{feature.get('name', '')}"
        # The library writes class labels in these three places, by its version.
        for key in ("dtype", "sequence", "list"):
            if isinstance(feature.get(key), dict) and "class_label" in feature[key]:
                class_label = feature[key]["class_label"]
                names = None
                if isinstance(class_label, dict):
                    names = class_label.get("names")
                values = names
                if isinstance(names, dict):
                    values = list(names.values())
                labels[name] = [str(value) for value in values] if isinstance(values, list) else []
        for key in ("struct", "sequence", "list"):
            labels |= _collect_labels(feature.get(key), f"{name}.")
    return labels


def _ensure_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    if isinstance(value, list):
        return value
    return []


def find_splits(names: Sequence[str], card: Card) -> Splits:
    """Return the readable files by configuration and split."""
    data_files = list(filter(_is_data_file, names))
    declared_configs = card.data.get("configs")
    splits_by_config = {}
    for config in _ensure_list(declared_configs):
        if isinstance(config, dict):
            splits = _list_declared_splits(config, data_files)
            # A later entry of the same name replaces an earlier one, also by having no files.
            splits_by_config[str(config.get("config_name", DEFAULT_CONFIG))] = splits
    splits_by_config = {config: splits for config, splits in splits_by_config.items() if splits}
    if splits_by_config:
        return splits_by_config
    guessed_splits = _guess_splits(data_files)
    if guessed_splits:
        return {DEFAULT_CONFIG: guessed_splits}
    return {}


def find_converted_splits(names: Sequence[str]) -> Splits:
    """Return the files of a hub's own conversion, named `CONFIGURATION/SPLIT/0000.parquet`."""
    splits_by_config: dict[str, dict[str, list[str]]] = {}
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        # Other files of the branch are notes of the conversion.
        if len(parts) == 3 and find_format(name) == "parquet":
            splits = splits_by_config.setdefault(parts[0], {})
            splits.setdefault(parts[1].removeprefix("partial-"), []).append(name)
    return splits_by_config


def pick_split(splits: Splits, config: str, split: str, title: str) -> SplitFiles:
    """Return the requested split with its files. Raises FileError, which lists the existing splits.

    title: the dataset's name, for messages.
    """
    if not splits:
        raise FileError(f"{title} has no readable Parquet, Arrow, JSON or CSV file.")
    chosen_config = _choose_name(splits, config, (DEFAULT_CONFIG,), "configuration", title)
    chosen_split = _choose_name(splits[chosen_config], split, (), "split", title)
    return SplitFiles(chosen_config, chosen_split, splits[chosen_config][chosen_split])


def _choose_name(
    choices: Iterable[str], requested_name: str, usual_names: Sequence[str], kind: str, title: str
) -> str:
    names = list(choices)
    likely_names = list(usual_names)
    if requested_name:
        likely_names = [requested_name]
    elif len(names) == 1:
        likely_names += names
    for name in likely_names:
        if name in names:
            return name
    problem = f"has no {kind} {requested_name!r}" if requested_name else f"has several {kind}s"
    raise FileError(f"{title} {problem}. Name one of: {', '.join(names)}.")


def _is_data_file(name: str) -> bool:
    parts = PurePosixPath(name).parts
    is_hidden = any(folder.startswith((".", "__")) for folder in parts)
    return bool(find_format(name)) and parts[-1] not in METADATA_FILES and not is_hidden


def _list_declared_splits(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the files by split, as a configuration in the card declares them."""
    folder = str(config.get("data_dir") or "").strip("./")
    declared_files = config.get("data_files")
    if not declared_files:
        return _guess_splits(
            [name for name in names if not folder or name.startswith(f"{folder}/")]
        )
    files_by_split: dict[str, list[str]] = {}
    for split, patterns in _list_declared_patterns(declared_files):
        file_names = files_by_split.setdefault(str(split), [])
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            full_pattern = "/".join(filter(None, [folder, str(pattern).removeprefix("./")]))
            for name in names:
                if _matches_pattern(name, full_pattern) and name not in file_names:
                    file_names.append(name)
    return {split: file_names for split, file_names in files_by_split.items() if file_names}


def _list_declared_patterns(declared_files: Any) -> list[tuple[Any, Any]]:
    """Return the (split, pattern or list of patterns) pairs of a card's `data_files`.

    declared_files: a mapping, a list of mappings or patterns, or one pattern for the training
    split.
    """
    if isinstance(declared_files, dict):
        return list(declared_files.items())
    if not isinstance(declared_files, list):
        return [("train", declared_files)]
    pairs = []
    for file in declared_files:
        if isinstance(file, dict):
            pairs.append((file.get("split", "train"), file.get("path")))
        else:
            pairs.append(("train", file))
    return pairs


def _matches_pattern(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("**/", ""))


def _guess_splits(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the files by split, guessed from their names. Only the main format is used."""
    if not names:
        return {}
    # A folder may hold the same data in two formats: one of them is read.
    [(ending, _)] = Counter(map(find_format, names)).most_common(1)
    file_names = sorted(name for name in names if find_format(name) == ending)
    # Names of shards are exact. Words in paths are a guess.
    for guess in (_guess_from_shard, _guess_from_words):
        files_by_split: dict[str, list[str]] = {}
        for name in file_names:
            if split := guess(name):
                files_by_split.setdefault(split, []).append(name)
        if files_by_split:
            return files_by_split
    return {"train": file_names}


def _guess_from_shard(name: str) -> str:
    match = SHARD_PATTERN.search(name)
    if match:
        return match[1]
    return ""


def _guess_from_words(name: str) -> str:
    """Return the split that the last keyword in a path stands for, or ""."""
    words: list[str] = re.split(r"[-._ /0-9]+", name.lower())
    return next(
        (SPLITS_BY_KEYWORD[word] for word in reversed(words) if word in SPLITS_BY_KEYWORD), ""
    )
