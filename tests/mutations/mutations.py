#!/usr/bin/env python3
"""Breaks the protocol and the engine on purpose, one break at a time, and says which test caught it.

Usage: mutations.py [--check] [--list] [--report FILE] [--work DIRECTORY] [-j N] [NAME...]

Works on a copy of the tree, and builds only the test program that is expected to catch a
break. NAME is a part of the name of a break; without any, all are tried. The tests that are to catch them are run on
the unbroken tree first. The last line counts; the status is 0 when every break was caught.
"""

import argparse
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # nothing of a run stays in the tree

import breaks_of_the_engine
import breaks_of_the_protocol
from workshop import Workshop, optimization

root = Path(__file__).resolve().parents[2]
breaks = breaks_of_the_protocol.breaks + breaks_of_the_engine.breaks


def broken(text, b):
    """`text` with the break in it, or None where it does not apply: its old text has to be there once."""
    return text.replace(b.old, b.new) if text.count(b.old) == 1 and b.new != b.old else None


def last_of(case):
    return case.rsplit("/", 1)[-1].rstrip("*")


def cases_of(b):
    """The names of the test cases in the program that is to catch `b`."""
    room = root / Path(b.target).parent
    listed = re.search(rf"'{b.program}' : \[(.*?)\]", (room / "meson.build").read_text(), re.DOTALL)
    sources = [room / s for s in re.findall(r"'([^']+\.cpp)'", listed[1])] if listed else room.glob("*.cpp")
    return re.findall(r"TEST_CASE(?:_TEMPLATE)?\(\s*(\w+)", "\n".join(s.read_text() for s in sources))


def check(chosen):
    """Whether the list fits the tree: what is broken is there, and so are the tests. Builds nothing."""
    wrong = []
    names = [b.name for b in chosen]
    wrong += [f"{n}: twice in the list" for n in sorted({n for n in names if names.count(n) > 1})]
    for b in chosen:
        if not (root / b.file).is_file() or broken((root / b.file).read_text(), b) is None:
            wrong.append(f"{b.name}: does not apply to {b.file}")
        if not any(c.startswith(last_of(b.case)) for c in cases_of(b)):
            wrong.append(f"{b.name}: there is no test {b.case}")
    for line in wrong:
        print(f"FAILED: {line}")
    print(f"{len(chosen) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not chosen else 0


def try_one(b, shop, usual):
    """What came of one break: a word, and the rest of the sentence."""
    text = (root / b.file).read_text()
    changed = broken(text, b)
    if changed is None:
        return "DOES NOT APPLY", f"to {b.file}"
    if usual is None:
        return "not tried", f"{b.case} is skipped here"
    place = shop.source / b.file
    place.write_text(changed)
    try:
        complaint = shop.build(b)
        if complaint:
            return "DOES NOT COMPILE", "\n" + complaint
        ran = shop.run(b, limit=10 + 10 * usual)
        return ("caught", f"by {ran.failed}") if ran.failed else ("SURVIVED", b.case)
    finally:
        place.write_text(text)


def report(path, results):
    """The table of what was caught by what, without anything that another run would say differently."""
    lines = ["# Breaks that a test must catch", "",
             "Each of these was made on purpose, alone, and a test failed. `./dev mutations` tries them again;",
             "`tests/mutations/mutations.py --report docs/mutations.md` writes this page.", "",
             "| break | in | what it does | caught by |", "|---|---|---|---|"]
    for b, how, _ in results:
        by = f"`{b.program}`: `{b.case}`" if how == "caught" else how
        lines.append(f"| {b.name} | `{b.file.removeprefix('src/')}` | {b.effect} | {by} |")
    Path(path).write_text("\n".join(lines) + "\n")


def try_side_by_side(chosen, work, jobs):
    """Two builds at a time, each with a tree of its own to break."""
    groups = [[b for b in chosen if optimization(b.program) == level] for level in (0, 2)]
    with ThreadPoolExecutor() as several:
        going_on = [several.submit(try_all, g, Workshop(root, Path(work) / f"O{optimization(g[0].program)}", g, jobs))
                    for g in groups if g]
        return [result for g in going_on for result in g.result()]


def try_all(chosen, shop):
    # One after the other what is in one file and one program: each then makes one object, and not the last one again.
    order = sorted(chosen, key=lambda b: (b.file, b.target))
    usual = {}
    for b in order:
        complaint = None if (b.target, b.case) in usual else shop.build(b)
        if complaint:
            raise SystemExit(f"the unbroken tree does not compile:\n{complaint}")
        if (b.target, b.case) not in usual:
            ran = shop.run(b, limit=300)
            if ran.failed:
                raise SystemExit(f"without any break: {b.program} {ran.failed}\n{ran.output}")
            usual[b.target, b.case] = ran.seconds if ran.passed else None
    results = []
    for b in order:
        how, rest = try_one(b, shop, usual[b.target, b.case])
        print(f"{b.name}: {how} {rest}", flush=True)
        results.append((b, how, rest))
    return results


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="only whether every break still applies")
    arguments.add_argument("--list", action="store_true", help="only the names")
    arguments.add_argument("--report", metavar="FILE", help="write a table there")
    arguments.add_argument("--work", metavar="DIRECTORY", help="keep copy and build there, and use what is there")
    arguments.add_argument("-j", type=int, help="how many compilers at a time in each of two builds")
    arguments.add_argument("names", nargs="*", metavar="NAME")
    given = arguments.parse_args()
    chosen = [b for b in breaks if not given.names or any(n in b.name for n in given.names)]
    if not chosen:
        sys.exit("no break has such a name")
    if given.list:
        print("\n".join(b.name for b in chosen))
        return 0
    if given.check:
        return check(chosen)
    if given.work:
        results = try_side_by_side(chosen, given.work, given.j)
    else:
        with tempfile.TemporaryDirectory(prefix="fslock-mutations-") as work:
            results = try_side_by_side(chosen, work, given.j)
    if given.report:
        order = {b.name: i for i, b in enumerate(breaks)}
        report(given.report, sorted(results, key=lambda r: order[r[0].name]))
    caught = sum(how == "caught" for _, how, _ in results)
    skipped = sum(how == "not tried" for _, how, _ in results)
    failed = len(results) - caught - skipped
    print(f"{caught} caught, {failed} not caught, {skipped} not tried")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
