"""Every installed header compiles on its own. Usage: headers.py BUILD LIKE INCLUDE-DIRECTORY"""

import sys
from pathlib import Path

from compiling import Compiler, count

build, like, include = sys.argv[1:]
names = sorted(str(p.relative_to(include)) for p in Path(include).rglob("*.hpp"))
# Twice: a header without a guard fails.
sys.exit(count(Compiler(build, like), [(n, f"#include <{n}>\n#include <{n}>\n") for n in names]))
