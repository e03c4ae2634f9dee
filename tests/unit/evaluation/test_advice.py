"""What a refusal tells to change, by exit code and log."""

import re

import pytest

from evaluation.isolation.sandbox.advice import (
    ADVICE_BY_CODE,
    ADVICE_BY_PATTERN,
    LOG_ADVICE,
    find_advice_by_code,
    find_advice_in_log,
)


@pytest.mark.parametrize(
    ("log", "named"),
    [
        ("python3: can't open file '/root/app/model.py': [Errno 13] Permission denied", "65534"),
        ("OSError: [Errno 30] Read-only file system: '/app/cache'", "/tmp"),
        ("Failed to resolve (Temporary failure in name resolution)", "network"),
        ("socket.gaierror: [Errno -2] Name or service not known", "network"),
        ("OSError: [Errno 28] No space left on device", "256 MiB"),
        ("KeyError: 'getpwuid(): uid not found: 65534'", "/etc/passwd"),
        ("ModuleNotFoundError: No module named 'torch'", "library"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "GPU"),
    ],
)  # fmt: skip
def test_each_complaint_has_a_cure(log: str, named: str) -> None:
    assert named in find_advice_in_log(f"starting\n{log}\nbye\n")


def test_the_last_complaint_counts_and_others_have_none() -> None:
    log = "No module named x\nModuleNotFoundError: x\nPermissionError: y\nall else\n"
    assert "65534" in find_advice_in_log(log)
    assert find_advice_in_log("ValueError: a wrong value") == ""
    assert find_advice_in_log("") == ""


def test_codes_of_commands_have_a_cure_and_others_lead_to_the_log() -> None:
    assert {find_advice_by_code(code) for code in (126, 127, 132)} == set(ADVICE_BY_CODE.values())
    assert find_advice_by_code(1) == LOG_ADVICE


def test_patterns_are_valid_and_cures_tell_what_to_do() -> None:
    for pattern, advice in ADVICE_BY_PATTERN:
        assert re.compile(pattern)
        assert len(advice) > 40
