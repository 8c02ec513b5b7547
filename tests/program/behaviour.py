"""What a transcript cannot show: signals, terminals, several at once. Usage: behaviour.py PROGRAM SYSTEM"""

import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tested import Place, patience, run_cases

source = Path(__file__).resolve().parents[2]

# Says `ready`, then which signal came, and exits with 7.
tells_signals = (
    "import signal, sys\n"
    "def heard(n, _):\n"
    "    print(signal.Signals(n).name, flush=True)\n"
    "    sys.exit(7)\n"
    "for n in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):\n"
    "    if signal.getsignal(n) != signal.SIG_IGN:\n"
    "        signal.signal(n, heard)\n"
    "print('ready', flush=True)\n"
    "while True:\n"
    "    signal.pause()\n"
)


def eventually(condition):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie whose parent is not us is as good as gone.
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def ended(process):
    out, err = process.communicate(timeout=patience)
    return process.returncode, out, err


def signals_reach_the_command(place):
    for n in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        p = place.begin("run", "x", "--", sys.executable, "-c", tells_signals, start_new_session=True)
        assert p.stdout.readline() == "ready\n"
        p.send_signal(n)
        assert ended(p) == (7, signal.Signals(n).name + "\n", ""), n
        assert place.names() == []


def a_command_that_dies_of_a_signal_is_128_and_that(place):
    p = place.hold("x", script="echo ready; exec sleep 1000")
    p.send_signal(signal.SIGTERM)
    assert ended(p) == (128 + signal.SIGTERM, "", "")
    assert place.names() == []


def signals_that_are_ignored_stay_ignored(place):
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    p = place.begin("run", "x", "--", sys.executable, "-c", tells_signals, preexec_fn=ignore, start_new_session=True)
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGHUP)
    p.send_signal(signal.SIGUSR1)
    assert ended(p) == (7, "SIGUSR1\n", "")


def a_signal_ends_a_wait_and_leaves_nothing(place):
    holder = place.hold("x")
    for n in (signal.SIGINT, signal.SIGTERM):
        waiter = place.begin("run", "x", "--", "echo", "never")
        assert "waiting for pid" in waiter.stderr.readline()
        waiter.send_signal(n)
        assert ended(waiter) == (128 + n, "", "")
    assert place.names() == ["x"]
    assert ended(holder)[0] == 0


def who_waits_says_for_whom_once(place):
    holder = place.hold("x", "--label", "a long task")
    waiter = place.begin("run", "x", "--", "echo", "mine")
    watcher = place.begin("wait", "x")
    for p in (waiter, watcher):
        assert re.search(r'x: waiting for pid \d+ on \S+, "a long task" \(its kernel lock is held\)', p.stderr.readline())
    assert ended(holder)[0] == 0
    assert ended(waiter) == (0, "mine\n", "")
    assert ended(watcher) == (0, "", "")


def a_quiet_one_says_nothing(place):
    holder = place.hold("x")
    waiter = place.begin("run", "--quiet", "--timeout", "1.2", "x", "--", "true")
    assert ended(waiter) == (1, "", "")
    assert ended(holder)[0] == 0


def two_never_run_at_once(place):
    script = "mkdir inside && n=$(cat count 2>/dev/null || echo 0) && echo $((n + 1)) >count && rmdir inside"
    loop = f'for i in $(seq 25); do "{place.program}" run x -- sh -c "$1" || exit 1; done'
    loops = [subprocess.Popen(["sh", "-c", loop, "loop", script], cwd=place.path, env=place.environment,
                              stdin=subprocess.DEVNULL) for _ in range(4)]
    assert [p.wait(2 * patience) for p in loops] == [0] * 4
    assert (place.path / "count").read_text() == "100\n"
    assert place.names() == ["count"]


def the_lock_of_a_killed_one_is_taken_over(place):
    p = place.hold("x", script="echo ready; echo $$ >pid; exec sleep 1000")
    eventually(lambda: (place.path / "pid").exists() and (place.path / "pid").read_text() != "")
    command = int((place.path / "pid").read_text())
    p.kill()
    p.wait()
    try:
        assert place.run("run", "--timeout", str(patience), "x", "--", "echo", "mine") == (0, "mine\n", "")
        if sys.platform == "linux":
            eventually(lambda: is_gone(command))
    finally:
        if not is_gone(command):
            os.kill(command, signal.SIGKILL)


def the_command_inherits_no_descriptor(place):
    script = "import os; print(sorted(os.listdir('/dev/fd')))"
    usual = subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert usual.stdout.count("'") >= 6, usual
    assert place.run("run", "x", "--", sys.executable, "-c", script) == (0, usual.stdout, "")


def what_the_command_leaves_running_keeps_no_lock(place):
    script = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!"
    status, out, _ = place.run("run", "--on-lost", "warn", "x", "--", "sh", "-c", script)
    try:
        assert status == 0
        assert place.run("run", "--no-wait", "x", "--", "echo", "mine") == (0, "mine\n", "")
    finally:
        os.kill(int(out), signal.SIGKILL)


def a_loss_ends_the_command(place):
    p = place.hold("x", script="echo ready; exec sleep 1000")
    (place.path / "x").unlink()
    status, _, err = ended(p)
    assert status == 128 + signal.SIGTERM
    assert "the lock was lost" in err and "ending the command" in err, err


def a_command_that_does_not_end_is_killed(place):
    p = place.hold("x", "--kill-after", "0.1", script="trap '' TERM; echo ready; while :; do sleep 0.1; done")
    (place.path / "x").unlink()
    assert ended(p)[0] == 128 + signal.SIGKILL


def a_command_that_was_told_to_end_did_not_succeed(place):
    p = place.hold("x", script="trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    (place.path / "x").unlink()
    assert ended(p)[0] == 69


def the_record_is_for_whom_and_as_fresh_as_was_asked(place):
    look = 'stat -c %a "$FSLOCK_PATH"; cat "$FSLOCK_PATH"'
    status, said, _ = place.run("run", "--mode", "0664", "--heartbeat", "2.5", "--foreign-stale-after", "30", "x", "--",
                                "sh", "-c", "umask 077; " + look)
    mode, record = said.splitlines()
    assert (status, mode) == (0, "664"), said
    assert '"heartbeat_ms":2500' in record, record


def what_is_no_mode_or_pace_is_said(place):
    for words in (["--mode", "rw"], ["--mode", "99"], ["--mode", "888"], ["--heartbeat", "0"], ["--heartbeat", "7200"],
                  ["--foreign-stale-after", "-1"], ["--mode", "7777"]):
        status, out, err = place.run("run", *words, "x", "--", "echo", "ran")
        assert status == 64 and not out and words[0] in err, (words, status, out, err)
    assert not (place.path / "x").exists()


def a_loss_is_a_warning_when_that_is_asked_for(place):
    p = place.hold("x", "--on-lost", "warn")
    (place.path / "x").unlink()
    assert "goes on without it" in p.stderr.readline()
    assert place.run("run", "--no-wait", "x", "--", "true")[0] == 0
    assert ended(p) == (0, "", "")


def who_is_at_risk_hears_when_it_is_over(place):
    if not hasattr(resource, "prlimit"):
        return

    def ignore():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    script = "echo ready; read line; true"
    p = place.begin("run", "x", "--", "sh", "-c", script, stdin=subprocess.PIPE, preexec_fn=ignore)
    assert p.stdout.readline() == "ready\n"
    _, hard = resource.prlimit(p.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (0, hard))
    assert "x: at risk" in p.stderr.readline()
    before = (place.path / "x").read_text()
    resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (hard, hard))
    eventually(lambda: (place.path / "x").read_text() != before)
    status, _, err = ended(p)
    assert status == 0 and "x: heartbeat recovered" in err, err


def a_sweep_stays_out_of_other_filesystems_and_says_so_when_asked(place):
    mounts = ["unshare", "-Urm", "sh", "-ec", 'mount -t tmpfs none mount; mkdir mount/below; exec "$@"', "sh"]
    (place.path / "mount").mkdir()

    def swept(*words):
        ran = subprocess.run([*mounts, place.program, "sweep", *words, "."], cwd=place.path, env=place.environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience)
        return ran.returncode, ran.stdout, ran.stderr

    if not shutil.which("unshare") or subprocess.run([*mounts, "true"], cwd=place.path, capture_output=True).returncode:
        return
    said = f"fslock: {place.path}/mount: skipped: on another filesystem; --other-filesystems goes on there\n"
    assert swept() == (0, "removed 0 files\n", "")
    assert swept("-v") == (0, "removed 0 files\n", said)
    assert swept("-v", "--other-filesystems") == (0, "removed 0 files\n", "")


def on_a_terminal(place, words):
    """What the program writes to a terminal."""
    ours, its = pty.openpty()
    p = place.begin(*words, stdout=its, stderr=its, stdin=its, text=False)
    os.close(its)
    text = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(ours)
    p.wait(patience)
    return text.decode()


def colours_are_for_terminals_and_for_who_wants_them(place):
    place.environment["TERM"] = "xterm"
    assert "\033[" in on_a_terminal(place, ["status", "x"])
    assert "\033" not in place.run("status", "x")[1]
    place.environment["NO_COLOR"] = "1"
    assert "\033" not in on_a_terminal(place, ["status", "x"])
    place.environment["NO_COLOR"] = ""
    assert "\033[" in on_a_terminal(place, ["status", "x"])
    del place.environment["NO_COLOR"]
    place.environment["TERM"] = "dumb"
    assert "\033" not in on_a_terminal(place, ["status", "x"])


def a_spinner_is_for_terminals(place):
    holder = place.hold("x")
    text = on_a_terminal(place, ["run", "--timeout", "1.5", "x", "--", "true"])
    assert "waiting for" in text and "\r" in text.replace("\r\n", ""), text
    assert ended(holder)[0] == 0


def control_characters_reach_no_terminal(place):
    name = "x\033[31m"
    out = place.run("status", name)[1]
    assert out == "x?[31m: free\n", out


def completion_files_and_manual_know_every_option(place):
    texts = [source / "docs/fslock.1"] + [source / "src/cli/completions" / n for n in ("fslock.bash", "_fslock", "fslock.fish")]
    for command in ("run", "wait", "status", "break", "sweep", "doctor"):
        said = place.run(command, "--help")[1].split("Options:")[1].split("\n\n")[0]
        options = re.findall(r"--([a-z-]+)", said)
        assert "help" in options
        for text in texts:
            content = text.read_text()
            assert command in content, (text, command)
            for o in options:
                known = f"-l {o}" if text.suffix == ".fish" else f"-{o}" if text.suffix == ".1" else f"--{o}"
                assert known in content or o == "help", (text.name, command, o)


def shells_can_read_the_completions(place):
    files = {"bash": "fslock.bash", "zsh": "_fslock", "fish": "fslock.fish"}
    for shell, name in files.items():
        if shutil.which(shell):
            subprocess.run([shell, "-n", source / "src/cli/completions" / name], check=True, stdin=subprocess.DEVNULL)
    if not shutil.which("bash"):
        return
    script = ('. "$1"; COMP_WORDS=(fslock "${@:2}"); COMP_CWORD=$(($# - 1)); _fslock; echo "${COMPREPLY[*]}"')
    for words, expected in ((["st"], "status"), (["sweep", "--d"], "--dry-run --depth --domain"),
                            (["run", "--on-lost", "k"], "kill")):
        ran = subprocess.run(["bash", "-c", script, "bash", source / "src/cli/completions/fslock.bash", *words],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, env=place.environment)
        assert ran.stdout == expected + "\n", (words, ran)


def main():
    program, _ = sys.argv[1:]
    return run_cases(globals(), lambda: Place(program))


if __name__ == "__main__":
    sys.exit(main())
