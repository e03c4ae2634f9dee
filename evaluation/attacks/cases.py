"""The 44 hostile cases: what each does, what must become of it, and what else must hold."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from evaluation.attacks import checks
from evaluation.attacks.bench import LIMITS, Bench, Seen, expect
from evaluation.contract import MIB, Outcome
from evaluation.sandbox.limits import Limits

OK, ERROR, OOM = Outcome.OK, Outcome.MODEL_ERROR, Outcome.OOM
TIMEOUT, INVALID, LARGE = Outcome.TIMEOUT, Outcome.INVALID_OUTPUT, Outcome.OUTPUT_TOO_LARGE
SHORT = replace(LIMITS, seconds=4)  # for what never ends by itself
QUOTA = "tests/unit/evaluation/test_quota.py::test_refused_ones_have_a_cap_of_their_own"
CANCEL = "tests/web/test_runs.py::test_a_run_is_cancelled_whether_it_waits_or_runs"
CLAIM = "tests/web/test_jobs.py::test_a_job_is_claimed_once_by_many_workers"
WORKER = "tests/integration/test_run_kills.py::test_the_worker_of_a_container_is_killed"
ENGINE = "tests/integration/test_run_kills.py::test_the_engine_is_killed"


@dataclass(frozen=True)
class Case:
    """One hostile model.

    script: Python, run inside the sandbox with the tools of `bench.BOOT`; outcomes: one of them
    must come; in_gvisor: also right there, where a child's end is the end of all, and files in
    memory are counted and not limited; holds: raises Breach when something else is wrong. Cases
    that are no single run have a `check` instead, which says what it saw and raises Breach too.
    elsewhere: the test of what cannot be shown here.
    """

    number: int
    title: str
    expected: str
    script: str = ""
    outcomes: tuple[Outcome, ...] = ()
    in_gvisor: tuple[Outcome, ...] = ()
    limits: Limits = LIMITS
    holds: Callable[[Seen], None] = lambda seen: None
    check: Callable[[Bench], str] | None = None
    elsewhere: str = ""

    def run(self, bench: Bench) -> str:
        """What was seen. Raises Breach."""
        if self.check:
            return self.check(bench)
        seen = bench.run(self.script, limits=self.limits)
        ending = seen.ending
        got = f"{ending.outcome}: {ending.sentence or ' '.join(ending.warnings)}".rstrip(": ")
        expect("BREACH" not in ending.log, ending.log)
        if bench.is_gvisor and ending.outcome in self.in_gvisor:
            return got
        expect(ending.outcome in self.outcomes, f"{got}\n{ending.log}")
        self.holds(seen)
        return got


CASES = (
    Case(
        1,
        "takes all memory",
        "oom",
        "data = bytearray(10**9)",
        (OOM,),
    ),
    Case(
        2,
        "a child takes all memory, the parent answers",
        "ok with a warning",
        "import os\nif not os.fork():\n    bytearray(10**9)\nos.wait()\nanswer_all()",
        (OK,),
        (OOM,),
        holds=checks.warns_of_memory,
    ),
    Case(3, "never ends", "timeout", "while True: pass", (TIMEOUT,), limits=SHORT),
    Case(
        4,
        "ignores SIGTERM",
        "timeout",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(999)",
        (TIMEOUT,),
        limits=SHORT,
    ),
    Case(
        5,
        "fork bomb",
        "timeout, oom or model_error; a good model that runs meanwhile is not harmed",
        check=checks.fork_bomb,
    ),
    Case(
        6,
        "thread bomb",
        "timeout, oom or model_error; a good model that runs meanwhile is not harmed",
        check=checks.thread_bomb,
    ),
    Case(
        7,
        "fills /tmp",
        "model_error: no space left",
        "with open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(10**6)); f.flush()",
        (ERROR,),
        limits=replace(LIMITS, scratch_bytes=4 * MIB),
        holds=checks.says("[Errno 28]", "[Errno 27]"),
    ),
    Case(
        8,
        "fills /tmp with empty files",
        "model_error: no space left",
        "import os\nfor n in range(10**6): os.close(os.open(f'/tmp/{n}', os.O_CREAT))",
        (ERROR,),
        (OOM,),
        holds=checks.says("[Errno 28]"),
    ),
    Case(
        9,
        "writes wherever it can",
        "only /tmp and /dev/shm can be written to, and both are memory",
        """
import os
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if folder != "/" or name not in ("proc", "sys")]
    try:
        with open(f"{folder}/written", "w") as file:
            file.write("x")
    except OSError:
        continue
    if not folder.startswith(("/tmp", "/dev/shm", "/dev/mqueue")):
        breach(folder)
for line in open("/proc/self/mounts"):
    device, place, kind, options, *_ = line.split()
    if options.startswith("rw") and kind not in ("tmpfs", "proc", "devpts", "mqueue", "cgroup"):
        breach(line)
answer_all()
""",
        (OK,),
    ),
    Case(
        10, "image with VOLUME", "refused at its arrival; not writable either", check=checks.volume
    ),
    Case(11, "image with HEALTHCHECK and ONBUILD", "neither is run", check=checks.healthcheck),
    Case(
        12,
        "floods standard output",
        "output_too_large",
        "for example in examples: print(json.dumps("
        '{"id": example["id"], "output": {"label": "yes"}}) + " " * 60000)',
        (LARGE,),
    ),
    Case(
        13,
        "floods standard error",
        "ok; the log keeps its end",
        "for n in range(40): print('x' * 10**6, file=sys.stderr)\nanswer_all()",
        (OK,),
        holds=checks.log_is_cut,
    ),
    Case(
        14,
        "one giant line",
        "invalid_output",
        "print('x' * 10**6)",
        (INVALID,),
        holds=checks.line(1),
    ),
    Case(
        15,
        "deeply nested JSON",
        "invalid_output",
        "answer(examples[0])\nprint('[' * 50000)",
        (INVALID,),
        holds=checks.line(2),
    ),
    Case(
        16,
        "NaN as a probability",
        "invalid_output",
        "answer(examples[0], prob={'yes': float('nan')})",
        (INVALID,),
        holds=checks.line(1),
    ),
    Case(
        17,
        "answers of wrong types",
        "invalid_output",
        "answer(examples[0], label=['yes'])",
        (INVALID,),
        holds=checks.line(1),
    ),
    Case(
        18,
        "answers an example twice",
        "invalid_output",
        "answer(examples[0])\nanswer(examples[0], 'no')",
        (INVALID,),
        holds=checks.line(2),
    ),
    Case(
        19,
        "leaves examples out",
        "invalid_output",
        "for example in examples[:30]: answer(example)",
        (INVALID,),
        holds=checks.sentence("10 of 40 answers are missing"),
    ),
    Case(
        20,
        "answers what was not asked",
        "invalid_output, without a gold label",
        "answer({'id': 'x'})",
        (INVALID,),
        holds=checks.line(1),
    ),
    Case(
        21,
        "looks for a network",
        "nothing is reached",
        """
import socket
def reach(what, *attempt):
    try:
        function, *arguments = attempt
        function(*arguments)
    except OSError:
        return
    breach(what)
def tcp(host, port): socket.create_connection((host, port), 2)
def udp(host, port): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, port))
def unix(path): socket.socket(socket.AF_UNIX).connect(path)
for host in ("1.1.1.1", "169.254.169.254", "172.17.0.1", "10.0.0.1", "192.168.0.1"):
    for port in (53, 80, 443, 2375):
        reach(f"tcp {host}:{port}", tcp, host, port)
        reach(f"udp {host}:{port}", udp, host, port)
for port in (53, 80, 443, 2375, 5432, 6379, 8000, 8100):
    reach(f"localhost:{port}", tcp, "127.0.0.1", port)
reach("name look-up", socket.getaddrinfo, "example.org", 80)
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"):
    reach(path, unix, path)
names = [name for _, name in socket.if_nameindex()]
if names != ["lo"]:
    breach(names)
answer_all()
""",
        (OK,),
    ),
    Case(
        22,
        "asks the kernel for what no model needs",
        "EPERM or ENOSYS",
        """
import ctypes, errno, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
SOCKETS = {"AF_VSOCK": (40, 1, 0), "AF_ALG": (38, 5, 0), "AF_PACKET": (17, 3, 0),
           "raw": (2, 3, 1), "SCTP": (2, 1, 132), "netlink audit": (16, 3, 9),
           "netlink netfilter": (16, 3, 12), "netlink uevent": (16, 3, 15)}
for name, numbers in SOCKETS.items():
    try:
        socket.socket(*numbers)
    except PermissionError:
        continue
    except OSError:
        pass  # the kernel has none, but the sandbox would have let it ask
    breach(name)
X86 = {"io_uring_setup": 425, "ptrace": 101, "personality": 135, "keyctl": 250, "add_key": 248,
       "bpf": 321, "userfaultfd": 323, "unshare": 272, "setns": 308, "mount": 165,
       "pivot_root": 155, "chroot": 161, "perf_event_open": 298, "init_module": 175,
       "kexec_load": 246, "process_vm_readv": 310, "open_by_handle_at": 304, "reboot": 169,
       "syslog": 103, "clone3": 435, "move_mount": 429, "fsopen": 430, "swapon": 167,
       "settimeofday": 164}
CALLS = [(name, number, 0) for name, number in X86.items()]
CALLS.append(("clone into a user namespace", 56, 0x10000011))
for name, number, flags in CALLS if platform.machine() == "x86_64" else ():
    result = libc.syscall(number, flags, 0, 0, 0, 0)
    if result != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        breach(f"{name}: {result}, {errno.errorcode.get(ctypes.get_errno())}")
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
for name, wanted in {"CapEff": 0, "CapBnd": 0, "NoNewPrivs": 1, "Seccomp": 2}.items():
    if name in status and int(status[name], 16) != wanted:
        breach(f"{name} {status[name]}")
answer_all()
""",
        (OK,),
    ),
    Case(
        23,
        "looks for the right answers everywhere",
        "they are nowhere",
        """
import os
wanted = "retne-reven-tsum-a3f7-dlog"[::-1]
found = [repr(sorted(os.environ.items())), open("/proc/self/mountinfo").read()]
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if folder != "/" or name not in ("usr", "sys", "proc")]
    for name in files:
        found.append(name)
        try:
            with open(f"{folder}/{name}", errors="replace") as file:
                found.append(file.read(10**6) if not folder.startswith("/dev") else "")
        except OSError:
            pass
for process in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            found.append(open(f"/proc/{process}/{name}").read())
        except OSError:
            pass
if any(wanted in text for text in found):
    breach("gold")
for name in os.environ:
    if any(word in name for word in ("KEY", "SECRET", "TOKEN", "PASSWORD", "DATABASE", "PROXY")):
        breach(name)
answer_all()
""",
        (OK,),
    ),
    Case(
        24,
        "writes the examples into its log",
        "ok; the submitter's copy of the log has none of them",
        "for example in examples: print('read', example['inputs']['text'], file=sys.stderr)\n"
        "answer_all()",
        (OK,),
        holds=checks.log_is_redacted,
    ),
    Case(
        25,
        "hides the examples in its answers",
        "invalid_output: unknown field; probabilities keep four digits",
        "answer(examples[0], prob={'yes': 0.123456789, 'no': 0.876543211})\n"
        "answer(examples[1], note=examples[1]['inputs']['text'])",
        (INVALID,),
        holds=checks.digits_are_few,
    ),
    Case(
        26,
        "fails on purpose, to be told the reason again and again",
        "model_error; failures have a quota of their own",
        "sys.exit('what I saw')",
        (ERROR,),
        elsewhere=QUOTA,
    ),
    Case(
        27,
        "has learned the examples by their ids or their order",
        "both are new at each run",
        check=checks.ids_are_fresh,
    ),
    Case(
        28, "answers by chance", "two runs disagree, and that can be seen", check=checks.by_chance
    ),
    Case(
        29,
        "says something by the time that it takes",
        "nothing is kept of the time of one example",
        check=checks.times_are_not_kept,
    ),
    Case(
        30,
        "kills itself as we would",
        "model_error",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        (ERROR,),
        holds=checks.sentence("SIGKILL from inside"),
    ),
    Case(
        31,
        "leaves links, pipes and devices where answers might be read",
        "invalid_output: only standard output is read",
        "import os\nos.mkfifo('/tmp/predictions.jsonl')\nos.symlink('/etc/shadow', '/tmp/output')\n"
        "os.link('/tmp/output', '/tmp/link', follow_symlinks=False)",
        (INVALID,),
        holds=checks.sentence("40 of 40 answers are missing"),
    ),
    Case(
        32,
        "names files to lead a reader astray",
        "invalid_output: no name is read",
        "import os\nos.mkdir('/tmp/..\\n')\nopen('/tmp/..\\n/\\x1b[2J', 'w').close()",
        (INVALID,),
        holds=checks.sentence("40 of 40 answers are missing"),
    ),
    Case(
        33, "archive bombs, traversal, 100,000 members", "refused unpacked", check=checks.archives
    ),
    Case(34, "the image's tag is moved", "what was checked is run", check=checks.moved_tag),
    Case(
        35,
        "image of another architecture, without a command, of 20 GB",
        "refused, with a sentence each",
        check=checks.odd_images,
    ),
    Case(36, "image with our label", "the janitor does not take it for ours", check=checks.spoofed),
    Case(
        37,
        "waits for standard input, or closes it",
        "ok",
        "import os\nassert sys.stdin.read() == ''\nos.close(0)\nanswer_all()",
        (OK,),
    ),
    Case(
        38,
        "the worker is killed in the middle",
        "the container is found and removed; the run ends once",
        check=checks.killed_worker,
        elsewhere=WORKER,
    ),
    Case(
        39,
        "cancelled in the middle",
        "it ends, nothing is left",
        check=checks.cancelled,
        elsewhere=CANCEL,
    ),
    Case(40, "two workers take one job", "one gets it", elsewhere=CLAIM),
    Case(41, "the engine is down", "infrastructure", check=checks.engine_down, elsewhere=ENGINE),
    Case(
        42,
        "control characters, HTML and template code in the log",
        "shown, and nothing happens",
        "print('\\x1b]0;title\\x07\\x1b[2J<script>alert(1)</script>{{ settings }}\\u202e',"
        " file=sys.stderr)\nanswer_all()",
        (OK,),
        holds=checks.log_is_inert,
    ),
    Case(
        43,
        "endpoint that leads into our network",
        "not asked",
        check=checks.private_endpoints,
    ),
    Case(
        44,
        "computes everything before its first answer",
        "the whole time counts, with a warning",
        check=checks.ahead,
    ),
)
