"""Every block of C++ in a document compiles. Usage: readme_snippets.py BUILD LIKE DOCUMENT...

A block with an #include is a whole file. Any other is the inside of a function that has `io`, an io_context, `path`,
`seconds`, and `rebuild`: with an argument a coroutine that counts, without one a function. It is a coroutine if `co_await`
or `co_return` is in it, else plain.
"""

import re
import sys
from pathlib import Path

from compiling import Compiler, count

before = """
#include <fslock/fslock.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <iostream>
#include <unistd.h>
namespace asio = fslock::asio;
using std::chrono::seconds;
asio::awaitable<int> rebuild(std::filesystem::path);
void rebuild();
{result} snippet([[maybe_unused]] asio::io_context& io, [[maybe_unused]] std::filesystem::path path) {
#line {line} "{name}"
"""
after_plain = "\n}\n"
after_coroutine = "\n    co_return;\n}\n"


def blocks(document):
    """Pairs of the line where a block of C++ begins, and its text."""
    begin, lines = None, []
    for number, line in enumerate(Path(document).read_text().splitlines(), start=1):
        if begin is None and line.strip() == "```cpp":
            begin, lines = number + 1, []
        elif begin is not None and line.strip() == "```":
            yield begin, "\n".join(lines) + "\n"
            begin = None
        elif begin is not None:
            lines.append(line)
    if begin is not None:
        sys.exit(f"{document}:{begin}: this block does not end\n0 passed, 1 failed")


def whole(name, line, text):
    if "#include" in text:
        return f'#line {line} "{name}"\n{text}'
    waits = re.search(r"\bco_(await|return)\b", text)
    begin = before.replace("{result}", "asio::awaitable<void>" if waits else "void")
    return begin.replace("{line}", str(line)).replace("{name}", name) + text + (after_coroutine if waits else after_plain)


build, like, *documents = sys.argv[1:]
readme = [b for b in blocks(documents[0])]
if not readme:
    sys.exit(f"{documents[0]}: no C++ in it\n0 passed, 1 failed")
texts = []
for document in documents:
    name = Path(document).name
    texts += [(f"{name}:{line}", whole(name, line, text)) for line, text in blocks(document)]
sys.exit(count(Compiler(build, like), texts))
