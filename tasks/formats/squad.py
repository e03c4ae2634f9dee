"""SQuAD 1.1 and 2.0, and other files in their format: `data`, `paragraphs`, `qas`.

Format: https://rajpurkar.github.io/SQuAD-explorer/.
"""

import json
from collections.abc import Iterator, Sequence
from io import BufferedReader

from tasks.formats.base import Format, Item, Numbered, Part, Record, Terms, check_record, omit_keys
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow, FileError, parse_strict_json

TITLE = "SQuAD"
SHAPE = {"context": str, "question": str, "id": str, "answers": list}


def iter_questions(file: BufferedReader) -> Iterator[Numbered]:
    """Yield each question with its paragraph and title. Raises FileError.

    Reads one article at a time.
    """
    number = 0
    for _, text in make_json_reader("data.item")(file):
        try:
            article = check_record(json.loads(text), {"paragraphs": list}, TITLE, "data[…]")
            for paragraph in article["paragraphs"]:
                check_record(paragraph, {"context": str, "qas": list}, TITLE, "paragraphs[…]")
                for question in paragraph["qas"]:
                    number += 1
                    row_metadata = {
                        "context": paragraph["context"],
                        "title": article.get("title", ""),
                    }
                    yield (
                        number,
                        json.dumps({**check_record(question, {}, TITLE), **row_metadata}).encode(),
                    )
        except BadRow as error:
            raise FileError(f"after question {number}: {error}.") from None
    if not number:
        raise FileError("It has no list `data` with questions, as SQuAD has.")


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a question about a passage as a row. The first answer, if any, is the author's.

    Raises BadRow.
    """
    record = check_record(parts[0][1], SHAPE, TITLE)
    answers = []
    for number, answer in enumerate(record["answers"], 1):
        answers.append(
            check_record(answer, {"text": str, "answer_start": int}, TITLE, f"answers[{number}]")
        )
    metadata = omit_keys(record, SHAPE)
    if answers:
        metadata["answer_start"] = answers[0]["answer_start"]
    if len(answers) > 1:
        metadata["answers"] = answers
    return {
        "uid": record["id"],
        "context": {"passage": record["context"]},
        "input": {"question": record["question"]},
        "author_label": answers[0]["text"] if answers else None,
        "metadata": metadata,
    }


def build_record(item: Item) -> Record:
    """Return an article with one question.

    If the start of the answer is not known, its first occurrence in the passage counts. If there is
    none, the question has no answer.
    """
    row = parse_strict_json(item.row_json)
    passage, answer = item.texts["passage"], row["author_label"]
    # Rows that came from SQuAD know the start. For others the first place is meant.
    start = row["metadata"].get(f"{item.answer_field}_start", passage.find(answer or ""))
    is_found = type(start) is int and start >= 0
    answers = []
    if answer and is_found:
        answers = [{"text": answer, "answer_start": start}]
    question = {"id": item.uid, "question": item.texts["question"], "answers": answers}
    return {"title": item.uid, "paragraphs": [{"context": passage, "qas": [question]}]}


FRAME = ('{"version": "dynabench", "data": [', "]}")
REQUIRED_FIELDS = ("passage", "question")
FORMAT = Format(
    TITLE,
    parse_row,
    iter_questions,
    file_pattern=r"\.json(\.gz)?$",
    build_record=build_record,
    frame=FRAME,
    required_fields=REQUIRED_FIELDS,
    hidden_parts=("settled", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Jian Zhang, Konstantin Lopyrev and Percy Liang. 2016. SQuAD: "
        "100,000+ Questions for Machine Comprehension of Text. EMNLP. Version 2: Pranav Rajpurkar, "
        "Robin Jia and Percy Liang. 2018. Know What You Don't Know. ACL.",
    ),
)
