#!/usr/bin/env bash
# Runs what needs a kernel with NFS and vfat in an emulated machine without any network to the outside: the tests of two
# mounts between two NFS clients, and the process suite on vfat. Needs no root, but the tools of an NFS server, a kernel
# package and qemu. The last line adds up.
#
#   run.sh BUILD_DIRECTORY        $FSLOCK_NFS_DIRECTORY keeps the kernel for the next time
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?the build directory}" && pwd)
kept=${FSLOCK_NFS_DIRECTORY:-${XDG_CACHE_HOME:-$HOME/.cache}/fslock-nfs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
packages='qemu-system-x86 nfs-kernel-server nfs-common rpcbind busybox-static kmod cpio iproute2 dosfstools'

skip() {
    printf 'NFS and vfat are skipped because %s\n0 passed, 0 failed, 1 skipped\n' "$1"
    exit 0
}

get_tools() {
    local missing=no tool
    for tool in qemu-system-x86_64 exportfs rpc.nfsd rpc.mountd rpc.statd mount.nfs rpcbind busybox modprobe cpio ip mkfs.vfat; do
        command -v "$tool" >/dev/null || missing=$tool
    done
    [ "$missing" = no ] && return
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || skip "there is no $missing"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $packages \
        >/dev/null 2>&1 || skip "these could not be installed: $packages"
}

# A kernel of Debian, unpacked and not installed.
get_kernel() {
    local name
    if ! ls "$kept"/boot/vmlinuz-* >/dev/null 2>&1; then
        name=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/ {print $2; exit}')
        [ -n "$name" ] || skip "apt knows no linux-image-cloud-amd64"
        mkdir -p "$kept"
        (cd "$work" && apt-get download -qq "$name" >/dev/null 2>&1) || skip "$name could not be downloaded"
        dpkg -x "$work"/linux-image-*.deb "$kept"
    fi
    version=$(ls "$kept/lib/modules" | tail -1)
    kernel=$kept/boot/vmlinuz-$version
    depmod -b "$kept" "$version"
}

libraries_of() { ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true; }

# add PROGRAM...: with its libraries.
add() {
    local program path library
    for program in "$@"; do
        path=$(readlink -f "$(command -v "$program")")
        install -D "$path" "$root/usr/bin/$(basename "$program")"
        for library in $(libraries_of "$path"); do
            mkdir -p "$root$(dirname "$library")"
            cp -Ln "$library" "$root$library"
        done
    done
}

make_root() {
    local applet n=0 module
    mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,lib/mods,lib64,etc,proc,sys,dev,run,tmp,var/lib/nfs,mnt,root}
    cp "$(command -v busybox)" "$root/bin/busybox"
    for applet in sh true hostname mount umount mkdir sleep insmod touch echo cat sed sync poweroff; do
        ln -s busybox "$root/bin/$applet"
    done
    add ip unshare nsenter rpcbind rpc.statd exportfs rpc.mountd rpc.nfsd mount.nfs \
        "$build/tests/filesystems/two_caches_tests" "$build/tests/process/process_tests"
    # The tests find their own library relative to where they were built.
    cp -L "$build"/src/libfslock.so* "$root/lib/" 2>/dev/null || true
    cp /etc/netconfig /etc/services /etc/protocols /etc/rpc "$root/etc/" 2>/dev/null || true
    printf 'root:x:0:0:root:/root:/bin/sh\n_rpc:x:106:65534::/run/rpcbind:/bin/sh\nstatd:x:107:65534::/var/lib/nfs:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
    printf '%s: files\n' passwd group hosts services protocols rpc >"$root/etc/nsswitch.conf"
    for module in veth nfsd nfsv3 nfsv4 lockd loop vfat nls_cp437 nls_ascii; do
        modprobe -d "$kept" -S "$version" --show-depends "$module" 2>/dev/null | awk '/^insmod/ {print $2}'
    done | awk '!s[$0]++' >"$work/modules"
    while read -r module; do
        n=$((n + 1))
        cp "$module" "$root/lib/mods/$(printf %02d "$n")-$(basename "$module")"
    done <"$work/modules"
    truncate -s 32M "$root/vfat.image"
    mkfs.vfat "$root/vfat.image" >/dev/null
    install -m 755 "$here/init" "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"
}

get_tools
get_kernel
make_root
timeout "${FSLOCK_NFS_SECONDS:-1500}" qemu-system-x86_64 -m 1024 -smp 2 -nic none -nographic -no-reboot \
    -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 panic=-1 quiet" </dev/null |
    sed -u 's,\r,,' | tee "$build/nfs.log" | grep --line-buffered -aE '^(NFS|vfat)' || true
grep -aq '^vfat ends' "$build/nfs.log" || { printf 'the machine did not reach its end\n'; tail -20 "$build/nfs.log"; exit 1; }
awk '/^(NFS|vfat)[^:]*: [0-9]+ passed, [0-9]+ failed/ { sub(/^[^:]*: /, ""); p += $1; f += $3; s += $5; n++ }
     /mount failed/ { f++ }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || n == 0 }' "$build/nfs.log"
