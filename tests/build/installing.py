"""What this build installs, installed into a directory of its own, and how cases about it are run and counted."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from inspect import signature
from pathlib import Path
from types import FunctionType

here = Path(__file__).resolve().parent
units = [here / "one_unit.cpp", here / "another_unit.cpp"]


class Skipped(Exception):
    """Says why a case cannot be tried here."""


def run(*words, **how):
    """Runs a program to its end; what it printed. An exception with what it complained about when it fails."""
    words = [str(w) for w in words]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\nended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def needed(program):
    if not shutil.which(program):
        raise Skipped(f"{program} is not installed")
    return program


class Installed:
    """The files, without debug information; removed in the end. `root` is what the prefix became."""

    def __init__(self, meson, build, name):
        self.name, self.meson, self.build = name, meson, Path(build)
        options = json.loads((self.build / "meson-info" / "intro-buildoptions.json").read_text())
        self.options = {o["name"]: o["value"] for o in options}
        self.stage = Path(tempfile.mkdtemp(prefix="fslock-installed-", dir=os.environ.get("FSLOCK_TEST_DIR")))
        self.prefix = self.options["prefix"]
        self.root = self.stage / self.prefix.lstrip("/")
        self.include, self.lib, self.data = (self.root / self.options[o] for o in ("includedir", "libdir", "datadir"))
        self.compiler = os.environ.get("CXX", "c++").split()

    def __enter__(self):
        run(self.meson, "install", "-C", self.build, "--no-rebuild", "--strip", "--destdir", self.stage)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.stage, ignore_errors=True)

    def files(self):
        return sorted(p for p in self.stage.rglob("*") if not p.is_dir())

    def kinds(self):
        """static, shared, or both of them."""
        chosen = self.options["default_library"]
        return ["static", "shared"] if chosen == "both" else [chosen]

    def of_kind(self, kind):
        if kind not in self.kinds():
            raise Skipped(f"this build has no {kind} library (-Ddefault_library={self.options['default_library']})")

    def place(self, name):
        made = self.stage / "consumers" / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def pkg_config(self, *asked):
        """What pkg-config says about the tree at the place where it is now."""
        moved = self.place("pkgconfig")
        for pc in (self.lib / "pkgconfig").glob("*.pc"):
            text = pc.read_text().replace(f"prefix={self.prefix}\n", f"prefix={self.root}\n")
            (moved / pc.name).write_text(text)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(moved)}
        return run(needed("pkg-config"), *asked, self.name, env=environment).split()


def needs_libraries(program):
    """The names of the shared libraries that a program asks for."""
    told = run(needed("readelf"), "-d", program)
    return [line.split("[")[1].split("]")[0] for line in told.splitlines() if "(NEEDED)" in line]


def try_cases(cases, **subject):
    """Calls every function of `cases` whose only parameter is `subject`, one name and value; the status to exit with."""
    passed, failed, skipped = 0, 0, 0
    for case in cases.values():
        if not isinstance(case, FunctionType) or list(signature(case).parameters) != list(subject):
            continue
        try:
            case(**subject)
            passed += 1
        except Skipped as e:
            skipped += 1
            print(f"Test case {case.__name__} is skipped because {e}", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAILED: {case.__name__}: {type(e).__name__}: {e}", flush=True)
    failed += passed + failed + skipped == 0
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit("This is a part of installed.py")
