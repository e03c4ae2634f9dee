"""What a refusal tells to change, by exit code and log."""

import re

import pytest

from evaluation.isolation.sandbox.cures import BY_CODE, CURES, LOG_CURE, cure_of_code, cure_of_log


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
    assert named in cure_of_log(f"starting\n{log}\nbye\n")


def test_the_last_complaint_counts_and_others_have_none() -> None:
    log = "No module named x\nModuleNotFoundError: x\nPermissionError: y\nall else\n"
    assert "65534" in cure_of_log(log)
    assert cure_of_log("ValueError: a wrong value") == ""
    assert cure_of_log("") == ""


def test_codes_of_commands_have_a_cure_and_others_lead_to_the_log() -> None:
    assert {cure_of_code(code) for code in (126, 127, 132)} == set(BY_CODE.values())
    assert cure_of_code(1) == LOG_CURE


def test_patterns_are_valid_and_cures_tell_what_to_do() -> None:
    for pattern, cure in CURES:
        assert re.compile(pattern)
        assert len(cure) > 40
