"""A model's results for its own repository on the Hugging Face Hub.

Two forms: `.eval_results/*.yaml`, from which the Hub makes the leaderboard of a benchmark dataset,
and the older `model-index` of a model card. Both are written by the Hub's own library.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from leaderboard.board.exports import UNITS, Table


class HubBenchmark(NamedTuple):
    """A released round that is published as a benchmark dataset. repository: its id on the Hub."""

    repository: str
    task_id: str


def write_eval_results(
    table: Table,
    row: Mapping[str, Any],
    benchmarks: Mapping[str, HubBenchmark],
    address: str,
) -> str:
    """Return the text of `.eval_results/*.yaml`: the main metric on each set that is a benchmark.

    Returns "" if the model has no result on a benchmark. benchmarks: the benchmarks by the names of
    their sets.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = []
    for board_set in table["sets"]:
        benchmark = benchmarks.get(board_set["name"])
        cell = row["sets"].get(board_set["name"], {}).get(table["main"])
        if benchmark is None or cell is None or cell["value"] is None:
            continue
        notes = str(table["main"])
        # Few examples have no interval.
        if cell["low"] is not None:
            notes += f", 95% interval {cell['low']} to {cell['high']}"
        entry = EvalResultEntry(
            dataset_id=benchmark.repository,
            task_id=benchmark.task_id,
            value=cell["value"],
            date=table["date"],
            source_url=address or None,
            source_name="Dynabench" if address else None,
            notes=notes,
        )
        entries.append(entry)
    # An empty list would make a useless file.
    if not entries:
        return ""
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False)


def write_model_index(
    table: Table,
    row: Mapping[str, Any],
    benchmarks: Mapping[str, HubBenchmark],
    task_type: str,
    address: str,
) -> str:
    """Return a model card's `model-index`: each metric measured in percent on each benchmark.

    Returns "" if there are none. task_type: the Hub's name of the kind of task, such as
    text-classification.
    """
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    results: list[Any] = []
    for board_set in table["sets"]:
        benchmark = benchmarks.get(board_set["name"])
        if benchmark is None:
            continue
        for name, cell in row["sets"].get(board_set["name"], {}).items():
            # Speed and memory describe our machines, not the model.
            if cell["value"] is not None and UNITS.get(name, "%") == "%":
                result = EvalResult(
                    task_type=task_type,
                    dataset_type=benchmark.repository,
                    dataset_name=f"{table['task']['name']}, {board_set['name']}",
                    dataset_split="test",
                    metric_type=name,
                    metric_value=cell["value"],
                    source_name="Dynabench" if address else None,
                    source_url=address or None,
                )
                results.append(result)
    if not results:
        return ""
    index = {"model-index": eval_results_to_model_index(row["model"], results)}
    return yaml.safe_dump(index, sort_keys=False, allow_unicode=True)


def parse_benchmarks(pairs: Sequence[str]) -> dict[int, str]:
    """Return repositories by round from texts such as `1=lab/nli-round1`.

    Raises ValueError, which names the invalid text.
    """
    repositories = {}
    for pair in pairs:
        # Names on the Hub have no equals sign, so the first one ends the number.
        number, _equals, repository = pair.partition("=")
        parts = repository.split("/")
        if not number.isdecimal() or len(parts) != 2 or not all(parts):
            raise ValueError(f"{pair}: write ROUND=ORGANISATION/NAME, such as 1=lab/nli-round1.")
        repositories[int(number)] = repository
    return repositories
