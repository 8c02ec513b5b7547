#!/usr/bin/env bash
# Runs the tests of processes in directories of other filesystems, each mounted for that and unmounted afterwards.
# Needs root. What cannot be had here is skipped with its reason. The last line adds up.
#
#   on_filesystems.sh BUILD_DIRECTORY [FILESYSTEM...]
set -uo pipefail

all='tmpfs ext4 casefold xfs btrfs overlay bindfs exfat sshfs'
build=$(cd "${1:?the build directory}" && pwd) || exit 2
shift
[ $# -gt 0 ] || read -ra names <<<"$all"
[ $# -eq 0 ] || names=("$@")

# No program of the tests takes longer than this besides its storms.
limit=$((600 + ${FSLOCK_STORM_SECONDS:-30}))
work='' mounts=() loops=() passed=0 failed=0 skipped=0

say() { printf '%s\n' "$*"; }

# Takes away all that was made for one filesystem, in reverse.
clean_up() {
    local i
    for ((i = ${#mounts[@]} - 1; i >= 0; --i)); do
        umount "${mounts[i]}" 2>/dev/null || umount -l "${mounts[i]}" || say "still mounted: ${mounts[i]}"
    done
    for i in "${loops[@]}"; do losetup -d "$i" 2>/dev/null; done
    mounts=() loops=()
    [ -n "$work" ] && rm -rf --one-file-system "$work"
    work=''
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# mounted COMMAND...: runs it; the last word is where it mounts.
mounted() {
    "$@" >"$work/log" 2>&1 || return 1
    mounts+=("${!#}")
    mountpoint -q "${!#}"
}

need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null && return
    command -v apt-get >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
            "$2" >/dev/null 2>&1
    command -v "$1" >/dev/null || { why="there is no $1 (package $2)"; return 1; }
}

# on_image SIZE MKFS...: a loop device with a new filesystem; its name is in $device.
on_image() {
    truncate -s "$1" "$work/image"
    shift
    "$@" "$work/image" >"$work/log" 2>&1 || { why="$1: $(tail -1 "$work/log")"; return 1; }
    device=$(losetup --show -f "$work/image" 2>"$work/log") || { why="losetup: $(tail -1 "$work/log")"; return 1; }
    loops+=("$device")
}

on_device() { # on_device TYPE
    mounted mount -t "$1" "$device" "$work/mount" || { why="mount -t $1: $(tail -1 "$work/log")"; return 1; }
}

bring_tmpfs() { mounted mount -t tmpfs none "$work/mount"; }
bring_ext4() { need mkfs.ext4 e2fsprogs && on_image 256M mkfs.ext4 -q && on_device ext4; }
bring_casefold() {
    need mkfs.ext4 e2fsprogs && on_image 256M mkfs.ext4 -q -O casefold && on_device ext4 &&
        mkdir "$work/mount/any" && chattr +F "$work/mount/any" && tests_in=$work/mount/any
}
bring_xfs() { need mkfs.xfs xfsprogs && on_image 400M mkfs.xfs -q && on_device xfs; }
bring_btrfs() { need mkfs.btrfs btrfs-progs && on_image 400M mkfs.btrfs -q && on_device btrfs; }
bring_overlay() {
    mounted mount -t tmpfs none "$work/below" && mkdir "$work/below"/{lower,upper,work} &&
        mounted mount -t overlay -o "lowerdir=$work/below/lower,upperdir=$work/below/upper,workdir=$work/below/work" \
            none "$work/mount"
}
bring_bindfs() { need bindfs bindfs && mounted bindfs "$work/below" "$work/mount"; }
# Stands for all that has no hard links. (fusefat loses what is written over in place: nothing can be built on that.)
bring_exfat() {
    need mkfs.exfat exfatprogs && need mount.exfat-fuse exfat-fuse && on_image 256M mkfs.exfat &&
        mounted mount.exfat-fuse "$device" "$work/mount"
}
# Two mounts of one directory, each with its own cache. The server needs no network.
bring_sshfs() {
    local server=/usr/lib/openssh/sftp-server
    need sshfs sshfs && need "$server" openssh-sftp-server || return 1
    printf '#!/bin/sh\nexec %s\n' "$server" >"$work/serve"
    chmod +x "$work/serve"
    mounted sshfs -o "ssh_command=$work/serve" "x:$work/below" "$work/mount" &&
        mounted sshfs -o "ssh_command=$work/serve" "x:$work/below" "$work/other" && two_mounts=$work/mount:$work/other
}

# run PROGRAM ARGUMENT...: counts what the test program says.
run() {
    local log=$work/run.log line status
    FSLOCK_TEST_DIR=$tests_in FSLOCK_TWO_MOUNTS=$two_mounts timeout "$limit" "$@" --log_level=message --report_level=no \
        --color_output=no </dev/null >"$log" 2>&1
    status=$?
    grep -E ': (error|fatal error)|FSLOCK_STORM_SEED|acquisitions|is skipped because|are left$' "$log" |
        sed -E 's/^.*Test case ("[^"]*") is skipped/  \1 is skipped/; s/^/  /' | sort -u
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)
    read -r p _ f _ s _ <<<"${line//,/} "
    [ "$status" -eq 0 ] || [ "${f:-0}" -gt 0 ] || f=1
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
    say "$name: ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped"
    rm -f "$log"
}

on() {
    local name=$1 why='' two_mounts='' tests_in device
    work=$(mktemp -d /tmp/fslock-on-XXXXXX)
    chmod 755 "$work"
    mkdir "$work"/{mount,other,below}
    tests_in=$work/mount
    if ! declare -F "bring_$name" >/dev/null; then
        say "there is no $name among: $all"
        failed=$((failed + 1))
    elif ! "bring_$name"; then
        say "$name is skipped because ${why:-of: $(tail -1 "$work/log" 2>/dev/null)}"
        skipped=$((skipped + 1))
    else
        say "== $name ($(stat -f -c %T "$tests_in"))"
        run "$build/tests/process/process_tests"
        [ -z "$two_mounts" ] || run "$build/tests/filesystems/two_caches_tests"
        case $name in
            casefold | exfat) run "$build/tests/engine/engine_tests" --run_test="cases/two_spellings*" ;;
        esac
    fi
    clean_up
}

if [ "$(id -u)" -ne 0 ]; then
    say "other filesystems are skipped because only root can mount them"
    skipped=1
else
    for n in "${names[@]}"; do on "$n"; done
fi
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
