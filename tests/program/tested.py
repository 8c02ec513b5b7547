"""What the tests of the program have in common: a directory of one's own, the program in it, and what is masked."""

import os
import re
import shutil
import subprocess
import tempfile
import traceback
from inspect import signature
from pathlib import Path
from types import FunctionType

patience = 60  # seconds for what has to happen

prelude = Path(__file__).with_name("prelude.sh")


class Place:
    """A directory that is removed in the end, and how the program is called in it."""

    def __init__(self, program):
        self.program = program = str(Path(program).resolve())
        self.path = Path(tempfile.mkdtemp(prefix="fslock-program-", dir=os.environ.get("FSLOCK_TEST_DIR")))
        self.environment = {**os.environ, "PATH": f"{Path(program).parent}:{os.environ['PATH']}", "LC_ALL": "C"}
        self.environment.pop("NO_COLOR", None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def begin(self, *words, **how):
        """Starts the program, with pipes."""
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "text": True, **how}
        return subprocess.Popen([self.program, *words], cwd=self.path, env=self.environment, **how)

    def run(self, *words):
        """Runs the program to its end; its status, its output and what it complained about."""
        ran = subprocess.run([self.program, *words], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=patience)
        return ran.returncode, ran.stdout, ran.stderr

    def hold(self, lock, *options, script="echo ready; read line; true"):
        """Somebody who has the lock until its standard input ends, or it is told to."""
        holder = self.begin("run", *options, lock, "--", "sh", "-c", script, stdin=subprocess.PIPE)
        assert holder.stdout.readline() == "ready\n", holder.communicate()
        return holder

    def names(self):
        return sorted(p.name for p in self.path.iterdir())


def run_cases(functions, place):
    """Runs those that take a `place`, each in one of its own; prints what fails and the counts. The status to exit with."""
    cases = [f for f in functions.values() if isinstance(f, FunctionType) and list(signature(f).parameters) == ["place"]]
    failed = 0
    for case in cases:
        try:
            with place() as p:
                case(p)
        except Exception as e:
            failed += 1
            line = next(at.lineno for at in traceback.extract_tb(e.__traceback__) if at.name == case.__name__)
            print(f"FAILED: {case.__name__}, line {line}: {type(e).__name__}: {e}", flush=True)
    print(f"{len(cases) - failed} passed, {failed or not cases:d} failed")
    return 1 if failed or not cases else 0


def masked(text):
    """Without what another run would say differently: times, pids, host, directory."""
    text = re.sub(r"/\S*/fslock-program-\w+", "DIR", text)
    text = re.sub(r"\b\d+-\d{16,19}\b", "EPOCH", text)
    text = re.sub(r"\bpid \d+ on [^\s,;]+", "pid PID on HOST", text)
    text = re.sub(r'"pid":\d+,"hostname":"[^"]*"', '"pid":PID,"hostname":"HOST"', text)
    text = re.sub(r"\b\d{13}\b", "TIME", text)
    text = re.sub(r'"age_ms":\d+', '"age_ms":AGE', text)
    text = re.sub(r"\b\d+ ms\b", "SOME ms", text)
    text = re.sub(r"\b\d+ (s|min|h|d)\b( \d+ (s|min|h)\b)?", "SOME TIME", text)
    text = re.sub(r"\.tmp\.\d+\.", ".tmp.PID.", text)
    text = re.sub(r"(?m)^  command .*\n", "", text)  # only where /proc is
    return re.sub(r'"command":"(?:[^"\\]|\\.)*"', '"command":"COMMAND"', text)
