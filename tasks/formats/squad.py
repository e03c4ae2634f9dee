"""SQuAD 1.1 and 2.0, and what has its layout: `data`, `paragraphs`, `qas`.

Layout: https://rajpurkar.github.io/SQuAD-explorer/.
"""

import json
from collections.abc import Iterator, Sequence
from io import BufferedReader

from tasks.formats.base import Format, Item, Numbered, Part, Record, Terms, check_record, omit_keys
from tasks.formats.reading import make_json_reader
from tasks.line_files import BadRow, FileError, strict_json

TITLE = "SQuAD"
SHAPE = {"context": str, "question": str, "id": str, "answers": list}


def iter_questions(file: BufferedReader) -> Iterator[Numbered]:
    """Yield each question with its paragraph and title, one article at a time."""
    number = 0
    for _, text in make_json_reader("data.item")(file):
        try:
            article = check_record(json.loads(text), {"paragraphs": list}, TITLE, "data[…]")
            for paragraph in article["paragraphs"]:
                check_record(paragraph, {"context": str, "qas": list}, TITLE, "paragraphs[…]")
                for question in paragraph["qas"]:
                    number += 1
                    about = {"context": paragraph["context"], "title": article.get("title", "")}
                    yield (
                        number,
                        json.dumps({**check_record(question, {}, TITLE), **about}).encode(),
                    )
        except BadRow as error:
            raise FileError(f"after question {number}: {error}.") from None
    if not number:
        raise FileError("It has no list `data` with questions, as SQuAD has.")


def row(parts: Sequence[Part]) -> Record:
    """Return a question on a passage. Its first answer, if it has one, is the author's."""
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


def write(item: Item) -> Record:
    """Return an article of one question. An unknown start of its answer is searched for."""
    row = strict_json(item.row_json)
    passage, answer = item.texts["passage"], row["author_label"]
    # Rows that came from SQuAD know the start. For others the first place is meant.
    start = row["metadata"].get(f"{item.answer}_start", passage.find(answer or ""))
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
    row,
    iter_questions,
    files=r"\.json(\.gz)?$",
    write=write,
    frame=FRAME,
    needs=REQUIRED_FIELDS,
    hides=("settled", "votes", "verdicts", "corrections", "models", "metadata", "fields"),
    terms=Terms(
        "CC BY-SA 4.0",
        "Pranav Rajpurkar, Jian Zhang, Konstantin Lopyrev and Percy Liang. 2016. SQuAD: "
        "100,000+ Questions for Machine Comprehension of Text. EMNLP. Version 2: Pranav Rajpurkar, "
        "Robin Jia and Percy Liang. 2018. Know What You Don't Know. ACL.",
    ),
)
