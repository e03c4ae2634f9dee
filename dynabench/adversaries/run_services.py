"""A run of an adversary: ask the models, log every try, and submit what fools them.

Each slice of a run (`slice_services`) repeats the searches from the start with the logged answers,
and asks only what was never asked. So a killed run continues in the same way as one whose slice is
over. The locks are listed in docs/locking.md.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from annotation.attempts.live_targets import (
    build_model_inputs,
    get_failure_code,
    request_answers,
)
from annotation.attempts.services import (
    ask_targets,
    begin_attempt,
    expire_attempt,
    judge_answers,
)
from annotation.context_picking.services import assign_chosen
from annotation.models import Attempt, Example
from annotation.refusals import CapReached, RoundClosed
from core.errors import Refused
from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import Attack, Blank, Probe, ProbeAnswer, Prompt, Step
from dynabench.adversaries.masked_services import LoggedWords
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.run_steps import (
    NO_ANSWER,
    KnownTry,
    Question,
    RunEnded,
    SliceOver,
    advance,
    describe_output,
    stop_without_model,
)
from dynabench.adversaries.selectors import hash_question
from dynabench.adversaries.services import find_kind
from dynabench.adversaries.share_services import has_share_left
from dynabench.adversaries.spot_services import find_run_options
from dynabench.adversaries.writer_services import AdversaryWriter, open_writer
from evaluation.contract import ImpossibleJob
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost
from tasks.config.loading import validate_inputs
from tasks.config.values import normalise_values
from tasks.models import Context, Round
from tasks.selectors import list_targets
from tasks.targets.endpoints.base import UNANSWERED_REASONS, EndpointError, Prediction
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.spending_services import SpentError, compute_price

SLICE_SECONDS = 60.0
"""How long a worker works on a run before other jobs get their turn."""
MAX_IDLE_PROBES = 200
"""A run ends after so many probes in a row that it had already made, or that nobody may write."""
MAX_FRUITLESS_REPLIES = 20
"""A run ends after so many replies in a row of its writing model that led to no new text."""
POLL_SECONDS = 0.1
FINAL_FAILURES = ("closed", "duplicate", "replaced", *UNANSWERED_REASONS)
"""Failures after which the same text is not submitted again."""
NO_TEXT_MESSAGE = gettext_noop("The round has no texts. Import some, then start again.")
NO_WRITER_MESSAGE = gettext_noop("This kind names no model that writes.")
WRONG_STEP_MESSAGE = gettext_noop("The adversary can’t do this in this task. Ask its author.")
NO_TARGET_MESSAGE = gettext_noop("The round has no model to fool. Add one, then start again.")
State, End = AdversaryTry.State, AdversaryRun.End


class RunSlice:
    """A slice of a run: everything that it reads once, and the work."""

    def __init__(
        self,
        run: AdversaryRun,
        heartbeat: Heartbeat,
        masked_words: LoggedWords | None = None,
        seconds: float | None = None,
    ) -> None:
        self._run, self._heartbeat, self._masked_words = run, heartbeat, masked_words
        self._adversary = run.adversary
        self._round = run.round
        self._config = run.round.task.config
        self._kind = find_kind(self._adversary)
        self._entries = list_targets(self._round)
        if not self._entries:
            raise ImpossibleJob(NO_TARGET_MESSAGE)
        # Before any of them is asked, so that transfer is never measured on them.
        run.asked_targets.add(*[entry.target_id for entry in self._entries])
        # Each run of an adversary searches in another way, and each slice of a run in the same.
        self._seed = f"{self._adversary.seed} {run.number}"
        self._options = find_run_options(run, self._kind)
        self._contexts = self._list_contexts()
        self._known = self._load_tries()
        self._seen_digests: set[str] = set()
        self._idle_count = 0
        self._writer = open_writer(run, self._adversary, self._kind.model_setting)
        self._fruitless_count = self._empty_count = 0
        self._slice_ends_at = time.monotonic() + (seconds or SLICE_SECONDS)
        self._has_called = False
        self._counted_until = time.monotonic()

    def work(self) -> None:
        """Go through all attacks. Raises RunEnded, SliceOver, LeaseLost and WorkStopped."""
        try:
            attacks = list(self._plan_attacks(Random(f"{self._seed} attacks")))
        except ValueError as error:  # the task's labels have changed since it was created
            raise ImpossibleJob(str(error)) from None
        for number, attack in enumerate(attacks):
            self._heartbeat.report_progress(number / len(attacks), "")
            self._follow(attack, self._contexts[number % len(self._contexts)])

    def _plan_attacks(self, rng: Random) -> Iterable[Attack]:
        labels = self._config.goal_choices
        return self._kind.plan_attacks(self._options, labels, rng)

    def _list_contexts(self) -> list[Context]:
        """Return the round's texts in an order that depends on the run's seed only.

        Raises ImpossibleJob if there are none.
        """
        contexts = list(self._find_contexts())
        if not contexts:
            raise ImpossibleJob(NO_TEXT_MESSAGE)
        Random(f"{self._seed} contexts").shuffle(contexts)
        return contexts

    def _find_contexts(self) -> QuerySet[Context]:
        return Context.objects.filter(round=self._round, is_retired=False).order_by("pk")

    def _load_tries(self) -> dict[str, KnownTry]:
        """Return the adversary's tries in the round by digest, after closing interrupted ones.

        An adversary has one run at a time, so whatever still asks was left by a worker that died.
        """
        tries = self._list_tries()
        self._close_interrupted_tries(tries)
        return self._read_tries(tries)

    def _close_interrupted_tries(self, tries: QuerySet[AdversaryTry]) -> None:
        tries.filter(state=State.ASKING).update(state=State.LOST)
        for interrupted_try in tries.filter(state=State.REPEATING):
            self._close_interrupted(interrupted_try)

    def _list_tries(self) -> QuerySet[AdversaryTry]:
        return AdversaryTry.objects.filter(adversary=self._adversary, round=self._round)

    def _read_tries(self, tries: QuerySet[AdversaryTry]) -> dict[str, KnownTry]:
        """Return the given tries by digest."""
        known: dict[str, KnownTry] = {}
        columns = ("digest", "pk", "state", "is_fooled", "chance")
        for digest, pk, state, is_fooled, chance in tries.values_list(*columns):
            answer = NO_ANSWER
            if is_fooled is not None:
                answer = ProbeAnswer(is_fooled, chance)
            known[digest] = KnownTry(pk, state, answer)
        return known

    def _close_interrupted(self, interrupted_try: AdversaryTry) -> None:
        """Link the example of a submission during which a worker died, if it was stored."""
        attempt = Attempt.objects.filter(
            annotator=self._adversary.annotator_id, key=interrupted_try.key
        ).first()
        if attempt is not None:
            attempt = expire_attempt(attempt=attempt)
        if attempt and attempt.example:
            self._store(interrupted_try, attempt.example)
        # While the models still answer, its process may yet store the example.
        elif attempt is None or attempt.state != Attempt.State.ASKING:
            AdversaryTry.objects.filter(pk=interrupted_try.pk).update(state=State.LOST)

    def _follow(self, attack: Attack, context: Context) -> None:
        """Follow one search to its end."""
        search = attack.begin(context.fields)
        answer: ProbeAnswer | None = None
        while step := advance(search, answer):
            answer = self._do_step(step, attack.label, context)

    def _do_step(self, step: Step, label: str, context: Context) -> ProbeAnswer:
        if isinstance(step, Prompt):
            return self._consult(step)
        if isinstance(step, Blank):
            return self._find_words(step)
        if isinstance(step, Probe):
            return self._answer(label, step, context)
        # Repeated, it would do the same.
        raise ImpossibleJob(WRONG_STEP_MESSAGE)

    def _find_words(self, blank: Blank) -> ProbeAnswer:
        """Return words for a blank. It costs no call, but its time counts."""
        assert self._masked_words is not None  # only programs have none, and they ask for no words
        # A slice that repeats its search gets through the logged ones without a query.
        is_logged = self._masked_words.has_words(blank)
        if not is_logged:
            self._check_budget()
        words = self._masked_words.find_words(blank)
        if not is_logged:
            self._add_use()
        return NO_ANSWER._replace(words=tuple(words))

    # Consult the writing model

    def _consult(self, prompt: Prompt) -> ProbeAnswer:
        """Return what the writing model writes, logged or new; "" if it is of no use.

        Raises RunEnded if many replies in a row led to no new text.
        """
        if self._writer is None:
            raise ImpossibleJob(NO_WRITER_MESSAGE)
        digest = self._writer.find_digest(prompt)
        text = self._writer.find_known_text(digest)
        if text is None:
            text = self._request_text(self._writer, digest, prompt)
        if prompt.role == "judgement":  # it is no try at a new text
            return NO_ANSWER._replace(text=text)
        self._fruitless_count += 1
        self._empty_count += not text
        if self._fruitless_count > MAX_FRUITLESS_REPLIES:
            is_mostly_empty = 2 * self._empty_count > self._fruitless_count
            raise RunEnded(End.UNUSABLE if is_mostly_empty else End.REPEATS)
        return NO_ANSWER._replace(text=text)

    def _request_text(self, writer: AdversaryWriter, digest: str, prompt: Prompt) -> str:
        """Have the writing model write, within the run's budget and its own. Raises RunEnded."""
        self._check_budget()
        with transaction.atomic():
            self._reserve_calls(1)
            call = writer.begin_call(digest)
        try:
            call = writer.finish_call(call, prompt)
        except EndpointError as error:
            if isinstance(error, SpentError):
                writer.close_without_text(call, "spent", is_final=False)
                raise RunEnded(End.SPENT) from None
            is_text_the_cause = error.reason in UNANSWERED_REASONS
            writer.close_without_text(call, error.reason, is_final=is_text_the_cause)
            self._add_use(call.tokens, call.cost)
            if is_text_the_cause:
                return ""
            if error.is_permanent:
                raise ImpossibleJob(str(error)) from None
            stop_without_model(error.reason, str(error), error.retry_after)
        self._add_use(call.tokens, call.cost)
        return call.text

    # Answer probes

    def _answer(self, label: str, probe: Probe, context: Context) -> ProbeAnswer:
        """Return the models' answer to a probe, logged or new; submit it if it fools them."""
        question = self._build_question(label, probe, context)
        digest = question.digest
        is_valid = not validate_inputs(self._config, context.fields, question.inputs)
        # A probe that only measures may be shorter than what people may write.
        if digest in self._seen_digests or (probe.is_offered and not is_valid):
            self._count_idle_probe()
            return self._known[digest].answer if digest in self._known else NO_ANSWER
        self._idle_count = self._fruitless_count = self._empty_count = 0
        self._seen_digests.add(digest)
        return self._follow_up(question).answer

    def _count_idle_probe(self) -> None:
        self._idle_count += 1
        if self._idle_count > MAX_IDLE_PROBES:
            raise RunEnded(End.REPEATS)

    def _build_question(self, label: str, probe: Probe, context: Context) -> Question:
        # As a form sends and stores it, so that a text is the same when it is submitted.
        inputs = normalise_values(
            self._config.input,
            {self._config.text_field: probe.text.strip(), self._config.answer_field: label},
        )
        model_inputs = build_model_inputs(self._round, context.fields, inputs)
        digest = hash_question(label, model_inputs)
        return Question(label, probe, context, inputs, model_inputs, digest)

    def _follow_up(self, question: Question) -> KnownTry:
        """Return the try of a question, asked now if it never was; submit it if it fooled."""
        known = self._known.get(question.digest)
        if known is None or known.state == State.WAITING:
            known = self._ask(question)
            self._known[question.digest] = known
        is_find = known.answer.is_fooled and question.probe.is_offered
        # Of an earlier run, too, which reached its maximum before it could submit this.
        if is_find and known.state == State.ANSWERED:
            self._submit(known.pk, question.inputs, question.label, question.context)
        return known

    # Ask

    def _ask(self, question: Question) -> KnownTry:
        """Log a try, ask all models about it, and log their answer."""
        self._check_budget()
        probe = question.probe
        values = {
            "run": self._run,
            "label": question.label,
            "text": probe.text,
            "step": probe.step,
            "is_offered": probe.is_offered,
            "context": question.context if self._reads(question.context) else None,
            "previous_id": question.previous,
            "state": State.ASKING,
            "asked_at": timezone.now(),
        }
        with transaction.atomic():
            # The call counts before it is made: a worker that dies has still made it.
            self._reserve_calls(len(self._entries))
            logged_try, _is_new = AdversaryTry.objects.update_or_create(
                adversary=self._adversary,
                round=self._round,
                digest=question.digest,
                defaults=values,
            )
        try:
            predictions = self._request_answers(question.model_inputs)
        except EndpointError as error:
            return self._log_failure(logged_try, error)
        return self._log_answer(logged_try, question, predictions)

    def _reads(self, context: Context) -> bool:
        return any(name in self._config.model_fields for name in context.fields)

    def _request_answers(self, model_inputs: Mapping[str, Any]) -> list[Prediction]:
        """Ask as the writing page does, with the same budgets. Raises EndpointError."""
        seconds = settings.LIVE_DEADLINE_SECONDS
        return list(request_answers(self._entries, model_inputs, seconds))

    def _log_answer(
        self, logged_try: AdversaryTry, question: Question, predictions: list[Prediction]
    ) -> KnownTry:
        answer = self._judge_predictions(question, predictions)
        outputs, tokens, cost = [], 0, 0.0
        for entry, prediction in zip(self._entries, predictions, strict=True):
            outputs.append(describe_output(entry.target, prediction))
            if prediction.usage is not None:
                tokens += prediction.usage.tokens_in + prediction.usage.tokens_out
                cost += compute_price(entry.target, prediction.usage)
        AdversaryTry.objects.filter(pk=logged_try.pk, state=State.ASKING).update(
            state=State.ANSWERED,
            outputs=outputs,
            is_fooled=answer.is_fooled,
            # Of a conversation's free answer nobody knows a probability.
            chance=None if self._config.talk else answer.chance,
            tokens=tokens,
            cost=cost,
        )
        self._add_use(tokens, cost)
        return KnownTry(logged_try.pk, State.ANSWERED, answer)

    def _judge_predictions(self, question: Question, predictions: list[Prediction]) -> ProbeAnswer:
        label, answer_field = question.label, self._config.answer_field
        outcome = judge_answers(self._round, {answer_field: label}, predictions)
        chances = []
        for prediction in predictions:
            if prediction.prob is None:
                chances.append(float(prediction.output.get(answer_field) == label))
            else:
                chances.append(prediction.prob.get(label, 0.0))
        return ProbeAnswer(outcome.status == "fooled", sum(chances) / len(chances))

    def _log_failure(self, logged_try: AdversaryTry, error: EndpointError) -> KnownTry:
        """Log why there is no answer. Raises RunEnded or WorkStopped if a text is not the cause."""
        code = get_failure_code(error)
        is_text_the_cause = code in UNANSWERED_REASONS
        state = State.UNANSWERED if is_text_the_cause else State.WAITING
        tokens, cost = self._find_failed_use(error)
        own_rows = AdversaryTry.objects.filter(pk=logged_try.pk)
        own_rows.update(state=state, reason=code, tokens=tokens, cost=cost)
        self._add_use(tokens, cost)
        if is_text_the_cause:
            return KnownTry(logged_try.pk, state, NO_ANSWER)
        if error.is_permanent and code != "spent":
            raise ImpossibleJob(str(error))
        stop_without_model(code, str(error), error.retry_after)

    def _find_failed_use(self, error: EndpointError) -> tuple[int, float]:
        """Return the tokens and the cost of a call whose answer was of no use."""
        if isinstance(error, TargetFailed) and (usage := error.error.usage):
            for entry in self._entries:
                if entry.target.name == error.target:
                    tokens = usage.tokens_in + usage.tokens_out
                    return tokens, compute_price(entry.target, usage)
        return 0, 0.0

    # Submit

    def _submit(self, try_pk: int, inputs: dict[str, Any], label: str, context: Context) -> None:
        """Submit a text that fooled the models, as a person would.

        They are asked again, with nothing kept from the first time. The example has the second
        answer, so a catch that can't be repeated is none.
        """
        self._check_budget()
        logged_try = self._take_try(try_pk, len(self._entries))
        if logged_try is None:
            return
        with self._log_refusals(logged_try):
            attempt = self._repeat(logged_try, inputs, label, context)
            # The same text costs as much as the first time, which the attempt does not say.
            self._add_use(logged_try.tokens, logged_try.cost)
            self._log_attempt(logged_try, attempt)

    def _take_try(self, try_pk: int, call_count: int) -> AdversaryTry | None:
        """Return a try to submit, with its calls counted; None if it is taken. Raises RunEnded."""
        own_rows = AdversaryTry.objects.filter(pk=try_pk)
        with transaction.atomic():
            if not has_share_left(self._round):
                raise RunEnded(End.SHARE)
            self._reserve_calls(call_count)
            # Whoever finds it answered submits it, so that it is submitted once.
            # People get it now, also if it only measured when it was asked.
            answered_rows = own_rows.filter(state=State.ANSWERED)
            if not answered_rows.update(state=State.REPEATING, is_offered=True):
                return None
        return own_rows.get()

    @contextmanager
    def _log_refusals(self, logged_try: AdversaryTry) -> Iterator[None]:
        """Log why a try did not become an example. Raises RunEnded if none can now."""
        try:
            yield
        except Refused as refusal:
            refused_rows = AdversaryTry.objects.filter(pk=logged_try.pk)
            refused_rows.update(state=State.REFUSED, reason=str(refusal)[:200])
            if isinstance(refusal, CapReached):
                raise RunEnded(End.CAPS) from None
            if isinstance(refusal, RoundClosed):
                raise RunEnded(End.CLOSED) from None

    def _log_attempt(self, logged_try: AdversaryTry, attempt: Attempt) -> None:
        """Log what became of an ended attempt. Raises RunEnded or WorkStopped without a model."""
        own_rows = AdversaryTry.objects.filter(pk=logged_try.pk)
        if attempt.example:
            self._store(logged_try, attempt.example)
        elif attempt.failure in FINAL_FAILURES:
            own_rows.update(state=State.REFUSED, reason=attempt.failure)
        else:
            # Answered, as before: the next slice submits it again, under the same key.
            own_rows.update(state=State.ANSWERED)
            stop_without_model(attempt.failure, attempt.failure, None)

    def _store(self, logged_try: AdversaryTry, example: Example) -> None:
        """Log that a try became an example, and count it once for this run."""
        # LOST: a run that began meanwhile took it for one whose worker died.
        unlinked_rows = AdversaryTry.objects.filter(pk=logged_try.pk, example=None)
        rows = unlinked_rows.filter(state__in=(State.REPEATING, State.LOST))
        with transaction.atomic():
            if rows.update(state=State.STORED, example=example):
                run_rows = AdversaryRun.objects.filter(pk=self._run.pk)
                run_rows.update(examples=F("examples") + 1)

    def _repeat(
        self, logged_try: AdversaryTry, inputs: dict[str, Any], label: str, context: Context
    ) -> Attempt:
        """Return the ended attempt. Raises Refused."""
        chosen_context = context
        if not self._reads(context):
            chosen_context = self._take_turn()
        annotator = self._adversary.annotator
        assignment = assign_chosen(annotator=annotator, context=chosen_context, goal=label)
        attempt, must_ask = begin_attempt(
            annotator=annotator,
            assignment=assignment,
            key=logged_try.key,
            inputs=inputs,
            by_program=True,
        )
        if must_ask:
            attempt = ask_targets(attempt)
        # A slow model's answer is stored by a thread; its deadline ends the wait.
        while attempt.state == Attempt.State.ASKING:
            self._heartbeat.beat()
            time.sleep(POLL_SECONDS)
            attempt = expire_attempt(attempt=attempt)
        return attempt

    def _take_turn(self) -> Context:
        """Return a text for the next example if any will do: a cap on tries counts by text."""
        return self._contexts[self._run.examples % len(self._contexts)]

    # Budget

    def _check_budget(self) -> None:
        """Raise RunEnded if a limit is reached, or SliceOver. Renews the lease."""
        self._heartbeat.beat()
        run = self._run
        run.refresh_from_db(fields=["examples", "tokens", "cost", "seconds"])
        if run.seconds >= 60 * run.max_minutes:
            raise RunEnded(End.MINUTES)
        if run.max_tokens is not None and run.tokens >= run.max_tokens:
            raise RunEnded(End.TOKENS)
        if run.max_cost is not None and run.cost >= run.max_cost:
            raise RunEnded(End.COST)
        if run.examples >= run.max_examples:
            raise RunEnded(End.EXAMPLES)
        if not Round.objects.filter(pk=self._round.pk, state=Round.State.OPEN).exists():
            raise RunEnded(End.CLOSED)
        # After a call: reading what was asked before may take a slice, and none would get further.
        if self._has_called and time.monotonic() > self._slice_ends_at:
            raise SliceOver

    def _reserve_calls(self, call_count: int) -> None:
        """Count calls that are about to be made. Takes no lock: one conditional update.

        Raises RunEnded if too few are left, and LeaseLost if another worker has the run.
        """
        own_run = AdversaryRun.objects.filter(
            pk=self._run.pk, state=AdversaryRun.State.RUNNING, lease_token=self._run.lease_token
        )
        is_affordable = own_run.filter(calls__lte=F("max_calls") - call_count)
        if is_affordable.update(calls=F("calls") + call_count):
            self._has_called = True
            return
        if own_run.exists():
            raise RunEnded(End.CALLS)
        raise LeaseLost(f"{self._run} is not this worker's any more.")

    def _add_use(self, tokens: int = 0, cost: float = 0.0) -> None:
        """Add what the models used, as they report it, and the time since the last use."""
        now = time.monotonic()
        AdversaryRun.objects.filter(pk=self._run.pk).update(
            tokens=F("tokens") + tokens,
            cost=F("cost") + cost,
            seconds=F("seconds") + now - self._counted_until,
        )
        self._counted_until = now
