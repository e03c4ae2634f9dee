#!/usr/bin/env bash
# Runs the tests again and again: with other seeds, with fewer kernels, another hash seed and in
# random order. Logs lie in var/soak/COMMIT; called again it goes on after the last run that passed.
#   scripts/soak.sh               all of it, some hours
#   scripts/soak.sh quick order   only runs whose names begin so
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain)" ] || { echo "Commit first: the log is kept by commit." >&2; exit 1; }
log=var/soak/$(git rev-parse --short HEAD)
mkdir -p "$log"
wanted=("$@")

once() {  # NAME VARIABLE=VALUE… COMMAND…
  local name=$1 started=$SECONDS one
  if [ ${#wanted[@]} -gt 0 ]; then
    for one in "${wanted[@]}"; do [[ $name != "$one"* ]] || break; one=; done
    [ -n "$one" ] || return 0
  fi
  ! grep -qs "^$name passed" "$log/runs" || return 0
  if env "${@:2}" >"$log/$name" 2>&1; then
    echo "$name passed in $((SECONDS - started)) s" | tee -a "$log/runs"
  else
    echo "$name FAILED after $((SECONDS - started)) s: $log/$name" | tee -a "$log/runs"
    exit 1
  fi
}

for seed in {1..10}; do once "quick-$seed" TEST_SEED="$seed" ./test --quick; done
for seed in {1..3}; do once "whole-$seed" TEST_SEED="$seed" EXAMPLES=200 REQUIRE_ALL=1 ./test; done
once kernels-default ATEN_CPU_CAPABILITY=default PYTHONHASHSEED=1 REQUIRE_ALL=1 ./test
once kernels-avx2 ATEN_CPU_CAPABILITY=avx2 TEST_ORDER=soak REQUIRE_ALL=1 ./test
once kernels-onednn ONEDNN_MAX_CPU_ISA=AVX2 RACES=many REQUIRE_ALL=1 ./test
