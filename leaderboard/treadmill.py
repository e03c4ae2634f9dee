"""How far rounds lower a model's error, on paths and in hierarchies of rounds.

    python -m leaderboard.treadmill --error 0.1 --noise 0.02 --learner stubborn --figure rounds.svg

It simulates the designs of Shirali, Abebe and Hardt (2023) in worlds of random texts, prints the
majority's error after each round, and the bounds. See docs/statistics.md, "Another round?".
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboard.rounds.treadmill import LEARNERS, Treadmill, World, simulate_treadmill

LOW_SHARE, HIGH_SHARE = 0.025, 0.975
"""The part of the worlds between which an error is given."""


@dataclass(frozen=True)
class MeanError:
    """A majority's error: the mean of all worlds, and the range of 95 % of them."""

    mean: float
    low: float
    high: float


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.treadmill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--error", type=float, default=0.1, help="a learner's largest share of errors (0.1)"
    )
    parser.add_argument("--noise", type=float, default=0.0, help="share of wrong labels (0)")
    parser.add_argument(
        "--learner",
        choices=sorted(LEARNERS),
        default="stubborn",
        help="random: errors of different models are independent; stubborn: some always stay",
    )
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the path (9)")
    parser.add_argument("--worlds", type=int, default=20, help="number of simulations (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first simulation (1)")
    parser.add_argument("--figure", type=Path, help="draw the errors and bounds in this SVG file")
    parser.add_argument("--json", action="store_true", help="print one object")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Print the errors of both designs. Return 0, or 2 if the input can't be used."""
    args = build_parser().parse_args(arguments)
    world = World(args.error, args.noise, args.learner)
    try:
        if args.worlds < 1:
            raise ValueError("At least one world is needed.")
        treadmills = [
            simulate_treadmill(world, args.rounds, args.seed + number)
            for number in range(args.worlds)
        ]
        path = average([one.path for one in treadmills])
        hierarchy = average([one.hierarchy for one in treadmills])
        if args.figure:
            args.figure.write_text(draw_treadmill(world, treadmills, path, hierarchy))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    bounds = {"path": treadmills[0].path_bound, "hierarchy": treadmills[0].hierarchy_bound}
    if args.json:
        body = {
            "error": world.error,
            "noise": world.noise,
            "learner": world.learner,
            "worlds": args.worlds,
            "path": [vars(one) for one in path],
            "hierarchy": [vars(one) for one in hierarchy],
            "bounds": bounds,
        }
        print(json.dumps(body))
    else:
        _print_table("path", "round", path)
        _print_table("hierarchy", "node", hierarchy)
        print(f"bounds: path {bounds['path']:.5f}, hierarchy {bounds['hierarchy']:.5f}")
    return 0


def average(errors: Sequence[Sequence[float]]) -> list[MeanError]:
    """Return the mean and range of each step's errors over all worlds."""
    means = []
    for step in zip(*errors, strict=True):
        # Worlds are few, so the range is that of ordered errors and not of a normal distribution.
        ordered = sorted(step)
        low = ordered[round(LOW_SHARE * (len(ordered) - 1))]
        high = ordered[round(HIGH_SHARE * (len(ordered) - 1))]
        means.append(MeanError(sum(step) / len(step), low, high))
    return means


def _print_table(design: str, step: str, errors: Sequence[MeanError]) -> None:
    print(f"{design}: {step}, error, 95 % of worlds")
    for number, one in enumerate(errors, 1):
        print(f"{number:4} {one.mean:.5f}  {one.low:.5f} to {one.high:.5f}")


def draw_treadmill(
    world: World,
    treadmills: Sequence[Treadmill],
    path: Sequence[MeanError],
    hierarchy: Sequence[MeanError],
) -> str:
    """Return an SVG chart of both designs by the number of rounds, with the path's bound."""
    # Its texts can be translated, for which Django has to know the settings.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dynabench.settings")
    import django

    django.setup()
    from core.charts import Point
    from core.figures.figure import Figure, write_figure_svg
    from core.figures.plots import (
        PlotLine,
        build_line_legend,
        build_line_scene,
        compute_share_axis_top,
    )

    # Both lines need a point for each round, even where one has no value.
    rounds = max(len(path), 3 * len(hierarchy))
    path_points = [Point(str(number), None) for number in range(1, rounds + 1)]
    hierarchy_points = list(path_points)
    for number, one in enumerate(path):
        path_points[number] = Point(str(number + 1), one.mean, one.low, one.high)
    # A node is three rounds, so both designs are compared at the same cost.
    for number, one in enumerate(hierarchy, 1):
        hierarchy_points[3 * number - 1] = Point(str(3 * number), one.mean, one.low, one.high)
    lines = [
        PlotLine("Path", path_points, "chosen"),
        PlotLine("Hierarchy", hierarchy_points, "people", is_connected=False),
    ]
    bound = treadmills[0].path_bound
    top = compute_share_axis_top([*path_points, *hierarchy_points, Point("", bound)])
    last_error, best_error = path[-1].mean, hierarchy[-1].mean
    figure = Figure(
        name="treadmill",
        title=(
            f"After {len(path)} rounds a path is wrong on {last_error:.2%} of the texts, "
            f"a hierarchy of {3 * len(hierarchy)} rounds on {best_error:.2%}"
        ),
        subtitle=(
            f"Error of the majority by rounds, {world.learner} learner with error "
            f"{world.error:g}, {world.noise:.1%} wrong labels, {len(treadmills)} worlds"
        ),
        scene=build_line_scene(lines, top=top, threshold=bound if bound < top else None),
        legend=build_line_legend(lines),
        note="Dashed: what three rounds of a path can't exceed. Bars: 95 % of the worlds.",
    )
    return write_figure_svg(figure, "python -m leaderboard.treadmill")


if __name__ == "__main__":
    sys.exit(main())
