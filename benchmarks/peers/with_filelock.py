# Locks with Python's filelock for a process of the benchmark: `+PATH` takes, `-PATH` gives back, each line is answered.
import sys

from filelock import FileLock

locks = {}
for line in sys.stdin:
    what, path = line[0], line[1:].rstrip("\n")
    lock = locks.setdefault(path, FileLock(path))
    if what == "+":
        lock.acquire()
    else:
        lock.release()
    print("ok", flush=True)
