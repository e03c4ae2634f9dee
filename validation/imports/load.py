"""Stores imported history: streamed, all of a file or nothing, each uid once in its round."""

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
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.contexts.files import hash_context
from tasks.contexts.media.services import keep_media, list_digests
from tasks.formats.base import RecordLine
from tasks.line_files import BadRow
from tasks.models import Context, ContextBatch, Round
from validation.bulk_insert import Table
from validation.consensus.claims import check_claim, is_about_model
from validation.consensus.consensus import Decision, Policy, Vote, decide, votes_still_needed
from validation.decisions.consensus_rows import policy_of
from validation.decisions.replay import replay
from validation.decisions.second_opinion import store_fitted_model
from validation.imports.lines import BATCH, LineReader, OnBad, ParsedLine
from validation.imports.rows import HistoryRow, ImportedVote, spelled_row
from validation.imports.summary import LATER_VOTES, NO_FIELD, Summary
from validation.imports.task import ImportedTask, ImportRefused, Options
from validation.judging.queue_services import queue_all
from validation.models import Consensus, QueueItem, RoundPolicy, Validation

UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ELSEWHERE = "import what was exported from it into another round, with --round"
NOT_ASKED = (
    "author_verdict: in this task authors do not say whether the model is right; leave it out, or "
    "import into a task with the verdict ask_user"
)
_json = json.JSONEncoder(ensure_ascii=False).encode
PLANNED = (Round.State.DRAFT, Round.State.READY)
OUTCOMES = {True: Example.Outcome.FOOLED, False: Example.Outcome.NOT_FOOLED}
EXAMPLE = (
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
OUTPUT = ("example_id", "target_id", "version_id", "output", "prob", "seconds", "fooled")
VOTE = ("example_id", "validator_id", "label", "verdict", "is_imported", "metadata")
"""Without the author: the site's rule that nobody judges their own example binds no history."""
CONSENSUS = (
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
CONTEXT = ("id", "round_id", "batch_id", "fields", "digest", "is_retired")


@transaction.atomic
def import_examples(
    *,
    lines: Iterable[tuple[int, bytes] | RecordLine],
    options: Options,
    on_bad: OnBad,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Summary:
    """Store the examples of a file's lines, their votes and the resulting consensus.

    lines: numbered lines, or records of another layout with their rows.

    Locks each task, so that imports into one task run one after another. If a line cannot be
    stored, raises ImportRefused after all such lines were reported; nothing is stored then.
    """
    run = _Import(options, on_bad)
    for done, batch in run.lines.batches(lines):
        run.store(batch)
        on_progress(done)
    # After the last line, so that all bad ones are named at once.
    if run.summary.bad and not options.skip_bad:
        raise ImportRefused(
            f"{run.summary.bad} of the lines cannot be stored, so nothing was. Mend the file, or "
            "leave them out with --skip-bad."
        )
    run.finish()
    if options.dry_run:
        # Everything was stored to find what cannot be, and is undone now.
        transaction.set_rollback(True)
    return run.summary


class _Import:
    """An import of one file."""

    def __init__(self, options: Options, on_bad: OnBad):
        self.options = options
        self.summary = Summary()
        self.lines = LineReader(options, self.summary, on_bad)
        self._tasks: dict[str, ImportedTask] = {}
        self._rounds: dict[tuple[str, int], _ImportedRound] = {}

    def store(self, batch: Sequence[ParsedLine]) -> None:
        """Store valid lines; after an invalid line only if such lines are skipped."""
        groups: dict[tuple[str, int], list[ParsedLine]] = {}
        for line in batch:
            number = line.row.round if self.options.round is None else self.options.round
            groups.setdefault((self.options.task or line.row.task, number), []).append(line)
        for key, group in groups.items():
            # Nothing will be kept, so further lines are only read, to name all bad ones.
            if self.summary.bad and not self.options.skip_bad:
                return
            round = self._round(*key)
            new_lines, known_lines = round.fresh(group, self.lines.bad)
            spelled_lines = [round.spelled(line) for line in new_lines]
            self.summary.known += len(known_lines)
            self.summary.new += len(spelled_lines)
            round.store(spelled_lines)
            for line, votes in round.later_votes(known_lines):
                self.summary.leave(LATER_VOTES, line.row.uid, votes)

    def _round(self, code: str, number: int) -> "_ImportedRound":
        if code not in self._tasks:
            self._tasks[code] = ImportedTask(code, self.options)
        if (code, number) not in self._rounds:
            self._rounds[code, number] = _ImportedRound(self._tasks[code], number, self.options)
        return self._rounds[code, number]

    def finish(self) -> None:
        """Run the steps that need all lines. Raises ImportRefused."""
        self.lines.check_asked()
        for code, task in self._tasks.items():
            for column, count in task.unknown.items():
                self.summary.leave(f"values of {column!r}, {NO_FIELD}", code, count)
            task.finish(is_free=self.lines.is_free)
            self.summary.renamed |= task.renamed
        for round in self._rounds.values():
            round.finish()
            self.summary.rounds[str(round.round)] = round.new


class _ImportedRound:
    """A round that history is imported into; closed if the import creates it."""

    def __init__(self, task: ImportedTask, number: int, options: Options):
        self.new = 0
        self._task = task
        self._file, self._judge, self._terms = options.file_name, options.judge, options.terms
        self._actor = options.actor
        # The task is locked, so no other import makes this round.
        self.round, is_new_round = Round.objects.get_or_create(
            task=task.task, number=number, defaults={"state": Round.State.CLOSED}
        )
        self.round.task = task.task
        if self.round.state == Round.State.RELEASED:
            raise ImportRefused(f"{self.round} is released and does not change any more.")
        if self._judge and self.round.state in PLANNED:
            self._close()
        self._policy, self._decides_at_end = self._settle(options.policy, is_new_round)
        # Most examples have one of a few patterns of votes, so few are really decided.
        self._decide = lru_cache(10_000)(partial(_decide_pattern, self._policy, task.task.config))
        self._now = connection.ops.adapt_datetimefield_value(timezone.now())
        self._batch: ContextBatch | None = None
        self._first = self._last = 0

    def _close(self) -> None:
        """Close a round that was only planned, so that its examples are judged.

        Its owner may still open it.
        """
        planned = Round.objects.filter(pk=self.round.pk, state__in=PLANNED)
        # Unless its owner opened it since it was read.
        if planned.update(state=Round.State.CLOSED, closed_at=timezone.now()):
            log(self._actor, "round.closed", self.round)

    def _settle(self, given_policy: Policy | None, is_new: bool) -> tuple[Policy, bool]:
        """Return the round's policy, and whether to decide all examples after all are stored."""
        current_policy = policy_of(self.round)
        policy = given_policy or current_policy
        changes = not is_new and policy != current_policy and self.round.examples.exists()
        if changes and not self._is_history():
            raise ImportRefused(
                f"{self.round} is judged on the site. Leave --policy out, or import into another "
                "round with --round."
            )
        RoundPolicy.objects.update_or_create(round=self.round, defaults={"policy": asdict(policy)})
        return policy, changes or policy.rule == "dawid-skene"

    def _is_history(self) -> bool:
        """Return whether all examples and votes were imported."""
        votes = Validation.objects.filter(example__round=self.round, is_imported=False)
        return not (self.round.examples.filter(uid__isnull=True).exists() or votes.exists())

    def fresh(
        self, lines: Sequence[ParsedLine], bad: OnBad
    ) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Split the lines into those with new uids, and those whose uid the round already has.

        A different example under an existing uid is invalid.
        """
        uids = [line.row.uid for line in lines]
        have = dict(self.round.examples.filter(uid__in=uids).values_list("uid", "digest"))
        written_here = self._written_here(uids)
        is_claimed = is_about_model(self._task.task.config, Example.Outcome.UNDECIDED)
        new_lines, repeated_lines = [], []
        for line in lines:
            if line.row.author_verdict and not is_claimed:
                bad(line.place, line.text, NOT_ASKED)
                continue
            if line.row.uid in written_here:
                bad(line.place, line.text, f"{self.round} has this example; {ELSEWHERE}")
                continue
            stored_digest = have.get(line.row.uid)
            if stored_digest is None:
                # A uid that comes again in this batch is compared with this line.
                have[line.row.uid] = line.digest
                try:
                    # Of known lines only the votes are read, so they need not fit the task.
                    new_lines.append(self._fitted(line))
                except BadRow as error:
                    bad(line.place, line.text, str(error))
            elif stored_digest != line.digest:
                where = f"uid {line.row.uid} names another example of {self.round}"
                bad(line.place, line.text, f"{where}; give it another uid, or use --round")
            else:
                repeated_lines.append(line)
        return new_lines, repeated_lines

    def _fitted(self, line: ParsedLine) -> ParsedLine:
        """Return the line with its columns renamed to the task's fields. Raises BadRow."""
        row = self._task.fitted(line.row)
        return replace(line, row=row, context=hash_context(dict(row.context)))

    def _written_here(self, uids: Iterable[str]) -> set[str]:
        """Return the uids of examples written on the site, which are exported under their uuid."""
        maybe = [uid for uid in uids if UUID.fullmatch(uid)]
        written = self.round.examples.filter(uid__isnull=True, uuid__in=maybe)
        return {str(uuid) for uuid in written.values_list("uuid", flat=True)}

    def later_votes(self, lines: Sequence[ParsedLine]) -> Iterator[tuple[ParsedLine, int]]:
        """Yield lines of stored examples with votes to add, and the number of these votes."""
        uids = [line.row.uid for line in lines if line.row.votes]
        # Counted, as unknown people may have cast equal votes.
        counts_by_uid: dict[str, Counter[tuple[str | None, str, str]]] = {}
        votes = Validation.objects.filter(example__round=self.round, example__uid__in=uids)
        stored_votes = votes.values_list("example__uid", "validator__pseudonym", "label", "verdict")
        for uid, who, label, verdict in stored_votes:
            counts_by_uid.setdefault(str(uid), Counter())[who, label, verdict] += 1
        for line in lines:
            row = self.spelled(line).row
            votes_in_line = Counter(
                (vote.worker and self._task.name_of(vote.worker), vote.label, vote.verdict)
                for vote in row.votes
            )
            if more := (votes_in_line - counts_by_uid.get(row.uid, Counter())).total():
                yield line, more

    def spelled(self, line: ParsedLine) -> ParsedLine:
        """Return the line with the exact text of the task's labels."""
        labels = self._task.labels
        return replace(line, row=spelled_row(line.row, labels)) if labels else line

    def store(self, lines: Sequence[ParsedLine]) -> None:
        """Store new examples with their contexts, answers, votes and consensus."""
        if not lines:
            return
        rows = [line.row for line in lines]
        self._keep_media(rows)
        if any(self._terms):
            self._made_batch()
        people, targets = self._task.people(rows), self._task.targets(rows)
        contexts = self._contexts(lines)
        examples = Table(Example, EXAMPLE)
        # Ids first: the rows below point at them, and COPY returns none.
        ids = examples.reserve(len(rows))
        # The ids that the queue looks at in the end.
        self._first, self._last = self._first or ids[0], ids[-1]
        self.new += len(rows)
        examples.insert(
            (
                pk,
                # Without hyphens, as SQLite keeps it; PostgreSQL takes either.
                uuid4().hex,
                line.row.uid,
                self.round.pk,
                contexts[line.context],
                people.get(line.row.author),
                _json(self._task.inputs(line.row)),
                line.digest,
                _json(line.row.metadata),
                _outcome(line.row),
            )
            for pk, line in zip(ids, lines, strict=True)
        )
        Table(TargetOutput, OUTPUT).insert(
            (
                pk,
                *targets[row.answer.model],
                _json({self._task.field: row.answer.label}),
                None if row.answer.probs is None else _json(row.answer.probs),
                # Nobody has measured how long the model took.
                0.0,
                row.fooled,
            )
            for pk, row in zip(ids, rows, strict=True)
            if row.answer
        )
        Table(Validation, VOTE).insert(_vote_rows(ids, rows, people))
        # Else once every vote of the round is there.
        if not self._decides_at_end:
            Table(Consensus, CONSENSUS).insert(self._consensus(ids, rows))

    def _keep_media(self, rows: Sequence[HistoryRow]) -> None:
        """Raise ImportRefused if a picture or recording that a row names is not stored."""
        values: list[Any] = []
        for row in rows:
            values += row.context.values()
            values += row.input.values()
        try:
            # In this transaction, so that no picture is deleted before its row is stored.
            keep_media(task=self._task.task, digests=list_digests(values), is_used=True)
        except Invalid as error:
            raise ImportRefused(str(error)) from None

    def _consensus(
        self, ids: Sequence[int], rows: Sequence[HistoryRow]
    ) -> Iterator[tuple[Any, ...]]:
        for pk, row in zip(ids, rows, strict=True):
            if row.votes:
                # Sorted, so that the cache has the same votes once, in whatever order they come.
                pattern = tuple(sorted((vote.label, vote.verdict) for vote in row.votes))
                model_label = row.answer.label if row.answer else None
                columns = self._decide(pattern, row.author_label, model_label, row.fooled)
                yield pk, self.round.pk, *columns, self._now if columns[-1] else None

    def _contexts(self, lines: Sequence[ParsedLine]) -> Mapping[str, int]:
        """Return contexts' ids by digest; create missing contexts.

        New contexts are retired, so that nobody writes about them.
        """
        contexts = {line.context: line.row.context for line in lines}
        stored_contexts = self.round.contexts.filter(digest__in=contexts)
        ids_by_digest = dict(stored_contexts.values_list("digest", "pk"))
        new_digests = [digest for digest in contexts if digest not in ids_by_digest]
        if not new_digests:
            return ids_by_digest
        batch = self._made_batch()
        table = Table(Context, CONTEXT)
        ids = table.reserve(len(new_digests))
        table.insert(
            (pk, self.round.pk, batch.pk, _json(contexts[digest]), digest, True)
            for pk, digest in zip(ids, new_digests, strict=True)
        )
        return ids_by_digest | dict(zip(new_digests, ids, strict=True))

    def _made_batch(self) -> ContextBatch:
        """Create the batch that names the file and its terms."""
        if self._batch is None:
            about = self._terms._asdict()
            self._batch = ContextBatch.objects.create(
                round=self.round, file_name=self._file[:200], **about
            )
        return self._batch

    def finish(self) -> None:
        """Decide examples that need all votes of the round; queue all of them or none."""
        if self._decides_at_end:
            self._decide_all()
        if self.new:
            if self._judge:
                queue_all(round=self.round, first_id=self._first, last_id=self._last)
            self._mark_queue()
            log(self._actor, "examples.imported", self.round, file=self._file, rows=self.new)

    def _decide_all(self) -> None:
        # Each is decided again below, by the new policy.
        Consensus.objects.filter(round=self.round).delete()
        # The new policy may need more votes, or fewer; those still open are queued again.
        QueueItem.objects.filter(round=self.round).delete()
        model = store_fitted_model(round=self.round) if self._policy.rule == "dawid-skene" else None
        examples = replay(self.round, self._policy, model)
        while chunk := list(islice(examples, BATCH)):
            Table(Consensus, CONSENSUS).insert(
                (
                    example.example_id,
                    self.round.pk,
                    *_consensus_values(example.decision, self._policy, *example.status[-2:]),
                    self._now if example.decision.winner else None,
                )
                for example in chunk
                if example.votes or example.decision.winner
            )

    def _mark_queue(self) -> None:
        """Mark the examples of a round that is only history, so that they are never queued.

        If people also write in the round, the queue checks it again, because ids of their examples
        may lie between imported ones.
        """
        policy_rows = RoundPolicy.objects.filter(round=self.round)
        if self._is_history():
            policy_rows.update(filled_to=self._last)
        else:
            # Only back, never forward: the queue must still look at what writers stored.
            policy_rows.filter(filled_to__gte=self._first).update(filled_to=self._first - 1)


def _metadata(vote: ImportedVote) -> dict[str, str]:
    return {CORRECTION_FIELD: vote.correction} if vote.correction else {}


def _outcome(row: HistoryRow) -> str:
    if row.answer is None:
        return Example.Outcome.NO_MODEL
    return Example.Outcome.UNKNOWN if row.fooled is None else OUTCOMES[row.fooled]


def _vote_rows(
    ids: Sequence[int], rows: Sequence[HistoryRow], people: Mapping[str | None, int]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of the columns VOTE for each vote on each example."""
    for pk, row in zip(ids, rows, strict=True):
        for vote in row.votes:
            metadata = _json(_metadata(vote))
            yield pk, people.get(vote.worker), vote.label, vote.verdict, True, metadata


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
    decision = decide(votes, policy)
    outcome = Example.Outcome.UNKNOWN if is_fooled is None else OUTCOMES[is_fooled]
    verified, error = check_claim(config, outcome, decision, author_label, model_label)
    return _consensus_values(decision, policy, verified, error)


def _consensus_values(
    decision: Decision, policy: Policy, is_verified: bool, is_wrong: bool
) -> tuple[Any, ...]:
    owner = decision.winner if decision.by_owner else None
    by = Consensus.DecidedBy.OWNER if decision.by_owner else Consensus.DecidedBy.VOTES
    return (
        decision.state,
        decision.label or "",
        decision.verdict or "",
        sum(decision.counts.values()),
        # It does not know the posterior, so a winner is asked for first.
        0 if decision.winner else votes_still_needed(decision.counts, policy, owner=owner),
        is_verified,
        is_wrong,
        by if decision.winner else "",
    )
