#!/bin/bash
# Makes the host ready: Debian packages and .venv with the pinned Python packages.
#
# A second run with the same inputs does nothing. Checks come before the first change; the virtual environment is built
# beside its place and moved there when it is complete, so that an interrupted run leaves nothing half done.
# usage: tools/bootstrap.sh [--check]     --check: run the checks only
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

PACKAGES=(python3 python3-venv qemu-system-x86 qemu-utils mmdebstrap debian-archive-keyring e2fsprogs zstd cpio socat iproute2 nftables
    openssh-client procps lua5.1)
WANTED_KB=$((6 * 1024 * 1024))
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

refuse() { # what found wanted todo
    printf 'bootstrap: %s; found: %s; wanted: %s; do: %s\n' "$1" "$2" "$3" "$4" >&2
    exit 1
}

check_system() {
    local system available
    system=$(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-?} ${VERSION_ID:-?}") || system=unknown
    [ "$system" = "debian 12" ] ||
        refuse "this host's distribution is not supported" "$system" "debian 12" "use a Debian 12 host or machine"
    [ "$(id -u)" = 0 ] ||
        refuse "not root" "user $(id -un)" "root: packages are installed, network namespaces made" "run make as root, e.g. with sudo"
    available=$(awk '$1 == "MemAvailable:" {print $2}' "${MEMINFO:-/proc/meminfo}")
    [ "$available" -ge "$WANTED_KB" ] ||
        refuse "too little free memory" "$((available / 1024)) MiB" "$((WANTED_KB / 1024)) MiB for four virtual machines" \
            "end something, or use a bigger machine"
}

find_python() { # the distribution's own first: a version manager's shim may name an interpreter that is not there
    local candidate
    for candidate in /usr/bin/python3.11 /usr/bin/python3 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    refuse "no Python 3.11" "$(/usr/bin/python3 --version 2>&1 || true)" "/usr/bin/python3.11" "apt-get install python3"
}

install_packages() {
    local missing=() package
    for package in "${PACKAGES[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "bootstrap: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    local apt=(apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300)
    # the package lists may be old, or their other sources out of reach: then one update, whose warnings do not count
    "${apt[@]}" install "${missing[@]}" >"$log" 2>&1 && return 0
    apt-get -q update >>"$log" 2>&1 || true
    "${apt[@]}" install "${missing[@]}" >>"$log" 2>&1 && return 0
    tail -n 20 "$log" >&2
    refuse "apt-get could not install packages" "see above" "${missing[*]}" "check the sources in /etc/apt"
}

build_environment() {
    local python=$1 fresh=.venv.new
    echo "bootstrap: building .venv with $("$python" --version)"
    rm -rf "$fresh"
    "$python" -m venv "$fresh"
    if ! "$fresh/bin/python" -m pip install -q --no-compile --disable-pip-version-check -r requirements/dev.txt >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        refuse "pip could not install the pinned packages" "see above" "requirements/dev.txt" "check the package index"
    fi
    # scripts carry the path of their interpreter: name the place where they will be
    grep -rlI --null "$PWD/$fresh" "$fresh/bin" "$fresh/pyvenv.cfg" | xargs -0 -r sed -i "s#$PWD/$fresh#$PWD/.venv#g"
    echo "$environment" >"$fresh/.inputs"
    rm -rf .venv.old
    [ ! -e .venv ] || mv .venv .venv.old
    mv "$fresh" .venv
    rm -rf .venv.old
    .venv/bin/python -m compileall -q .venv/lib >/dev/null 2>&1 || true # only saves time later
}

inputs=$({ cat tools/bootstrap.sh requirements/*.txt; pwd; } | sha256sum)
stamp=.venv/.bootstrap
[ "${1:-}" = --check ] || { [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ] && exit 0; }
check_system
[ "${1:-}" != --check ] || exit 0
start=$SECONDS
log=$(mktemp)
trap 'rm -rf "$log" .venv.new' EXIT
exec 9>/run/weaklink-bootstrap.lock
flock 9 # a second run beside this one waits, and finds the work done
[ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ] && exit 0
install_packages
python=$(find_python) # a bare Debian has none before
environment=$({ cat requirements/*.txt; pwd; "$python" --version; } | sha256sum)
[ "$(cat .venv/.inputs 2>/dev/null)" = "$environment" ] || build_environment "$python"
echo "$inputs" >"$stamp"
echo "bootstrap: ready after $((SECONDS - start)) s"
