"""A project that has this tree as its subproject, as README.md says, with the overlays of subprojects/packagefiles over
the headers of the system. Compiles the library once more. Usage: subproject.py MESON SOURCE"""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from installing import Skipped, needed, run, try_cases, units


class Consumer:
    """The project, in a directory that is removed in the end."""

    def __init__(self, meson, source):
        self.meson, self.source = meson, Path(source)
        self.root = Path(tempfile.mkdtemp(prefix="fslock-subproject-", dir=os.environ.get("FSLOCK_TEST_DIR")))
        block = re.search(r"```meson\n(.*?)```", (self.source / "README.md").read_text(), re.DOTALL).group(1)
        (self.root / "meson.build").write_text(block.replace("'main.cpp'", ", ".join(f"'{u}'" for u in units)))
        (self.root / "subprojects").mkdir()
        (self.root / "subprojects" / "fslock").symlink_to(self.source)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def lay(self, wrap, *headers):
        """Puts a source tree where the wrap would unpack its archive: the overlay, and headers of the system."""
        found = [Path("/usr/include", h) for h in headers]
        if not all(f.exists() for f in found):
            raise Skipped(f"there is no /usr/include/{headers[0]}")
        written = configparser.ConfigParser(interpolation=None)
        written.read(self.source / "subprojects" / f"{wrap}.wrap")
        tree = self.root / "subprojects" / written["wrap-file"]["directory"]
        shutil.copytree(self.source / "subprojects" / "packagefiles" / written["wrap-file"]["patch_directory"], tree)
        (tree / "include").mkdir()
        for f in found:
            (tree / "include" / f.name).symlink_to(f)

    def set_up(self, build, *options):
        """Sets up a directory of a build; what Meson said. Nothing can be downloaded."""
        return run(self.meson, "setup", self.root / build, self.root, "--wrap-mode=nodownload", *options)


def it_is_built_as_a_subproject(consumer):
    consumer.lay("asio", "asio.hpp", "asio")
    told = consumer.set_up("b", "-Dbuildtype=plain", "-Ddefault_library=static", "--force-fallback-for=asio")
    assert re.search(r"Subproject asio finished", told), told
    run(needed("ninja"), "-j2", "-C", consumer.root / "b", "yours")
    assert "1 passed" in run(consumer.root / "b" / "yours")


def its_programs_stay_out_of_others(consumer):
    """Neither tests, nor benchmarks, examples or the program: what is linked is the library."""
    targets = run("ninja", "-C", consumer.root / "b", "-t", "targets", "all")
    linked = {Path(t).name for t in re.findall(r"^(.*): \w+_LINKER$", targets, re.MULTILINE)}
    assert linked == {"libfslock_core.a", "libfslock_inside.a", "libfslock.a", "yours"}, linked


def the_program_takes_cli11_from_the_overlay(consumer):
    consumer.lay("CLI11", "CLI")
    told = consumer.set_up("c", "--force-fallback-for=CLI11", "-Dfslock:program=enabled")
    assert re.search(r"Dependency CLI11 found: YES \S+ \(overridden\)", told), told
    targets = run("ninja", "-C", consumer.root / "c", "-t", "targets", "all")
    assert "subprojects/fslock/src/cli/fslock:" in targets


def nothing_is_downloaded_unless_it_is_asked_for(consumer):
    """Without CLI11 and Google Benchmark there is no program and no micro-benchmark, and no attempt to get them."""
    known = subprocess.run([needed("pkg-config"), "--variable=pcfiledir", "simdjson"], capture_output=True, text=True)
    if known.returncode != 0:
        raise Skipped("simdjson has no pkg-config file")
    poor = consumer.root / "poor"  # simdjson is all that pkg-config finds, and CMake finds nothing
    poor.mkdir()
    shutil.copy(Path(known.stdout.strip(), "simdjson.pc"), poor)
    (poor / "native.ini").write_text("[binaries]\ncmake = 'false'\n")
    told = run(consumer.meson, "setup", poor / "b", consumer.source, "-Dtests=disabled", "--native-file", poor / "native.ini",
               env={**os.environ, "PKG_CONFIG_LIBDIR": str(poor), "PKG_CONFIG_PATH": ""})
    for name in ("CLI11", "benchmark"):
        assert re.search(rf"(?i)dependency {name} found: NO", told), told
    assert "Downloading" not in told, told


def main():
    with Consumer(*sys.argv[1:]) as consumer:
        return try_cases(globals(), consumer=consumer)


if __name__ == "__main__":
    sys.exit(main())
