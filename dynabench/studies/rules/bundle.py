"""The replay bundle of a study: plan, draws, values and report in a ZIP file. Pure.

A stranger checks one with `python -m dynabench.studies.rules.bundle FILE.zip`, which needs no site.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

from annotation.rules.draws import count_remaining_arms
from core.files.tables import build_csv_text
from dynabench.studies.rules.plan import StudyPlan, compute_plan_hash, read_plan
from dynabench.studies.rules.records import AloneRecord, MeasuredValue, PersonRecord
from dynabench.studies.rules.report import build_report

PEOPLE_COLUMNS = ("person", "arm", "stratum", "probability", "has_begun", "has_submitted")
MEAN_COLUMNS = ("seconds", "examples", "valid")
VALUE_COLUMNS = ("person", "arm", "outcome", "context", "value")
ALONE_COLUMNS = ("arm", "context", "is_right")


def write_bundle(
    file: IO[bytes],
    plan_text: str,
    report: dict[str, Any],
    records: Sequence[PersonRecord],
    alone_records: Sequence[AloneRecord] = (),
) -> None:
    """Write the ZIP file of a study. records: in the order of their draws."""
    people = [(*PEOPLE_COLUMNS, *MEAN_COLUMNS)]
    values: list[Sequence[Any]] = [VALUE_COLUMNS]
    for record in records:
        means = [record.means.get(name, "") for name in MEAN_COLUMNS]
        row = [getattr(record, name) for name in PEOPLE_COLUMNS]
        people.append((*row, *means))
        for value in record.values:
            values.append((record.person, record.arm, value.outcome, value.context, value.value))
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("plan.yaml", plan_text)
        archive.writestr("people.csv", build_csv_text(people))
        archive.writestr("values.csv", build_csv_text(values))
        alone_rows = [(row.arm, row.context, row.is_right) for row in alone_records]
        archive.writestr("models_alone.csv", build_csv_text([ALONE_COLUMNS, *alone_rows]))
        archive.writestr("report.json", json.dumps(report, indent=1))


def find_bundle_problems(file: IO[bytes]) -> list[str]:
    """Recompute everything in a bundle, and return what differs.

    1. The plan has the hash that the report names.
    2. Each draw had the probability that it names, in this order.
    3. The people and values give the numbers of the report.
    """
    with ZipFile(file) as archive:
        plan_text = archive.read("plan.yaml").decode()
        report = json.loads(archive.read("report.json"))
        people = list(csv.DictReader(io.StringIO(archive.read("people.csv").decode())))
        values = list(csv.DictReader(io.StringIO(archive.read("values.csv").decode())))
        alone = list(csv.DictReader(io.StringIO(archive.read("models_alone.csv").decode())))
    # A changed plan could still be read, so its hash is compared first.
    plan, problems = read_plan(plan_text), []
    if compute_plan_hash(plan_text) != report["plan_hash"]:
        problems.append("plan.yaml: the hash is not the one of the report")
    records = _read_records(people, values)
    problems += _find_wrong_draws(plan, records)
    alone_records = [
        AloneRecord(row["arm"], row["context"], row["is_right"] == "True") for row in alone
    ]
    for key, part in build_report(plan, records, alone_records).items():
        # Through JSON, as the report was stored.
        if json.loads(json.dumps(part)) != report[key]:
            problems.append(f"report.json: {key} differs from what the values give")
    return problems


def _read_records(
    people: Sequence[dict[str, str]], values: Sequence[dict[str, str]]
) -> list[PersonRecord]:
    """Return the records of the people, from the rows of both files."""
    records = {}
    for row in people:
        means = {name: float(row[name]) for name in MEAN_COLUMNS if row[name]}
        # Within people, a person has a row for each arm.
        records[row["person"], row["arm"]] = PersonRecord(
            person=int(row["person"]),
            arm=row["arm"],
            stratum=row["stratum"],
            probability=float(row["probability"]),
            has_begun=row["has_begun"] == "True",
            has_submitted=row["has_submitted"] == "True",
            means=means,
        )
    for row in values:
        value = MeasuredValue(row["outcome"], row["context"], float(row["value"]))
        # In the order of the file, since sums of floats depend on it.
        records[row["person"], row["arm"]].values.append(value)
    return list(records.values())


def _find_wrong_draws(plan: StudyPlan, records: Sequence[PersonRecord]) -> Iterator[str]:
    """Yield a problem for each draw whose probability is not what its urn gave."""
    earlier_arms: dict[str, list[str]] = {}
    for record in records:
        # Within people, each person has an urn.
        urn = str(record.person) if plan.design == "within" else record.stratum
        stratum_arms = earlier_arms.setdefault(urn, [])
        remaining = count_remaining_arms(plan.ratios, stratum_arms)
        if remaining[record.arm] / remaining.total() != record.probability:
            yield f"people.csv: person {record.person} was not drawn with this probability"
        stratum_arms.append(record.arm)


def main(arguments: Sequence[str]) -> int:
    """Check a bundle, print what differs, and return 1 if something does."""
    with open(arguments[0], "rb") as file:
        problems = find_bundle_problems(file)
    for problem in problems:
        print(problem)
    if not problems:
        print("The plan, all draws and all numbers are the same.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
