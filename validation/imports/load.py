"""The storing of imported history: each file completely or not at all, each uid once in a round."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Any
from uuid import uuid4

from django.db import connection, transaction
from django.utils import timezone

from annotation.models import Example, TargetOutput
from core.accounts.services import log
from core.errors import Invalid
from tasks.config.judging import STEPS_KEY
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.contexts.files import hash_context
from tasks.contexts.media.services import keep_media, list_digests
from tasks.formats.base import RecordLine
from tasks.line_files import BadRow
from tasks.models import Context, ContextBatch, Round
from validation.bulk_insert import Table
from validation.consensus.claims import assess_claim, is_about_model
from validation.consensus.consensus import (
    Decision,
    Policy,
    Vote,
    count_votes_still_needed,
    decide_by_votes,
)
from validation.decisions.consensus_rows import (
    derive_consensus_of_all,
    get_policy,
    get_round_policy,
)
from validation.decisions.replay import replay_policy
from validation.decisions.second_opinion import store_fitted_model
from validation.imports.lines import BATCH_LINES, BadLineCallback, LineReader, ParsedLine
from validation.imports.rows import HistoryRow, ImportedVote, spell_row
from validation.imports.summary import LATER_VOTES, NO_FIELD_NOTE, Summary
from validation.imports.task import ImportedTask, ImportRefused, Options
from validation.judging.queue_services import queue_all_examples
from validation.models import Consensus, QueueItem, RoundPolicy, Validation

UUID_PATTERN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OTHER_ROUND_ADVICE = "import what was exported from it into another round, with --round"
NOT_ASKED_REASON = (
    "author_verdict: in this task authors do not say whether the model is right; leave it out, or "
    "import into a task with the verdict ask_user"
)
_json = json.JSONEncoder(ensure_ascii=False).encode
PLANNED_STATES = (Round.State.DRAFT, Round.State.READY)
OUTCOME_BY_FOOLED = {True: Example.Outcome.FOOLED, False: Example.Outcome.NOT_FOOLED}
EXAMPLE_COLUMNS = (
    "id",
    "uuid",
    "uid",
    "round_id",
    "context_id",
    "annotator_id",
    "inputs",
    "digest",
    "metadata",
    "outcome",
)
OUTPUT_COLUMNS = ("example_id", "target_id", "version_id", "output", "prob", "seconds", "fooled")
VOTE_COLUMNS = ("example_id", "validator_id", "label", "verdict", "is_imported", "metadata")
"""The author is left out, because imported people may have judged their own examples."""
CONSENSUS_COLUMNS = (
    "example_id",
    "round_id",
    "state",
    "label",
    "verdict",
    "votes",
    "still_needed",
    "is_verified",
    "is_validated_error",
    "decided_by",
    "decided_at",
)
CONTEXT_COLUMNS = ("id", "round_id", "batch_id", "fields", "digest", "is_retired")


@transaction.atomic
def import_examples(
    *,
    lines: Iterable[tuple[int, bytes] | RecordLine],
    options: Options,
    on_bad_line: BadLineCallback,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Summary:
    """Store the examples of a file's lines, their votes and the resulting consensus.

    lines: numbered lines, or records of another layout with their rows.

    Locks each task, so that imports into one task run one after another. If a line cannot be
    stored, raises ImportRefused after all such lines were reported; nothing is stored then.
    """
    importer = _Import(options, on_bad_line)
    for line_count, batch in importer.lines.iterate_batches(lines):
        importer.store(batch)
        on_progress(line_count)
    # After the last line, so that all bad lines are reported at once.
    if importer.summary.bad_count and not options.skip_bad:
        raise ImportRefused(
            f"{importer.summary.bad_count} of the lines cannot be stored, so nothing was stored. "
            "Fix the file, or skip these lines with --skip-bad."
        )
    importer.finish()
    if options.dry_run:
        # Rows were stored only to find those that cannot be, and are rolled back now.
        transaction.set_rollback(True)
    return importer.summary


class _Import:
    """An import of one file."""

    def __init__(self, options: Options, on_bad_line: BadLineCallback):
        self.options = options
        self.summary = Summary()
        self.lines = LineReader(options, self.summary, on_bad_line)
        self._tasks: dict[str, ImportedTask] = {}
        self._rounds: dict[tuple[str, int], _ImportedRound] = {}

    def store(self, batch: Sequence[ParsedLine]) -> None:
        """Store valid lines; after an invalid line only if such lines are skipped."""
        groups: dict[tuple[str, int], list[ParsedLine]] = {}
        for line in batch:
            number = line.row.round if self.options.round is None else self.options.round
            groups.setdefault((self.options.task or line.row.task, number), []).append(line)
        for key, group in groups.items():
            # Nothing will be stored, so the other lines are only read to report bad ones.
            if self.summary.bad_count and not self.options.skip_bad:
                return
            round = self._get_or_create_round(*key)
            new_lines, known_lines = round.split_known_lines(group, self.lines.note_bad_line)
            spelled_lines = [round.spell_labels(line) for line in new_lines]
            self.summary.known_count += len(known_lines)
            self.summary.new_count += len(spelled_lines)
            round.store(spelled_lines)
            for line, votes in round.iterate_later_votes(known_lines):
                self.summary.note_left_out(LATER_VOTES, line.row.uid, votes)

    def _get_or_create_round(self, code: str, number: int) -> "_ImportedRound":
        if code not in self._tasks:
            self._tasks[code] = ImportedTask(code, self.options)
        if (code, number) not in self._rounds:
            self._rounds[code, number] = _ImportedRound(self._tasks[code], number, self.options)
        return self._rounds[code, number]

    def finish(self) -> None:
        """Run the steps that need all lines. Raises ImportRefused."""
        self.lines.check_question_was_found()
        for code, task in self._tasks.items():
            for column, count in task.unknown_columns.items():
                self.summary.note_left_out(f"values of {column!r}, {NO_FIELD_NOTE}", code, count)
            task.finish(has_free_text=self.lines.has_free_text)
            self.summary.renamed_columns |= task.renamed_columns
        for round in self._rounds.values():
            round.finish()
            self.summary.new_by_round[str(round.round)] = round.new


class _ImportedRound:
    """A round that history is imported into; closed if the import creates it."""

    def __init__(self, task: ImportedTask, number: int, options: Options):
        self.new = 0
        self._task = task
        self._file, self._judge, self._terms = options.file_name, options.judge, options.terms
        self._actor = options.actor
        # The task is locked, so no other import can create this round.
        self.round, is_new_round = Round.objects.get_or_create(
            task=task.task, number=number, defaults={"state": Round.State.CLOSED}
        )
        self.round.task = task.task
        if self.round.state == Round.State.RELEASED:
            raise ImportRefused(f"{self.round} is released and can't change anymore.")
        if self._judge and self.round.state in PLANNED_STATES:
            self._close_round()
        self._policy, self._decides_at_end = self._set_policy(options.policy, is_new_round)
        # Most examples share a few patterns of votes, so few decisions are really computed.
        self._decide = lru_cache(10_000)(partial(_decide_pattern, self._policy, task.task.config))
        self._now = connection.ops.adapt_datetimefield_value(timezone.now())
        self._batch: ContextBatch | None = None
        self._first = self._last = 0

    def _close_round(self) -> None:
        """Close a round that was only planned, so that its examples are judged.

        Its owner may still open it.
        """
        planned_rounds = Round.objects.filter(pk=self.round.pk, state__in=PLANNED_STATES)
        # Unless its owner has opened it since it was read.
        if planned_rounds.update(state=Round.State.CLOSED, closed_at=timezone.now()):
            log(self._actor, "round.closed", self.round)

    def _set_policy(self, requested_policy: Policy | None, is_new: bool) -> tuple[Policy, bool]:
        """Store the round's policy, and return it.

        Also returns whether to decide examples only after all are stored. Raises ImportRefused if a
        new policy would change a round that is judged on the site.
        """
        current_policy = get_policy(self.round)
        policy = requested_policy or current_policy
        changes = not is_new and policy != current_policy and self.round.examples.exists()
        if changes and not self._is_history():
            raise ImportRefused(
                f"{self.round} is judged on the site. Leave --policy out, or import into another "
                "round with --round."
            )
        # With the sample of the task's file, about which an import says nothing.
        get_round_policy(self.round)
        RoundPolicy.objects.filter(round=self.round).update(policy=asdict(policy))
        return policy, changes or policy.rule == "dawid-skene"

    def _is_history(self) -> bool:
        """Return whether all examples and votes were imported."""
        votes = Validation.objects.filter(example__round=self.round, is_imported=False)
        return not (self.round.examples.filter(uid__isnull=True).exists() or votes.exists())

    def split_known_lines(
        self, lines: Sequence[ParsedLine], on_bad_line: BadLineCallback
    ) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Split the lines into those with new uids, and those whose uid the round already has.

        on_bad_line: called for each line that cannot be stored, such as a different example under
        a known uid.
        """
        uids = [line.row.uid for line in lines]
        stored_digests = dict(self.round.examples.filter(uid__in=uids).values_list("uid", "digest"))
        local_uids = self._find_uuids_of_this_site(uids)
        is_claimed = is_about_model(self._task.task.config, Example.Outcome.UNDECIDED)
        new_lines, repeated_lines = [], []
        for line in lines:
            if line.row.author_verdict and not is_claimed:
                on_bad_line(line.position, line.text, NOT_ASKED_REASON)
                continue
            if line.row.uid in local_uids:
                on_bad_line(
                    line.position, line.text, f"{self.round} has this example; {OTHER_ROUND_ADVICE}"
                )
                continue
            stored_digest = stored_digests.get(line.row.uid)
            if stored_digest is None:
                # If the uid is repeated in this batch, that line is compared with this one.
                stored_digests[line.row.uid] = line.digest
                try:
                    # Known lines need not fit the task, because only their votes are read.
                    new_lines.append(self._rename_columns(line))
                except BadRow as error:
                    on_bad_line(line.position, line.text, str(error))
            elif stored_digest != line.digest:
                location = f"uid {line.row.uid} names another example of {self.round}"
                on_bad_line(
                    line.position, line.text, f"{location}; give it another uid, or use --round"
                )
            else:
                repeated_lines.append(line)
        return new_lines, repeated_lines

    def _rename_columns(self, line: ParsedLine) -> ParsedLine:
        """Return the line with its columns renamed to the task's fields. Raises BadRow."""
        row = self._task.rename_columns(line.row)
        return replace(line, row=row, context=hash_context(dict(row.context)))

    def _find_uuids_of_this_site(self, uids: Iterable[str]) -> set[str]:
        """Return the uids of examples written on the site, which are exported under their uuid."""
        # A query for UUIDs fails with any other text.
        possible_uuids = [uid for uid in uids if UUID_PATTERN.fullmatch(uid)]
        local_uuids = self.round.examples.filter(uid__isnull=True, uuid__in=possible_uuids)
        return {str(uuid) for uuid in local_uuids.values_list("uuid", flat=True)}

    def iterate_later_votes(self, lines: Sequence[ParsedLine]) -> Iterator[tuple[ParsedLine, int]]:
        """Yield lines of stored examples with votes to add, and the number of these votes."""
        uids = [line.row.uid for line in lines if line.row.votes]
        # Counted, because unknown people may have cast equal votes.
        counts_by_uid: dict[str, Counter[tuple[str | None, str, str]]] = {}
        votes = Validation.objects.filter(example__round=self.round, example__uid__in=uids)
        stored_votes = votes.values_list("example__uid", "validator__pseudonym", "label", "verdict")
        for uid, worker, label, verdict in stored_votes:
            counts_by_uid.setdefault(str(uid), Counter())[worker, label, verdict] += 1
        for line in lines:
            row = self.spell_labels(line).row
            votes_in_line = Counter(
                (vote.worker and self._task.get_name_of(vote.worker), vote.label, vote.verdict)
                for vote in row.votes
            )
            if later_votes := (votes_in_line - counts_by_uid.get(row.uid, Counter())).total():
                yield line, later_votes

    def spell_labels(self, line: ParsedLine) -> ParsedLine:
        """Return the line with the exact text of the task's labels."""
        labels = self._task.labels
        return replace(line, row=spell_row(line.row, labels)) if labels else line

    def store(self, lines: Sequence[ParsedLine]) -> None:
        """Store new examples with their contexts, answers, votes and consensus."""
        if not lines:
            return
        rows = [line.row for line in lines]
        self._mark_media_used(rows)
        if any(self._terms):
            self._get_or_create_batch()
        people, targets = (
            self._task.get_or_create_people(rows),
            self._task.get_or_create_targets(rows),
        )
        contexts = self._get_or_create_contexts(lines)
        examples = Table(Example, EXAMPLE_COLUMNS)
        # Ids first, because the rows below refer to them, and COPY returns none.
        row_ids = examples.reserve_ids(len(rows))
        # The ids that are queued at the end.
        self._first, self._last = self._first or row_ids[0], row_ids[-1]
        self.new += len(rows)
        examples.insert(
            (
                example_id,
                # Without hyphens, as SQLite stores it; PostgreSQL accepts both forms.
                uuid4().hex,
                line.row.uid,
                self.round.pk,
                contexts[line.context],
                people.get(line.row.author),
                _json(self._task.build_inputs(line.row)),
                line.digest,
                _json(line.row.metadata),
                _get_outcome(line.row),
            )
            for example_id, line in zip(row_ids, lines, strict=True)
        )
        Table(TargetOutput, OUTPUT_COLUMNS).insert(
            (
                example_id,
                *targets[row.answer.model],
                _json({self._task.field: row.answer.label}),
                None if row.answer.probs is None else _json(row.answer.probs),
                # The model's response time is unknown.
                0.0,
                row.is_fooled,
            )
            for example_id, row in zip(row_ids, rows, strict=True)
            if row.answer
        )
        Table(Validation, VOTE_COLUMNS).insert(_iterate_vote_rows(row_ids, rows, people))
        # Otherwise after all votes of the round are stored.
        if not self._decides_at_end:
            Table(Consensus, CONSENSUS_COLUMNS).insert(self._build_consensus(row_ids, rows))

    def _mark_media_used(self, rows: Sequence[HistoryRow]) -> None:
        """Mark as used all pictures and recordings that the rows name.

        Raises ImportRefused if one is not stored.
        """
        values: list[Any] = []
        for row in rows:
            values += row.context.values()
            values += row.input.values()
        try:
            # In this transaction, so that no picture is deleted before its row is stored.
            keep_media(task=self._task.task, digests=list_digests(values), is_used=True)
        except Invalid as error:
            raise ImportRefused(str(error)) from None

    def _build_consensus(
        self, row_ids: Sequence[int], rows: Sequence[HistoryRow]
    ) -> Iterator[tuple[Any, ...]]:
        for example_id, row in zip(row_ids, rows, strict=True):
            if row.votes:
                # Sorted, so that equal votes have one cache entry, whatever their order.
                pattern = tuple(sorted((vote.label, vote.verdict) for vote in row.votes))
                model_label = row.answer.label if row.answer else None
                columns = self._decide(pattern, row.author_label, model_label, row.is_fooled)
                yield example_id, self.round.pk, *columns, self._now if columns[-1] else None

    def _get_or_create_contexts(self, lines: Sequence[ParsedLine]) -> Mapping[str, int]:
        """Return contexts' ids by digest; create missing contexts.

        New contexts are retired, so that nobody writes about them.
        """
        contexts = {line.context: line.row.context for line in lines}
        stored_contexts = self.round.contexts.filter(digest__in=contexts)
        ids_by_digest = dict(stored_contexts.values_list("digest", "pk"))
        new_digests = [digest for digest in contexts if digest not in ids_by_digest]
        if not new_digests:
            return ids_by_digest
        batch = self._get_or_create_batch()
        table = Table(Context, CONTEXT_COLUMNS)
        row_ids = table.reserve_ids(len(new_digests))
        table.insert(
            (context_id, self.round.pk, batch.pk, _json(contexts[digest]), digest, True)
            for context_id, digest in zip(row_ids, new_digests, strict=True)
        )
        return ids_by_digest | dict(zip(new_digests, row_ids, strict=True))

    def _get_or_create_batch(self) -> ContextBatch:
        """Return the batch that names the file and its terms, created if it does not exist."""
        if self._batch is None:
            terms_fields = self._terms._asdict()
            self._batch = ContextBatch.objects.create(
                round=self.round, file_name=self._file[:200], **terms_fields
            )
        return self._batch

    def finish(self) -> None:
        """Decide examples that need all votes of the round; queue all of them or none."""
        if self._decides_at_end:
            self._decide_all()
        if self.new:
            self._derive_steps()
            if self._judge:
                queue_all_examples(round=self.round, first_id=self._first, last_id=self._last)
            self._mark_as_queued()
            log(self._actor, "examples.imported", self.round, file=self._file, rows=self.new)

    def _decide_all(self) -> None:
        # Each is decided again below by the new policy.
        Consensus.objects.filter(round=self.round).delete()
        # The new policy may need more or fewer votes; undecided examples are queued again.
        QueueItem.objects.filter(round=self.round).delete()
        model = store_fitted_model(round=self.round) if self._policy.rule == "dawid-skene" else None
        examples = replay_policy(self.round, self._policy, model)
        while chunk := list(islice(examples, BATCH_LINES)):
            Table(Consensus, CONSENSUS_COLUMNS).insert(
                (
                    example.example_id,
                    self.round.pk,
                    *_build_consensus_values(example.decision, self._policy, *example.status[-2:]),
                    self._now if example.decision.winner else None,
                )
                for example in chunk
                if example.votes or example.decision.winner
            )

    def _derive_steps(self) -> None:
        """Decide again where votes came along, and not every step is decided with the whole."""
        if not self._task.task.config.validation.steps:
            return
        examples = self.round.examples.filter(
            pk__gte=self._first, pk__lte=self._last, consensus__isnull=False
        )
        rows = examples.select_related("context").order_by("pk").iterator(BATCH_LINES)
        while chunk := list(islice(rows, BATCH_LINES)):
            # Known, so not read again for each.
            for example in chunk:
                example.round = self.round
            derive_consensus_of_all(chunk)

    def _mark_as_queued(self) -> None:
        """Mark the examples of a round that is only history, so that they are never queued.

        If people also write in the round, the queue checks it again, because ids of their examples
        may lie between imported ones.
        """
        policy_rows = RoundPolicy.objects.filter(round=self.round)
        # A draw comes after the import, once a judge model has answered.
        is_drawn_later = self._judge and policy_rows.filter(draw__isnull=False).exists()
        if self._is_history() and not is_drawn_later:
            policy_rows.update(filled_to=self._last)
        else:
            # Only backwards: the queue must still find examples that writers have stored.
            policy_rows.filter(filled_to__gte=self._first).update(filled_to=self._first - 1)


def _build_metadata(vote: ImportedVote) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if vote.correction:
        metadata[CORRECTION_FIELD] = vote.correction
    if vote.steps:
        metadata[STEPS_KEY] = vote.steps
    return metadata


def _get_outcome(row: HistoryRow) -> str:
    if row.answer is None:
        return Example.Outcome.NO_MODEL
    return Example.Outcome.UNKNOWN if row.is_fooled is None else OUTCOME_BY_FOOLED[row.is_fooled]


def _iterate_vote_rows(
    row_ids: Sequence[int], rows: Sequence[HistoryRow], people: Mapping[str | None, int]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of VOTE_COLUMNS for each vote on each example."""
    for example_id, row in zip(row_ids, rows, strict=True):
        for vote in row.votes:
            metadata = _json(_build_metadata(vote))
            yield example_id, people.get(vote.worker), vote.label, vote.verdict, True, metadata


def _decide_pattern(
    policy: Policy,
    config: TaskConfig,
    pattern: Iterable[tuple[str, str]],
    author_label: str | None,
    model_label: str | None,
    is_fooled: bool | None,
) -> tuple[Any, ...]:
    """Return the consensus columns that the votes determine, from `state` to `decided_by`."""
    votes = [Vote(label or None, verdict or None) for label, verdict in pattern]  # type: ignore[arg-type]
    decision = decide_by_votes(votes, policy)
    outcome = Example.Outcome.UNKNOWN if is_fooled is None else OUTCOME_BY_FOOLED[is_fooled]
    is_verified, is_error = assess_claim(config, outcome, decision, author_label, model_label)
    return _build_consensus_values(decision, policy, is_verified, is_error)


def _build_consensus_values(
    decision: Decision, policy: Policy, is_verified: bool, is_wrong: bool
) -> tuple[Any, ...]:
    owner = decision.winner if decision.is_by_owner else None
    decider = Consensus.DecidedBy.OWNER if decision.is_by_owner else Consensus.DecidedBy.VOTES
    return (
        decision.state,
        decision.label or "",
        decision.verdict or "",
        sum(decision.counts.values()),
        # It does not know the posterior, so check for a winner first.
        0 if decision.winner else count_votes_still_needed(decision.counts, policy, owner=owner),
        is_verified,
        is_wrong,
        decider if decision.winner else "",
    )
