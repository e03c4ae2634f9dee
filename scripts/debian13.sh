#!/usr/bin/env bash
# Runs `./test --quick` on Debian 13 with its Python (3.13), in a root that debootstrap makes. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d)
trap 'umount -l "$root"/{proc,dev} 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
packages=python3,python3-venv,ca-certificates
debootstrap --variant=minbase --include=$packages trixie "$root" ${DEBIAN_MIRROR:-} >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }
cp /etc/resolv.conf "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
chroot "$root" bash -c 'apt-get update -qq &&
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell' >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }
mkdir -p "$root/src" "$root/shared"
git ls-files -z | tar --null -T - -c | tar -x -C "$root/src"
data=${DYNABENCH_DATA:-../shared/data}
[ ! -d "$data" ] || cp -r "$data" "$root/shared/data"
env -u DYNABENCH_DATA -u DYNABENCH_HOME -u NIGHTLY -u PYTHON HOME=/root LANG=C.UTF-8 PIP_NO_CACHE_DIR=1 \
  chroot "$root" /bin/bash -c 'cd /src && python3 --version && ./test --quick'
