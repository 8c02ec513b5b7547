"""Compiles a text with the command by which Meson compiles a file, for the tests that show that something compiles."""

import json
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

takes_a_value = {"-o", "-MF", "-MQ", "-MT"}
dropped = {"-c", "-MD", "-MMD"}


class Compiler:
    """`like` is a file of the build in the directory `build`, whose flags are used."""

    def __init__(self, build, like):
        commands = json.loads((Path(build) / "compile_commands.json").read_text())
        entry = next(e for e in commands if Path(e["directory"], e["file"]).resolve() == Path(like).resolve())
        self.directory = entry["directory"]
        self.command = []
        words = iter(shlex.split(entry["command"]))
        for word in words:
            if word in takes_a_value:
                next(words)
            elif word not in dropped and word != entry["file"]:
                self.command.append(word)
        self.command += ["-fsyntax-only", "-x", "c++", "-"]

    def complaints(self, text):
        """What the compiler says of `text`, or None if it accepts it."""
        ran = subprocess.run(self.command, cwd=self.directory, input=text, text=True, capture_output=True)
        return None if ran.returncode == 0 else ran.stderr or f"the compiler ended with {ran.returncode}"


def count(compiler, texts):
    """Compiles `texts`, pairs of a name and a text; prints what fails and the counts. The status to exit with."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda t: (t[0], compiler.complaints(t[1])), texts))
    failed = [(name, why) for name, why in results if why is not None]
    for name, why in failed:
        print(f"FAILED: {name}\n{why}")
    if not results:
        print("FAILED: there is nothing to compile")
    print(f"{len(results) - len(failed)} passed, {len(failed) if results else 1} failed")
    return 1 if failed or not results else 0
