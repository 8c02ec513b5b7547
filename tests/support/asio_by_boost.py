"""Writes a header <asio/...> that is <boost/asio/...> for each one that our own programs and tests include.
Usage: asio_by_boost.py SOURCE DIRECTORY"""

import re
import sys
from pathlib import Path

source, directory = (Path(a) for a in sys.argv[1:])
names = set()
for room in ("src", "tests", "examples", "benchmarks"):
    for file in (source / room).rglob("*.?pp"):
        names.update(re.findall(r"^#include <asio/([^>]+)>", file.read_text(), re.MULTILINE))
for name in names:
    header = directory / "asio" / name
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(f"#pragma once\n#include <boost/asio/{name}>\nnamespace asio = boost::asio;\n")
