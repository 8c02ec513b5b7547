"""What is installed can be used, and is whole. Usage: installed.py MESON BUILD NAME INTERFACE-VERSION SOURCE"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from installing import Installed, Skipped, needed, needs_libraries, run, try_cases, units

meson, build, name, interface_version, source = sys.argv[1:]
soname = f"lib{name}.so.{interface_version}"

cmake_project = f"""
cmake_minimum_required(VERSION 3.16)
project(consumer CXX)
find_package({name} {interface_version} REQUIRED)
add_executable(consumer {' '.join(str(u) for u in units)})
target_link_libraries(consumer fslock::{name})
"""


def compiled(installed):
    """The two units as objects, by the flags of pkg-config; only once."""
    place = installed.place("pkg-config")
    objects = [place / f"{u.stem}.o" for u in units]
    if not objects[-1].exists():
        flags = installed.pkg_config("--cflags")
        for unit, made in zip(units, objects):
            run(*installed.compiler, "-std=c++20", *flags, "-c", unit, "-o", made)
    return objects


def a_consumer_by_pkg_config(installed):
    """With the shared library, if there is one."""
    program = installed.place("pkg-config") / "consumer"
    run(*installed.compiler, *compiled(installed), *installed.pkg_config("--libs"), f"-Wl,-rpath,{installed.lib}", "-o", program)
    assert "1 passed" in run(program)
    assert (soname in needs_libraries(program)) == ("shared" in installed.kinds()), needs_libraries(program)


def a_static_consumer_by_pkg_config(installed):
    installed.of_kind("static")
    place = installed.place("static")
    shutil.copy(installed.lib / f"lib{name}.a", place)  # alone: a linker takes a shared one that is beside it
    program = place / "consumer"
    run(*installed.compiler, *compiled(installed), f"-L{place}", *installed.pkg_config("--static", "--libs"), "-o", program)
    assert "1 passed" in run(program)
    assert soname not in needs_libraries(program)


def a_program_of_the_other_flavour_does_not_link(installed):
    """What every file that includes the headers refers to is defined by the library of its flavour only."""
    mark = "fslock::detail::this_needs_the_library_fslock"
    wanted = run(needed("nm"), "-uC", compiled(installed)[0]).splitlines()
    assert [line.split()[-1] for line in wanted if mark in line] == [mark + name.removeprefix("fslock")], wanted
    for library in installed.lib.glob(f"lib{name}.[as]*"):
        told = run("nm", "-C", "--defined-only", *(["-D"] if ".so" in library.name else []), library).splitlines()
        marks = {re.sub("@.*", "", line.split()[-1]) for line in told if mark in line}
        assert marks == {mark + name.removeprefix("fslock")}, (library, marks)


def by_cmake(installed, kind):
    installed.of_kind(kind)
    place = installed.place(f"cmake-{kind}")
    (place / "CMakeLists.txt").write_text(cmake_project)
    run(needed("cmake"), "-S", place, "-B", place / "b", f"-DCMAKE_PREFIX_PATH={installed.root}",
        f"-D{name}_USE_STATIC_LIBS={'ON' if kind == 'static' else 'OFF'}", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_CXX_COMPILER={shutil.which(installed.compiler[0])}", "-DCMAKE_CXX_FLAGS=-g0")
    run("cmake", "--build", place / "b")
    program = place / "b" / "consumer"
    assert "1 passed" in run(program)
    assert (soname in needs_libraries(program)) == (kind == "shared"), needs_libraries(program)


def a_consumer_by_cmake(installed):
    by_cmake(installed, "shared")


def a_static_consumer_by_cmake(installed):
    by_cmake(installed, "static")


def cmake_refuses_another_version(installed):
    place = installed.place("cmake-version")
    (place / "CMakeLists.txt").write_text(cmake_project.replace(f"{name} {interface_version}", f"{name} 99.0"))
    ran = subprocess.run([needed("cmake"), "-S", place, "-B", place / "b", f"-DCMAKE_PREFIX_PATH={installed.root}"],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode != 0 and "compatible with requested version" in " ".join(ran.stderr.split()), ran


def the_shared_library_has_a_versioned_name(installed):
    installed.of_kind("shared")
    told = run(needed("readelf"), "-d", installed.lib / f"lib{name}.so")
    assert f"[{soname}]" in told, told
    assert (installed.lib / soname).exists()


def the_shared_library_shows_its_interface_only(installed):
    installed.of_kind("shared")
    shown = run(needed("nm"), "-DC", "--defined-only", installed.lib / soname).splitlines()
    assert any(" T fslock::acquire(" in line for line in shown)
    inner = [line for line in shown if re.search(r"^\S+ \w (fslock::(core|engine|os)|simdjson)::", line)]
    assert not inner, inner[:5]


def the_program_runs_where_it_was_put(installed):
    program = installed.root / installed.options["bindir"] / "fslock"
    if not program.exists():
        raise Skipped("this build has no program: no CLI11")
    assert run(program, "--version").strip()
    for page in (installed.root / installed.options["mandir"] / "man1" / "fslock.1",
                 installed.data / "bash-completion/completions/fslock", installed.data / "zsh/site-functions/_fslock",
                 installed.data / "fish/vendor_completions.d/fslock.fish"):
        assert page.exists(), f"{page} is missing"


def headers_include_only_what_is_installed(installed):
    headers = sorted((installed.include / "fslock").rglob("*.hpp"))
    ours = sorted(p.relative_to(Path(source, "include")) for p in Path(source, "include").rglob("*.hpp"))
    assert [p.relative_to(installed.include) for p in headers] == ours, headers
    for header in headers:
        for opened, included in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)', header.read_text(), re.MULTILINE):
            if opened == '"':
                assert (header.parent / included).is_file(), f"{header}: {included}"
            else:
                assert re.match(r"asio/|boost/(asio|system)/|[a-z_]+$", included), f"{header}: {included}"


def nothing_else_is_installed(installed):
    o = installed.options
    known = (rf"{o['includedir']}/fslock/.*\.hpp|{o['libdir']}/(lib{name}\.(a|so[.0-9]*)|pkgconfig/{name}\.pc|"
             rf"cmake/{name}/{name}-config(-version)?\.cmake)|{o['bindir']}/fslock|{o['mandir']}/man1/fslock\.1|"
             rf"{o['datadir']}/((bash-completion|zsh|fish)/.*|doc/fslock/LICENSE)")
    files = [str(p.relative_to(installed.root)) for p in installed.files() if "consumers" not in p.parts]
    assert len(files) > 10
    unknown = [f for f in files if not re.fullmatch(known, f)]
    assert not unknown, unknown
    assert (installed.data / "doc/fslock/LICENSE").is_file()


def no_file_names_the_build(installed):
    if shutil.which("strip"):  # archives are not stripped when they are installed
        for archive in installed.lib.glob("*.a"):
            run("strip", "--strip-debug", archive)
    for file in installed.files():
        if "consumers" not in file.parts and file.exists():
            # What Boost's headers say of themselves, where ./dev has unpacked them there, is none of ours.
            content = file.read_bytes().replace(f"{build}/boost/".encode(), b"")
            for place in (build, source):
                assert place.encode() not in content, f"{file} names {place}"


def main():
    with Installed(meson, build, name) as installed:
        return try_cases(globals(), installed=installed)


if __name__ == "__main__":
    sys.exit(main())
