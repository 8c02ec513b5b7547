# What transcripts can use, besides the program.

# hold LOCK: somebody takes it, and keeps it until let_go.
hold() {
    mkfifo "$T/ready" "$T/go"
    fslock run --label 'a long task' "$1" -- sh -c 'echo >"$T/ready"; read line <"$T/go"' 2>"$T/complaints" &
    read -r line <"$T/ready"
}
let_go() {
    echo >"$T/go"
    wait
    cat "$T/complaints"
    rm -f "$T/ready" "$T/go"
}
# record FILE: that of an owner of this machine who is dead for long.
record() {
    printf '{"pid":999999999,"hostname":"%s","created_at_ms":1600000000000,"heartbeat_at_ms":1600000000000,%s}\n' \
        "$(uname -n)" '"writer_epoch":"999999999-1600000000000000000","label":"a dead task"' >"$1"
    touch -d '2020-01-01' "$1"
}
# epoch_of LOCK
epoch_of() { fslock status "$1" | sed -n 's/^  epoch *//p'; }
