#!/usr/bin/env bash
# Builds the images in which submitted models run:
#   dynabench-base:latest     Debian with Python 3.11 and nothing else; `--base` stops here
#   dynabench-runtime:latest  on top torch for the CPU, transformers and our harness, for model folders
#   dynabench-runtime-cuda:latest  with `--cuda`: the same with torch for CUDA, for folders on a GPU
# An image is labelled with a digest of what goes into it, and is not built again while that is the
# same; `--is-current` builds nothing, and ends with 3 where something would be built. The base is
# python:3.11-slim where the engine can pull it, else debootstrap makes it (as root; DEBIAN_MIRROR
# names another mirror). Wheels are fetched by pip into var/wheelhouse; WHEELHOUSE names a folder
# that holds them all already, for machines without a package index.
set -euo pipefail
cd "$(dirname "$0")/.."

BASE=dynabench-base:latest
RUNTIME=dynabench-runtime:latest
SOURCES=({core,core/files,core/text,tasks,tasks/targets,evaluation,evaluation/isolation,evaluation/isolation/sandbox}/__init__.py
  core/{files/damage,text/words}.py serving evaluation/contract.py
  evaluation/isolation/sandbox/harness)

base_from_registry() {  # DIGEST
  timeout 120 docker pull --quiet python:3.11-slim >/dev/null 2>&1 || return 1
  say "building $BASE from python:3.11-slim …"
  printf 'FROM python:3.11-slim\nLABEL %s=%s\nENV PYTHONUNBUFFERED=1\n' "$LABEL" "$1" |
    built --tag "$BASE" -
}

base_from_debian() {  # DIGEST
  command -v debootstrap >/dev/null ||
    fail "the engine cannot pull python:3.11-slim, and debootstrap is not installed." \
      "Install it (Debian: apt-get install debootstrap) or let the engine reach a registry."
  [ "$(id -u)" = 0 ] || fail "debootstrap works as root only: run this script with sudo."
  say "no registry can be reached: building $BASE with debootstrap (about a minute) …"
  local root=$work/base mirror=${DEBIAN_MIRROR:-}
  debootstrap --variant=minbase --include=python3 bookworm "$root" $mirror \
    >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap failed."; }
  rm -rf "$root"/var/{cache,log}/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}/*
  tar -C "$root" --one-file-system -c . |
    docker import --change "LABEL $LABEL=$1" --change 'ENV PYTHONUNBUFFERED=1' --change 'CMD ["python3"]' \
      - "$BASE" >/dev/null
}

build_runtime() {  # DIGEST
  local wheels=${WHEELHOUSE:-} site=$work/runtime/dynabench file
  if [ -z "$wheels" ]; then
    wheels=var/wheelhouse$suffix
    fetch_wheels "$wheels"
  fi
  say "installing them …"
  "$python" -m pip install -qq --no-index --find-links "$wheels" --no-compile --target "$site" \
    "${TARGET[@]}" -r requirements-runtime.txt
  rm -rf "$site"/torch/{test,include,share} "$site"/{bin,share}
  find "$site/torch/bin" -type f ! -name torch_shm_manager -delete  # torch starts no other
  find "$site" -name tests -type d -prune -exec rm -rf {} +
  ! command -v strip >/dev/null || strip --strip-unneeded "$site"/torch/lib/*.so  # 90 MB of symbols
  for file in "${SOURCES[@]}"; do
    mkdir -p "$site/$(dirname "$file")"
    cp -r "$file" "$site/$file"
  done
  find "$site" -name __pycache__ -type d -prune -exec rm -rf {} +
  # Modules are compiled by being used once: only those that a start needs, a third of its time.
  cat >"$work/runtime/Dockerfile" <<DOCKERFILE
FROM $BASE
COPY dynabench /opt/dynabench
ENV PYTHONPATH=/opt/dynabench HF_HUB_OFFLINE=1
RUN python3 -m evaluation.isolation.sandbox.harness.loading
LABEL $LABEL=$1
ENTRYPOINT ["python3", "-m", "evaluation.isolation.sandbox.harness"]
DOCKERFILE
  say "building $RUNTIME …"
  local older
  older=$(docker image inspect --format '{{.Id}}' "$RUNTIME" 2>/dev/null) || older=
  built --network none --tag "$RUNTIME" "$work/runtime"
  # It has no name now, unless somebody gave it one; a run that is under way keeps it.
  [ -z "$older" ] || [ -n "$(docker image inspect --format '{{join .RepoTags ""}}' "$older")" ] ||
    docker image rm "$older" >/dev/null 2>&1 || true
}

mode=${1:-} suffix=
[ "${1:-}" != --cuda ] || suffix=-cuda RUNTIME=dynabench-runtime-cuda:latest
pins=requirements-runtime.txt
source scripts/images.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

digest=$(declare -f base_from_registry base_from_debian | sha256sum | cut -d' ' -f1)
is_current "$BASE" "$digest" || outdated || base_from_registry "$digest" || base_from_debian "$digest"
[ "$mode" != --base ] || exit 0

digest=$({
  docker image inspect --format '{{.Id}}' "$BASE"
  declare -f build_runtime
  printf %s "$suffix"
  find requirements-runtime.txt "${SOURCES[@]}" -name __pycache__ -prune -o -type f -print0 |
    sort -z | xargs -0 sha256sum
} | sha256sum | cut -d' ' -f1)
is_current "$RUNTIME" "$digest" || outdated || build_runtime "$digest"
docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep -E "^($BASE|$RUNTIME) " | while read -r line; do say "$line"; done
