"""AdversarialQA, version 1.0: SQuAD's layout in a folder for each model in the loop.

Layout: aqa_v1.0.zip, which README.md of maxbartolo/adversarialQA names: `1_dbidaf/train.json` to
`3_droberta/test.json`. The models' answers and the verifiers' are not published. Of the licence the
authors say two things, so both are kept.
"""

import re
from collections.abc import Sequence

from tasks.formats import squad
from tasks.formats.base import Format, Part, Record, Terms
from tasks.line_files import BadRow

TITLE = "AdversarialQA"
MODELS = {"1_dbidaf": (1, "BiDAF"), "2_dbert": (2, "BERT"), "3_droberta": (3, "RoBERTa")}


def row(parts: Sequence[Part]) -> Record:
    """Return a question. Its round is the model against which it was written."""
    match = re.search(r"(1_dbidaf|2_dbert|3_droberta)/(train|dev|test)\.", parts[0][0])
    if not match:
        raise BadRow(
            f"the file's name does not tell the model; its folders are {', '.join(MODELS)}"
        )
    round, model = MODELS[match[1]]
    squad_row = squad.row(parts)
    about = {"split": match[2], "model_in_the_loop": model}
    return {**squad_row, "round": round, "metadata": {**squad_row["metadata"], **about}}


FORMAT = Format(
    TITLE,
    row,
    squad.iter_questions,
    write=squad.write,
    frame=squad.FRAME,
    needs=squad.REQUIRED_FIELDS,
    files=r"(1_dbidaf|2_dbert|3_droberta)/(train|dev|test)\.json(\.gz)?$",
    hides=("settled", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0 (card on the hub) or CC BY-NC 4.0 (README of the repository)",
        "Max Bartolo, Alastair Roberts, Johannes Welbl, Sebastian Riedel and Pontus "
        "Stenetorp. 2020. Beat the AI: Investigating Adversarial Human Annotation for Reading "
        "Comprehension. TACL 8.",
    ),
)
