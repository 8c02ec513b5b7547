"""Checks the tables of messages in docs/guide.md against the sources. Usage: messages.py SOURCE-ROOT

Each message in the first column of a table of the section "Messages" is one that the sources can print, `…` standing
for what differs; and each that the files below can print is in a table.
"""

import errno
import os
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
printing = ["src/core/values.cpp", "src/engine/breaking.cpp", "src/engine/inspect.cpp"] + sorted(
    str(p.relative_to(root)) for p in (root / "src/cli").glob("*.cpp"))
complete = ["src/core/values.cpp", "src/cli/exits.cpp", "src/cli/run.cpp", "src/cli/repair.cpp"]
shortest = 12  # what is shorter is a part of a message, or a name
at_least = 7  # a part of a message that is there by no accident
punctuation = " ;:,.()"
of_asio = {"Operation aborted", "Operation canceled"}


def literals(file):
    """The string literals of a file; those that stand side by side are one."""
    lines = (root / file).read_text().replace("'\"'", "''").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "//")))
    runs = re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text)
    for run in runs:
        parts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', run)
        yield "".join(parts).replace('\\"', '"').replace("\\n", "").replace("`", "")


def consists_of(text, known):
    """Whether `text` is made of whole messages in `known` and of parts of them that are no accident."""
    words = text.split()
    reached = {0}
    for end in range(1, len(words) + 1):
        for begin in sorted(reached):
            part = " ".join(words[begin:end])
            if part in known or len(part) >= at_least and any(part in k for k in known):
                reached.add(end)
                break
    return len(words) in reached


guide = (root / "docs/guide.md").read_text()
section = re.search(r"(?ms)^## Messages$(.*?)(?=^## |\Z)", guide)
if not section:
    sys.exit("docs/guide.md has no section Messages\n0 passed, 1 failed")
rows = [line for line in section[1].splitlines() if line.startswith("| `")]
listed = [m for row in rows for m in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
anywhere = " ".join(rows).replace("`", "")
known = {text.strip(punctuation) for file in printing for text in literals(file)} | of_asio
known |= {os.strerror(getattr(errno, e)) for e in re.findall(r"`(E[A-Z]+)`", section[1])}
problems = []
for message in listed:
    for piece in re.split(r"…|: |[;,.(]+ | \(|\)", message):
        piece = piece.strip(punctuation)
        if re.search("[a-z]{2}", piece) and not consists_of(piece, known):
            problems.append(f"nothing prints {piece!r}, of `{message}`")
for file in complete:
    for text in literals(file):
        text = text.strip(punctuation)
        if len(text) >= shortest and " " in text and text not in anywhere:
            problems.append(f"{file} prints {text!r}, which no table has")
for p in problems:
    print("FAILED:", p)
print(f"{max(len(listed) - len(problems), 0)} passed, {len(problems) if listed else 1} failed")
sys.exit(bool(problems) or not listed)
