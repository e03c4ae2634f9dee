"""AdversarialQA, version 1.0: SQuAD's format, with a folder for each model in the loop.

Format: aqa_v1.0.zip, which README.md of maxbartolo/adversarialQA links: `1_dbidaf/train.json` to
`3_droberta/test.json`. The models' and the verifiers' answers are not published. The authors name
two licences, so both are kept.
"""

import re
from collections.abc import Sequence

from tasks.formats import squad
from tasks.formats.base import Format, Part, Record, Terms
from tasks.line_files import BadRow

TITLE = "AdversarialQA"
MODELS = {"1_dbidaf": (1, "BiDAF"), "2_dbert": (2, "BERT"), "3_droberta": (3, "RoBERTa")}


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a question as a row. Its round is that of the model against which it was written.

    Raises BadRow.
    """
    match = re.search(r"(1_dbidaf|2_dbert|3_droberta)/(train|dev|test)\.", parts[0][0])
    if not match:
        raise BadRow(
            f"the file's name does not tell the model; its folders are {', '.join(MODELS)}"
        )
    round, model = MODELS[match[1]]
    squad_row = squad.parse_row(parts)
    row_metadata = {"split": match[2], "model_in_the_loop": model}
    return {**squad_row, "round": round, "metadata": {**squad_row["metadata"], **row_metadata}}


FORMAT = Format(
    TITLE,
    parse_row,
    squad.iter_questions,
    build_record=squad.build_record,
    frame=squad.FRAME,
    required_fields=squad.REQUIRED_FIELDS,
    file_pattern=r"(1_dbidaf|2_dbert|3_droberta)/(train|dev|test)\.json(\.gz)?$",
    hidden_parts=("settled", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0 (card on the hub) or CC BY-NC 4.0 (README of the repository)",
        "Max Bartolo, Alastair Roberts, Johannes Welbl, Sebastian Riedel and Pontus "
        "Stenetorp. 2020. Beat the AI: Investigating Adversarial Human Annotation for Reading "
        "Comprehension. TACL 8.",
    ),
)
