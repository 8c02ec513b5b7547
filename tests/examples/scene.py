"""Programs that are started in a directory of their own, and what they say."""

import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))
from tested import Place, patience


class Process:
    """A program whose lines can be waited for."""

    def __init__(self, place, *words, out=None):
        self.program = subprocess.Popen([str(place.programs / words[0]), *words[1:]], cwd=place.path,
                                        env=place.environment, stdin=subprocess.PIPE, stdout=out or subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.pid = self.program.pid
        self.heard = Lines(self.program.stdout) if out is None else None

    def hears(self, pattern):
        return self.heard.wait_for(pattern)

    def tell(self, line):
        self.program.stdin.write((line + "\n").encode())
        self.program.stdin.flush()

    def signal(self, n):
        self.program.send_signal(n)

    def kill(self):
        self.program.kill()
        self.program.wait(patience)

    def end_of_input(self):
        self.program.stdin.close()

    def status(self):
        """Of its end, which has to come; the input is left open."""
        return self.program.wait(patience)

    def all_it_says(self):
        return self.heard.rest()


class Lines:
    """What comes out of a pipe, line by line."""

    def __init__(self, pipe):
        self.pipe = pipe.fileno()
        self.keep_open = pipe
        self.unread = b""
        self.all = []

    def next(self):
        """The next line; None at the end."""
        end = time.monotonic() + patience
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.pipe, selectors.EVENT_READ)
            while b"\n" not in self.unread:
                assert waiting.select(end - time.monotonic()), f"nothing more comes after {self.all}"
                more = os.read(self.pipe, 65536)
                if not more:
                    return None
                self.unread += more
        line, self.unread = self.unread.split(b"\n", 1)
        self.all.append(line.decode())
        return self.all[-1]

    def wait_for(self, pattern):
        """The match of the first line from here on that has one."""
        while (line := self.next()) is not None:
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no line has {pattern!r}: {self.all}")

    def rest(self):
        while self.next() is not None:
            pass
        return self.all


class Scene(Place):
    """A directory of one's own, and what was started in it, which does not outlive it."""

    def __init__(self, programs):
        super().__init__(programs)
        self.programs = Path(programs).resolve()
        self.started = []

    def start(self, *words, out=None):
        self.started.append(Process(self, *words, out=out))
        return self.started[-1]

    def hold(self, lock):
        """Somebody who has the lock until his input ends."""
        holder = self.start("callbacks", lock)
        holder.hears("^acquired ")
        return holder

    def __exit__(self, *how):
        for p in self.started:
            if p.program.poll() is None:
                p.kill()
        return super().__exit__(*how)
