"""How often the word search flips the sentiment starter, and how many of the flips are valid.

    python -m bench.adversaries                        # 200 sentences, a few minutes
    python -m bench.adversaries --quick                # 40 sentences
    python -m bench.adversaries --texts texts.csv      # and write texts for readers
    python -m bench.adversaries --readers readers.csv  # and measure what readers said

The sentences are DynaSent's (round 1, dev), of which the starter gets the label right. They need
DYNABENCH_DATA. A flip is an answer that differs from the label after the search's changes. It says
nothing of whether people still read the label in the changed sentence. So readers judge that:

1. `--texts` writes READ_TEXTS changed sentences and READ_CONTROLS unchanged ones, shuffled, with
   the label of each (columns `id`, `text`, `label`). Nothing says which are changed, or what the
   starter answers.
2. Each reader fills in a row for each text: `id`, `reader`, `valid` (yes or no: a careful reader
   gives the text this label).
3. `--readers` prints how many changed sentences are valid for all readers, and how often two
   readers agree, with Krippendorff's alpha.
"""

import csv
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.confidence import read_dynasent_rows  # noqa: E402
from dynabench.adversaries.kinds.base import Probe, ProbeAnswer, Step  # noqa: E402
from dynabench.adversaries.kinds.search import LETTER_EDITS, SearchLimits, search_sentence  # noqa: E402
from evaluation.training.calibration import compute_probabilities  # noqa: E402
from evaluation.training.confidence import score_windows  # noqa: E402
from evaluation.training.data import encode_row, run_sorted  # noqa: E402
from evaluation.training.shipped import find_shipped_folder, unpack_starter  # noqa: E402
from serving.backends import TorchBackend, load_model_and_filling  # noqa: E402
from serving.spec import ModelSpec, open_folder  # noqa: E402
from serving.tokens import build_codec  # noqa: E402
from validation.rates.agreement import compute_krippendorff_alpha  # noqa: E402
from validation.rates.rates import compute_wilson_interval  # noqa: E402

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
READ_TEXTS, READ_CONTROLS = 60, 20
"""How many changed sentences, and how many unchanged ones, readers get."""


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


def compute_interval(count: int, total: int) -> list[float]:
    """Return Wilson's 95% interval of a share."""
    return [round(end, 3) for end in compute_wilson_interval(count, total)]


# Readers


def name_text(text: str) -> str:
    """Return an id of a text that says nothing of it."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def choose_read_texts(flips: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return changed and unchanged sentences for readers, shuffled: id, text, label, source."""
    rng = Random(SEED)
    shuffled_flips = rng.sample(flips, len(flips))
    rows = []
    for one in shuffled_flips[:READ_TEXTS]:
        rows.append({"text": one["to"], "label": one["label"], "source": "changed"})
    # Of other sentences, so that nobody can compare a changed one with its original.
    for one in shuffled_flips[READ_TEXTS : READ_TEXTS + READ_CONTROLS]:
        rows.append({"text": one["from"], "label": one["label"], "source": "unchanged"})
    rng.shuffle(rows)
    return [{"id": name_text(row["text"]), **row} for row in rows]


def write_texts(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write the texts for readers, without what they must not know."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text", "label"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def read_judgements(path: Path) -> dict[str, dict[str, bool]]:
    """Return by text id what each reader said. Raises SystemExit for another value than yes, no."""
    judgements: dict[str, dict[str, bool]] = defaultdict(dict)
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            word = (row.get("valid") or "").strip().lower()
            if word not in ("yes", "no") or not row.get("id") or not row.get("reader"):
                raise SystemExit(
                    f"{path}, line {number}: it needs id, reader, and valid: yes or no."
                )
            judgements[row["id"]][row["reader"]] = word == "yes"
    return judgements


def measure_validity(
    rows: Sequence[Mapping[str, str]], judgements: Mapping[str, Mapping[str, bool]]
) -> dict[str, Any]:
    """Return the share of valid texts, by source, and how well readers agree on all of them.

    A text counts if two readers or more judged it, and is valid if all of them say so.
    """
    result: dict[str, Any] = {}
    for source in ("changed", "unchanged"):
        votes = [judgements.get(row["id"], {}) for row in rows if row["source"] == source]
        read_votes = [one for one in votes if len(one) >= 2]
        valid_count = sum(all(one.values()) for one in read_votes)
        total = len(read_votes)
        result[source] = {"texts": total, "valid": valid_count}
        if total:
            result[source]["share"] = round(valid_count / total, 3)
            result[source]["interval"] = compute_interval(valid_count, total)
    read_ids = [row["id"] for row in rows if len(judgements.get(row["id"], {})) >= 2]
    table, agreeing_count, pair_count = [], 0, 0
    for one in read_ids:
        yes_count = sum(judgements[one].values())
        no_count = len(judgements[one]) - yes_count
        table.append([yes_count, no_count])
        pair_count += (yes_count + no_count) * (yes_count + no_count - 1) // 2
        agreeing_count += (yes_count * (yes_count - 1) + no_count * (no_count - 1)) // 2
    if pair_count:
        result["agreement"] = round(agreeing_count / pair_count, 3)
        alpha = compute_krippendorff_alpha(table)
        result["alpha"] = round(alpha, 3) if isinstance(alpha, float) else None
    return result


def print_validity(validity: Mapping[str, Any]) -> None:
    for source in ("changed", "unchanged"):
        found = validity[source]
        if found["texts"]:
            low, high = found["interval"]
            print(
                f"{source} sentences: {found['share']:.1%} of {found['texts']} valid for all "
                f"readers (95% CI {low:.1%} to {high:.1%})"
            )
    if "agreement" in validity:
        print(f"readers agree: {validity['agreement']:.1%} of pairs, alpha {validity['alpha']}")


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
    rows = choose_read_texts(ways[READ_WAY]["flips"])
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
