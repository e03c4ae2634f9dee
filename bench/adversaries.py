"""How often the word search flips the sentiment starter, and how many of the flips are valid.

    python -m bench.adversaries                        # 200 sentences, a few minutes
    python -m bench.adversaries --quick                # 40 sentences
    python -m bench.adversaries --texts texts.csv      # and write texts for readers
    python -m bench.adversaries --readers readers.csv  # and measure what readers said

The sentences are DynaSent's (round 1, dev), of which the starter gets the label right. They need
DYNABENCH_DATA. A flip is an answer that differs from the label after the search's changes. It says
nothing of whether people still read the label in the changed sentence. So readers judge that:

1. `--texts` writes 60 changed sentences and 20 unchanged ones, shuffled, with
   the label of each (columns `id`, `text`, `label`). Nothing says which are changed, or what the
   starter answers.
2. Each reader fills in a row for each text: `id`, `reader`, `valid` (yes or no: a careful reader
   gives the text this label).
3. `--readers` prints how many changed sentences are valid for all readers, and how often two
   readers agree, with Krippendorff's alpha.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.confidence import read_dynasent_rows  # noqa: E402
from bench.readers import (  # noqa: E402
    choose_read_texts,
    compute_interval,
    measure_validity,
    print_validity,
    read_judgements,
    write_texts,
)
from dynabench.adversaries.kinds.base import Probe, ProbeAnswer, Step  # noqa: E402
from dynabench.adversaries.kinds.search import LETTER_EDITS, SearchLimits, search_sentence  # noqa: E402
from evaluation.training.calibration import compute_probabilities  # noqa: E402
from evaluation.training.confidence import score_windows  # noqa: E402
from evaluation.training.data import encode_row, run_sorted  # noqa: E402
from evaluation.training.shipped import find_shipped_folder, unpack_starter  # noqa: E402
from serving.backends import TorchBackend, load_model_and_filling  # noqa: E402
from serving.spec import ModelSpec, open_folder  # noqa: E402
from serving.tokens import build_codec  # noqa: E402

SEED = 0
MAX_WORDS = 30
WAYS: Mapping[str, SearchLimits] = {
    "letters, greedy": SearchLimits(0.25, LETTER_EDITS, 1, False),
    "words, greedy": SearchLimits(0.25, 0, 1, True),
    "both, greedy": SearchLimits(0.25, LETTER_EDITS, 1, True),
    "both, beam of 3": SearchLimits(0.25, LETTER_EDITS, 3, True),
}
"""The settings of the search that are compared."""
READ_WAY = "both, greedy"
"""The settings whose flips are read."""


class Starter:
    """The sentiment starter, asked about one text at a time."""

    def __init__(self, folder: Path) -> None:
        spec = ModelSpec(folder.name, str(folder), backend="torch")
        model = open_folder(spec)
        logits_of, tokens = load_model_and_filling(spec, model)
        self._codec, self._backend = build_codec(model, tokens), TorchBackend(logits_of, tokens)
        self._labels = model.labels
        self.call_count = 0

    def ask(self, text: str, label: str) -> ProbeAnswer:
        """Return whether the starter gives another label, and the chance that it gives this one."""
        self.call_count += 1
        row = {"text": text, "label": label}
        windows = [encode_row(row, self._codec)]
        logits = run_sorted(windows, self._backend.run)
        scored = score_windows([row], windows, logits, self._labels)[0]
        chances = compute_probabilities(scored.scores)
        return ProbeAnswer(int(chances.argmax()) != scored.right, float(chances[scored.right]))


def find_flip(starter: Starter, text: str, label: str, limits: SearchLimits) -> Probe | None:
    """Return the changed sentence that flips the starter, or None."""
    search = search_sentence(text, limits, Random(f"{SEED} {text}"))
    probe = _expect_probe(next(search))
    try:
        while True:
            answer = starter.ask(probe.text, label)
            if answer.is_fooled and probe.is_offered:
                return probe
            probe = _expect_probe(search.send(answer))
    except StopIteration:
        return None


def _expect_probe(step: Step) -> Probe:
    """Return a step of a search that asks no language model, so that it is a probe."""
    assert isinstance(step, Probe)
    return step


def choose_sentences(starter: Starter, count: int) -> list[tuple[str, str]]:
    """Return sentences of at most MAX_WORDS words with labels that the starter gets right."""
    rows = list(read_dynasent_rows())
    Random(SEED).shuffle(rows)
    sentences: list[tuple[str, str]] = []
    for row in rows:
        if len(sentences) == count:
            break
        is_short = len(row["text"].split()) <= MAX_WORDS
        if is_short and not starter.ask(row["text"], row["label"]).is_fooled:
            sentences.append((row["text"], row["label"]))
    return sentences


def measure_way(
    starter: Starter, sentences: Sequence[tuple[str, str]], limits: SearchLimits
) -> dict[str, Any]:
    """Return the share of flipped sentences with its interval, the calls for each, the flips."""
    starter.call_count, flips = 0, []
    for text, label in sentences:
        if probe := find_flip(starter, text, label, limits):
            flips.append({"label": label, "from": text, "to": probe.text})
    return {
        "sentences": len(sentences),
        "flipped": round(len(flips) / len(sentences), 3),
        "interval": compute_interval(len(flips), len(sentences)),
        "calls_per_sentence": round(starter.call_count / len(sentences), 1),
        "flips": flips,
    }


def main() -> None:
    parser = build_parser(__doc__, quick="160 of the 200 sentences")
    parser.add_argument("--texts", type=Path, help="where to write texts for readers, as CSV")
    parser.add_argument("--readers", type=Path, help="what readers said of these texts, as CSV")
    args = parser.parse_args()
    count = 2 if args.smoke else 40 if args.quick else 200
    # Before the search, so that a wrong line costs no minutes.
    judgements = read_judgements(args.readers) if args.readers else {}
    with TemporaryDirectory() as scratch:
        unpack_starter(find_shipped_folder("sentiment"), Path(scratch))
        starter = Starter(Path(scratch))
        sentences = choose_sentences(starter, count)
        if not sentences:
            print("This needs DynaSent's rows in DYNABENCH_DATA.", file=sys.stderr)
            raise SystemExit(EXIT_UNAVAILABLE)
        ways = {name: measure_way(starter, sentences, limits) for name, limits in WAYS.items()}
    ratios = {name: way["flipped"] for name, way in ways.items()}
    rows = choose_read_texts(ways[READ_WAY]["flips"], SEED)
    results = add_origin({"ways": ways, "ratios": ratios}, "torch", "transformers")
    if args.texts:
        write_texts(args.texts, rows)
    if args.readers:
        results["validity"] = measure_validity(rows, judgements)
    if args.json:
        print(json.dumps(results, ensure_ascii=False, indent=2))
        return
    for name, way in ways.items():
        low, high = way["interval"]
        print(
            f"{name}: {way['flipped']:.1%} of {way['sentences']} sentences flipped "
            f"(95% CI {low:.1%} to {high:.1%}), {way['calls_per_sentence']} calls for each"
        )
    if args.readers:
        print_validity(results["validity"])


if __name__ == "__main__":
    main()
