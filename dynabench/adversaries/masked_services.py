"""Ask the masked language model of this site for words, in a process of its own, and log them.

The operator puts the model into a folder. A run that continues reads the logged words.
"""

import hashlib
import json
import queue
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django.conf import settings

from core.text.words import gettext_noop
from dynabench.adversaries.kinds.base import Blank
from dynabench.adversaries.models import AdversaryRun, WriterCall
from evaluation.contract import BeatCallback, ImpossibleJob
from evaluation.heartbeat import BEAT_SECONDS, skip_beat

FOLDER_NAME = "masked-words"
START_SECONDS = 120.0
ANSWER_SECONDS = 60.0
NO_MODEL_MESSAGE = gettext_noop("The site has no masked language model. Ask its operators.")
BROKEN_MESSAGE = gettext_noop("The site’s masked language model doesn’t work. Ask its operators.")


def find_masked_model() -> Path | None:
    """Return the folder of the site's masked language model, or None."""
    folder = Path(settings.MODELS_HOME) / FOLDER_NAME
    return folder if (folder / "config.json").exists() else None


class LoggedWords:
    """The words for the blanks of a run; a context manager that ends the model's process.

    The process starts with the first new blank, so a slice that needs no words starts none.
    """

    def __init__(self, run: AdversaryRun, beat: BeatCallback = skip_beat) -> None:
        """Read the run's logged words. beat: called while the model works; may raise."""
        self._run, self._beat = run, beat
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        # All at once: a slice that repeats its search asks for each of them.
        self._texts = dict(run.writer_calls.values_list("digest", "text"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # It holds nothing that could be lost: all words are logged.
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def has_words(self, blank: Blank) -> bool:
        """Return whether the words of a blank are logged."""
        return _hash_blank(blank) in self._texts

    def find_words(self, blank: Blank) -> list[str]:
        """Return words for a blank, the likeliest first, logged or new.

        Raises ImpossibleJob if the site has no such model, or it doesn't work.
        """
        digest = _hash_blank(blank)
        if digest not in self._texts:
            text = json.dumps(self._ask_model(blank))
            WriterCall.objects.update_or_create(
                run=self._run,
                digest=digest,
                defaults={"state": WriterCall.State.ANSWERED, "text": text},
            )
            self._texts[digest] = text
        return list(json.loads(self._texts[digest]))

    def _ask_model(self, blank: Blank) -> list[str]:
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asdict(blank)) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise ImpossibleJob(BROKEN_MESSAGE) from None
        return list(self._read(ANSWER_SECONDS)["words"])

    def _start(self) -> subprocess.Popen[str]:
        folder = find_masked_model()
        if folder is None:
            raise ImpossibleJob(NO_MODEL_MESSAGE)
        # Of its own, so that the worker never loads torch and can end it at any time.
        process = subprocess.Popen(
            [sys.executable, "-m", "dynabench.adversaries.masked_worker", str(folder)],
            cwd=settings.BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        # A thread reads, because a pipe can't be waited for with a deadline.
        threading.Thread(target=self._pass_lines, args=[process], daemon=True).start()
        self._process = process
        self._read(START_SECONDS)
        return process

    def _pass_lines(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line)
        self._lines.put("")  # the process has ended

    def _read(self, seconds: float) -> dict[str, Any]:
        """Return the next answer. Raises ImpossibleJob if there is none in time."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            # The lease is shorter than the model may take.
            self._beat()
            try:
                line = self._lines.get(timeout=BEAT_SECONDS)
            except queue.Empty:
                continue
            if line:
                return dict(json.loads(line))
            break  # the process has ended
        raise ImpossibleJob(BROKEN_MESSAGE)


def _hash_blank(blank: Blank) -> str:
    content = json.dumps(asdict(blank), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()
