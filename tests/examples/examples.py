"""Runs the examples and looks at what they are for. Usage: examples.py DIRECTORY-OF-PROGRAMS"""

import os
import re
import signal
import socket
import subprocess
import sys

from scene import Lines, Scene
from tested import patience, run_cases

long = "100000"  # seconds that no test lives to see


def ask(port, connection=None):
    """Who the leader says it is: pid and epoch. None: nobody listens, or it does not serve any more."""
    try:
        connection = connection or socket.create_connection(("127.0.0.1", port), timeout=patience)
        connection.sendall(b"who\n")
        answer = connection.recv(4096).decode().split()
        return (int(answer[0]), answer[1]) if answer else None
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        return None


class Party:
    """Processes that want to lead, and what all of them say, in its order."""

    leads = r"^(\d+) leads on port (\d+), epoch (\S+)$"

    def __init__(self, place, many):
        read_end, self.write_end = os.pipe()
        self.news = Lines(os.fdopen(read_end, "rb", buffering=0))
        members = [place.start("leader_service", "leader.lock", "0", out=self.write_end) for _ in range(many)]
        self.members = {p.pid: p for p in members}

    def next_leader(self):
        pid, port, epoch = self.news.wait_for(self.leads).groups()
        return int(pid), int(port), epoch

    def said(self, pattern):
        return [found for line in self.news.all if (found := re.search(pattern, line))]

    def kill(self, pid):
        """What is said before this line was said while that one lived."""
        os.write(self.write_end, f"{pid} is killed\n".encode())
        self.members[pid].kill()

    def end(self, pid):
        os.close(self.write_end)
        self.members[pid].signal(signal.SIGTERM)
        assert self.members[pid].status() == 0
        self.news.rest()


def a_leader_that_is_killed_has_one_successor(place):
    party = Party(place, 3)
    leaders = []
    for round in range(3):
        pid, port, epoch = party.next_leader()
        assert pid in party.members and pid not in leaders
        leaders.append(pid)
        assert ask(port) == (pid, epoch)
        assert f'"writer_epoch":"{epoch}"' in (place.path / "leader.lock").read_text()
        while round == 0 and len(party.said("waiting for pid")) < 2:
            assert party.news.next() is not None
        if round < 2:
            party.kill(pid)
    party.end(leaders[2])
    first, second, third = leaders
    order = [f"{m[1]} {m[2]}" for m in party.said(r"^(\d+) (leads|is killed|ends)")]
    assert order == [f"{first} leads", f"{first} is killed", f"{second} leads", f"{second} is killed",
                     f"{third} leads", f"{third} ends"], "two led at once"
    assert place.names() == []


def who_loses_the_lead_stops_to_serve(place):
    party = Party(place, 2)
    pid, port, epoch = party.next_leader()
    client = socket.create_connection(("127.0.0.1", port), timeout=patience)
    assert ask(port, client) == (pid, epoch)
    (place.path / "leader.lock").unlink()
    party.news.wait_for(f"^{pid} leads no more: the lock was lost")
    assert ask(port, client) is None
    assert ask(port) is None
    while len(party.said(Party.leads)) < 2:
        assert party.news.next() is not None
    new_pid, new_port, new_epoch = party.said(Party.leads)[1].groups()
    assert new_epoch != epoch and ask(int(new_port)) == (int(new_pid), new_epoch)


def a_candidate_can_be_ended(place):
    party = Party(place, 1)
    pid, _, _ = party.next_leader()
    second = place.start("leader_service", "leader.lock", "0")
    second.hears("waiting for pid")
    second.signal(signal.SIGINT)
    assert second.status() == 0
    assert second.all_it_says()[-1].endswith(" ends")
    assert place.names() == ["leader.lock"]
    party.members[pid].signal(signal.SIGINT)
    assert party.members[pid].status() == 0
    assert place.names() == []


def a_leader_that_cannot_serve_lets_another_lead(place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        p = place.start("leader_service", "leader.lock", str(taken.getsockname()[1]))
        assert p.status() == 1
        assert "fails: " in p.all_it_says()[-1]
        assert place.names() == []


def jobs_are_done_once(place):
    for expected in (["a: begins", "a: done", "b: begins", "b: done"], ["a: done before", "b: done before"]):
        p = place.start("job_runner", "x", ".", "0", "a", "b")
        assert p.status() == 0
        assert p.all_it_says() == expected
        assert place.names() == ["a", "b"]


def a_loss_cancels_the_job(place):
    p = place.start("job_runner", "x", ".", long, "a", "b")
    for _ in range(2):
        p.hears("^a: begins$")
        (place.path / "x").unlink()
        p.hears("^a: cancelled$")
        p.hears("^the lock was lost: its record was removed or replaced")
    assert p.status() == 75
    assert place.names() == []


def jobs_wait_for_their_turn(place):
    holder = place.hold("x")
    p = place.start("job_runner", "x", ".", "0", "a")
    p.hears(r'x: waiting for pid \d+ on \S+, "an example with callbacks"')
    assert not (place.path / "a").exists()
    holder.end_of_input()
    assert (holder.status(), p.status()) == (0, 0)
    assert place.names() == ["a"]


def callbacks_acquire_and_give_back(place):
    p = place.hold("x")
    assert place.names() == ["x"]
    p.end_of_input()
    assert p.status() == 0
    assert p.all_it_says() == [f"acquired {place.path.resolve()}/x", "given back"]
    assert place.names() == []


def callbacks_are_told_of_a_loss(place):
    p = place.hold("x")
    (place.path / "x").unlink()
    p.hears("^lost: the lock was lost")
    assert p.status() == 1


def callbacks_get_errors(place):
    p = place.start("callbacks", "missing/x")
    assert p.status() == 1
    assert p.all_it_says() == ["not acquired: No such file or directory"]


def callbacks_can_stop_to_wait(place):
    holder = place.hold("x")
    for n in (signal.SIGINT, signal.SIGTERM):
        p = place.start("callbacks", "x")
        p.hears("waiting for pid")
        p.signal(n)
        assert p.status() == 1
        assert re.search("^not acquired: Operation (aborted|canceled)", p.all_it_says()[-1])
    assert place.names() == ["x"]
    holder.signal(signal.SIGTERM)
    assert holder.status() == 0
    assert place.names() == []


def scripts_count_one_after_the_other(place):
    many, each = 4, 10
    loop = f'for i in $(seq {each}); do "$0" x {long} count || exit 1; done'
    loops = [subprocess.Popen(["sh", "-c", loop, place.programs / "script"], cwd=place.path, env=place.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
             for _ in range(many)]
    numbers = [int(n) for p in loops for n in p.communicate(timeout=2 * patience)[0].split()]
    assert [p.returncode for p in loops] == [0] * many
    assert sorted(numbers) == list(range(1, many * each + 1))
    assert place.names() == ["count"]


def a_script_says_who_has_the_lock(place):
    holder = place.hold("x")
    p = place.start("script", "x", "0.1", "count")
    assert p.status() == 75
    waiting, *_, held = p.all_it_says()
    who = rf'pid {holder.pid} on \S+, "an example with callbacks" \(its kernel lock is held\)'
    assert re.search("x: waiting for " + who + "$", waiting), waiting
    assert re.search("^x: not in time; held by " + who + r", epoch \d+-\d+$", held), held
    assert place.names() == ["x"]


def a_script_tells_errors_from_locks(place):
    p = place.start("script", "missing/x", "0", "count")
    assert p.status() == 1
    assert p.all_it_says() == ["missing/x: No such file or directory"]
    (place.path / "notes").write_text("of somebody")
    p = place.start("script", "notes", "0", "count")
    assert p.status() == 1
    assert "something that is not a lock file is at the path" in p.all_it_says()[-1]
    assert (place.path / "notes").read_text() == "of somebody"


def an_embedded_wait_leaves_the_loop_alone(place):
    holder = place.hold("x")
    p = place.start("embedding", "x", long)
    p.tell("lock")
    p.hears("waiting for pid")
    p.tell("hello")
    p.hears("^you said hello$")
    holder.end_of_input()
    p.hears(r"^acquired, epoch \d+-\d+$")
    p.end_of_input()
    assert p.status() == 0
    assert place.names() == []


def an_embedded_wait_that_loses_leaves_nothing(place):
    holder = place.hold("x")
    p = place.start("embedding", "x", "0.1")
    p.tell("lock")
    p.hears("^not in time$")
    assert place.names() == ["x"]
    p.end_of_input()
    assert p.status() == 0
    p = place.start("embedding", "x", long)
    p.tell("lock")
    p.hears("waiting for pid")
    p.signal(signal.SIGINT)
    p.hears("^interrupted$")
    assert place.names() == ["x"]
    p.tell("hello")
    p.hears("^you said hello$")
    holder.end_of_input()
    assert holder.status() == 0
    assert place.names() == []
    # What lost is no contender any more: the same program gets the free lock by asking anew.
    p.tell("lock")
    p.hears("^acquired, ")


def an_embedded_wait_ends_with_an_error_at_once(place):
    p = place.start("embedding", "missing/x", long)
    p.tell("lock")
    p.hears("^not acquired: No such file or directory$")


def main():
    return run_cases(globals(), lambda: Scene(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
