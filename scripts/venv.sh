# Sourced by ./run and ./test: the virtual environment with what the file $1 pins.
# A torch 2.13.0 that is in .venv already (the small CPU build, see README) is kept.
requirements=$1
python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
  echo "Dynabench needs Python 3.11; $("$python" --version) was found. Set PYTHON=/path/to/python3.11." >&2
  exit 1
}
[ -x .venv/bin/pip ] || "$python" -m venv .venv  # without pip: an earlier try broke off
stamp=.venv/installed-${requirements%.txt}
if ! [ "$stamp" -nt "$requirements" ] || [ -n "$(find . -maxdepth 1 -name 'requirements*.txt' -newer "$stamp")" ]; then
  echo "Installing what $requirements pins (some minutes at the first start) …"
  .venv/bin/pip install --quiet --disable-pip-version-check -r "$requirements"
  touch "$stamp"
fi
