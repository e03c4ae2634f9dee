# Sourced by the scripts that build images: what they have in common. `work` is their temporary
# folder, `mode` their first argument, `pins` the file that says which wheels they take.
LABEL=org.dynabench.content
# The image's Python, whatever this machine's is, and the wheels that Debian 12 can load.
TARGET=(--python-version 3.11 --implementation cp --only-binary :all:)
for libc in 1 2014 _2_5 _2_12 _2_17 _2_24 _2_26 _2_27 _2_28 _2_31 _2_34 _2_35 _2_36; do
  TARGET+=(--platform "manylinux${libc}_$(uname -m)")
done

say() { echo "$(basename "$0" .sh): $*"; }
fail() { say "$@" >&2; exit 1; }

is_current() {  # IMAGE DIGEST
  [ "$(docker image inspect --format "{{index .Config.Labels \"$LABEL\"}}" "$1" 2>/dev/null)" = "$2" ] &&
    say "$1 is up to date."
}

outdated() { [ "$mode" != --is-current ] || exit 3; return 1; }

built() {  # ARGUMENTS OF docker build
  docker build "$@" >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; fail "docker build failed."; }
}

fetch_wheels() {  # FOLDER
  say "fetching wheels into $1 …"
  if [ "$mode" = --cuda ]; then
    env -u PIP_EXTRA_INDEX_URL "$python" -m pip download -qq --dest "$1" "${TARGET[@]}" -r "$pins"
    compgen -G "$1/nvidia_*" >/dev/null || fail "pip took a torch without CUDA. Empty $1, and let pip ask PyPI."
    return
  fi
  "$python" -m pip download -qq --dest "$1" "${TARGET[@]}" -r "$pins"
  ! compgen -G "$1/nvidia_*" >/dev/null ||
    fail "pip took the torch that brings CUDA, gigabytes that the sandbox cannot use. Empty $1 and" \
      "set PIP_EXTRA_INDEX_URL as the README says in \"Small torch\"."
}

docker info >/dev/null 2>&1 || fail "no Docker engine answers. Start it, or set DOCKER_HOST."
python=.venv/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}
