"""Runs the transcripts and compares. Usage: transcripts.py [--update] PROGRAM SYSTEM

A transcript is what somebody sees who types the lines that begin with `$ ` into a shell: output and complaints, in this
order, and in brackets the status if it is not 0. Those of NAME_SYSTEM.txt are of that system only.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tested import Place, masked, patience, prelude

here = Path(__file__).with_name("transcripts")


def commands_of(text):
    """The lines that are typed; one that ends with a backslash goes on."""
    lines, typed = iter(text.splitlines()), []
    for line in lines:
        if line.startswith("$ "):
            typed.append(line[2:])
            while typed[-1].endswith("\\"):
                typed[-1] += "\n" + next(lines)
    return typed


def run(program, commands):
    """The transcript of `commands`, in a shell of their own."""
    with Place(program) as place, tempfile.TemporaryDirectory() as scratch:
        place.environment["T"] = scratch
        script = f". {prelude}\nexec 2>&1\n"
        for c in commands:
            script += f"cat <<'TYPED'\n$ {c}\nTYPED\n{c}\nstatus=$?\n[ $status -eq 0 ] || echo \"[$status]\"\n"
        ran = subprocess.run(["sh", "-c", script], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * patience)
        # What is typed stays as it is typed.
        parts = re.split(r"(?m)^(\$ .*\n)", ran.stdout)
        return "".join(p if i % 2 else masked(p) for i, p in enumerate(parts))


def main():
    words = sys.argv[1:]
    update = words[0] == "--update"
    program, system = words[update:]
    others = [p for p in here.glob("*_*.txt") if not p.stem.endswith("_" + system)]
    passed = failed = 0
    for path in sorted(set(here.glob("*.txt")) - set(others)):
        expected = path.read_text()
        seen = run(program, commands_of(expected))
        if update:
            path.write_text(seen)
        if seen == expected:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {path.name} is now\n{seen}")
    if passed + failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
