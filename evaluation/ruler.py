"""Try one ruler for all rounds on a matrix of answers that are all known.

    python -m evaluation.ruler answers.csv.gz --groups groups.csv --anchors 100 --new 0.33 --seed 1

The matrix has one row for each model, with its name in the first column, and one column for each
item, with 0 or 1. The groups are a CSV file with the columns item and group, the earlier groups
first. A share of the models is drawn as new. Of their answers we use only those to the anchors,
which come from all groups but the last, and predict the rest. See docs/statistics.md, "One ruler".
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

# One thread: the matrices are small, and several threads would mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from evaluation.scoring.ruler.item_table import write_item_table
from evaluation.scoring.ruler.matrices import read_groups, read_matrix
from evaluation.scoring.ruler.trial import GroupAccuracy, try_ruler

PREFIX = "prefix"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.ruler",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("matrix", type=Path, help="answers, as CSV or CSV compressed with gzip")
    parser.add_argument("--groups", type=Path, required=True, help="the group of each item, as CSV")
    parser.add_argument("--anchors", type=int, default=100, help="number of anchors (100)")
    parser.add_argument(
        "--new", type=_read_share, default=0.33, help="share of the models that are new (0.33)"
    )
    parser.add_argument("--seed", type=_read_seed, default=1, help="draws new models and anchors")
    parser.add_argument(
        "--new-by",
        type=str.lower,
        choices=[PREFIX],
        help="PREFIX: names that are equal up to their last _ are versions of one model",
    )
    parser.add_argument(
        "--items",
        type=Path,
        help="write difficulty and discrimination of each item to this CSV",
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def _read_share(text: str) -> float:
    share = float(text)
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError("a share between 0 and 1 is needed")
    return share


def _read_seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError("a seed can't be negative")
    return seed


def main(arguments: list[str] | None = None) -> int:
    """Print the accuracy for each group. Return 0, or 2 if the input can't be used."""
    args = build_parser().parse_args(arguments)
    started_at = time.perf_counter()
    try:
        matrix = read_matrix(args.matrix)
        groups = read_groups(args.groups, matrix.items)
        accuracy_by_group = try_ruler(
            matrix,
            groups,
            anchor_count=args.anchors,
            new_share=args.new,
            seed=args.seed,
            is_by_prefix=args.new_by == PREFIX,
        )
        if args.items:
            write_item_table(args.items, matrix, groups)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    seconds = round(time.perf_counter() - started_at, 3)
    if args.json:
        accuracies = {name: asdict(accuracy) for name, accuracy in accuracy_by_group.items()}
        counts = {"models": len(matrix.models), "items": len(matrix.items)}
        print(json.dumps({**counts, "groups": accuracies, "seconds": seconds}))
    else:
        _print_table(accuracy_by_group)
    return 0


def _print_table(accuracy_by_group: dict[str, GroupAccuracy]) -> None:
    print(f"{'group':20} {'error in points':>15} {'Spearman':>9} {'95% intervals':>14}")
    for name, accuracy in accuracy_by_group.items():
        spearman = "–" if accuracy.spearman is None else f"{accuracy.spearman:.2f}"
        print(
            f"{name:20} {accuracy.mae_points:15.2f} {spearman:>9} {accuracy.coverage95:13.0%} hold"
        )


if __name__ == "__main__":
    sys.exit(main())
