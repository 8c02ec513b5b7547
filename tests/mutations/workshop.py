"""A copy of the tree that may be broken, its build directories, and the test programs in them."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    name: str  # in words
    effect: str  # what becomes possible
    file: str
    old: str  # exactly once in `file`
    new: str
    program: str  # of tests, as in tests/PROGRAM/
    case: str  # for --run_test

    @property
    def target(self):
        room = {"schedules": "core", "steps": "core", "faults": "filesystems"}.get(self.program, self.program)
        return f"tests/{room}/{self.program}_tests"


@dataclass
class Run:
    failed: str  # "" or which test, and how
    passed: bool  # at least one test was run, and all that were succeeded
    seconds: float
    output: str


def optimization(program):
    """Schedules are explored for long: there the compiler's time pays. Elsewhere most of the time is the compiler's."""
    return 2 if program in ("core", "schedules") else 0


class Workshop:
    """For breaks whose programs are built alike."""

    def __init__(self, root, work, breaks, jobs):
        level = optimization(breaks[0].program)
        self.source = work / "source"
        self.work = work
        self.tests_directory = work / "tests"
        self.built = work / "build"
        self.jobs = f"-j{jobs or max(1, (os.cpu_count() or 1) // 2)}"
        work.mkdir(parents=True, exist_ok=True)
        self.copy(root)
        self.make_room()
        if not (self.built / "build.ninja").exists():
            subprocess.run(["meson", "setup", self.built, self.source, "-Ddebug=false", f"-Doptimization={level}",
                            "-Dcpp_args=-D_GLIBCXX_ASSERTIONS", "-Dbenchmarks=disabled"],
                           check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def make_room(self):
        """An empty directory for the tests, some of which become another user."""
        for way_there in (self.work.parent, self.work):
            way_there.chmod(0o755)
        self.tests_directory.mkdir(exist_ok=True)
        self.tests_directory.chmod(0o1777)

    def copy(self, root):
        """Brings the copy up to date without touching what is as it was: it would be built again."""
        def is_source(path):
            return path.suffix not in (".pyc",) and "__pycache__" not in path.parts
        tops = [t for t in root.iterdir() if not t.name.startswith(".") and not (t / "build.ninja").exists()]
        files = [p for t in tops for p in ([t] if t.is_file() else t.rglob("*")) if p.is_file() and is_source(p)]
        wanted = {p.relative_to(root) for p in files}
        if self.source.exists():
            for old in [p for p in self.source.rglob("*") if p.is_file() and p.relative_to(self.source) not in wanted]:
                old.unlink()
        for name in wanted:
            there = self.source / name
            if there.exists() and there.read_bytes() == (root / name).read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, there)
            shutil.copymode(root / name, there)

    def build(self, b):
        """Builds the test program of `b`. None, or the last lines of what the compiler said."""
        ran = subprocess.run(["ninja", self.jobs, "-C", self.built, b.target], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return None if ran.returncode == 0 else "\n".join(ran.stdout.splitlines()[-20:])

    def run(self, b, limit):
        """Runs a test until it ends, fails for the first time, or takes longer than `limit` seconds."""
        command = [self.built / b.target, "--log_level=test_suite", "--report_level=no", "--color_output=no",
                   f"--run_test={b.case}"]
        began = time.monotonic()
        test = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, env={**os.environ, "FSLOCK_TEST_DIR": self.tests_directory})
        # A mount that is killed with its test stays behind: those tests end by themselves.
        stops_at_once = b.program != "filesystems"
        text, ended = self.listen(test, began + limit, stops_at_once)
        if not ended:
            os.killpg(test.pid, signal.SIGKILL)
        status = test.wait()
        test.stdout.close()
        shutil.rmtree(self.tests_directory, ignore_errors=True)
        self.make_room()
        return Run(self.failure(text, ended, status), self.all_passed(text), time.monotonic() - began, text)

    @staticmethod
    def listen(test, until, stops_at_once):
        """What the test says, and whether it ended by itself."""
        text = b""
        waiting = selectors.DefaultSelector()
        waiting.register(test.stdout, selectors.EVENT_READ)
        while waiting.select(max(0, until - time.monotonic())):
            more = os.read(test.stdout.fileno(), 65536)
            text += more
            if not more:
                return text.decode(errors="replace"), True
            if stops_at_once and re.search(rb'error: in "[^"]+"', text):
                break
        return text.decode(errors="replace"), False

    @staticmethod
    def failure(text, ended, status):
        said = re.search(r'error: in "([^"]+)"', text)
        if said:
            return said[1]
        if ended and status == 0:
            return ""
        suites, case = [], "no test"
        for way, kind, name in re.findall(r'(Entering|Leaving) test (suite|case) "([^"]+)"', text):
            if kind == "case":
                case = name
            elif way == "Entering":
                suites.append(name)
            else:
                suites.pop()
        where = "/".join([*suites, case])
        return f"{where}, which " + (f"ended with {status}" if ended else "did not end")

    @staticmethod
    def all_passed(text):
        counted = re.search(r"^(\d+) passed, 0 failed", text, re.MULTILINE)
        return counted is not None and int(counted[1]) > 0
