#!/usr/bin/env python3
"""Checks docs/cases.md: every line says what happens, and names cases that exist or says why there is none."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
problems = []
seen = []
counts = {"covered": 0, "not tried": 0, "open": 0}


def check_case(where, file, name):
    path = root / file
    if not path.is_file():
        problems.append(f"{where}: there is no {file}")
    elif not re.search(r"\b" + re.escape(name) + r"\b", path.read_text()):
        problems.append(f"{where}: {file} has no {name}")


for line in (root / "docs" / "cases.md").read_text().splitlines():
    row = re.match(r"\| ([A-K]\d\d) \| ([^|]+) \| (.*) \|$", line)
    if not row:
        continue
    where, _, text = row.groups()
    seen.append(where)
    named = re.findall(r"`(tests/[^`]+)` ((?:`\w+`(?:, )?)+)", text)
    for file, names in named:
        for name in re.findall(r"`(\w+)`", names):
            check_case(where, file, name)
    if text.startswith("not tried: "):
        counts["not tried"] += 1
    elif text.startswith("open: "):
        counts["open"] += 1
    elif named:
        counts["covered"] += 1
    else:
        problems.append(f"{where}: names no case, and no reason for having none")

if seen != sorted(set(seen)):
    problems.append("the lines are not in order, or an id stands there twice")
if len(seen) != 124:
    problems.append(f"{len(seen)} lines instead of 124")
print(", ".join(f"{n} {what}" for what, n in counts.items()))
for p in problems:
    print(p, file=sys.stderr)
sys.exit(bool(problems))
