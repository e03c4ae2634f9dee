#!/usr/bin/env bash
# Brings deploy/compose.yaml up from nothing under a name and at ports of its own, walks through the
# loop over HTTPS (sign in, write an example against a served model, judge it), makes a backup, takes all away.
# Needs the images of scripts/site_image.sh, and root. COMPOSE names another program than `docker compose`.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python
[ -x "$PYTHON" ] || PYTHON=python3
"$PYTHON" -c "import httpx" 2>/dev/null || {
  echo "The walk needs httpx: python3 -m venv .venv && .venv/bin/pip install httpx." >&2
  exit 1
}
work=$(mktemp -d)
export COMPOSE_PROJECT_NAME=dynabench-try HTTP_PORT=${HTTP_PORT:-18080} HTTPS_PORT=${HTTPS_PORT:-18443}
export DYNABENCH_FOLDER=$work/home ERASURES_FOLDER=$work/erasures BACKUP_FOLDER=$work/backups
compose() { ${COMPOSE:-docker compose} --project-directory "$work" -f "$work/compose.yaml" "$@"; }
away() {
  [ $? = 0 ] || compose logs --tail 40
  compose down --volumes --timeout 20 >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap away EXIT

cp deploy/compose.yaml deploy/prepare.sh "$work"
"$work/prepare.sh" localhost operator@example.org
began=$(date +%s)
compose up -d
# Signing in before there is the account would be wrong passwords, of which there may be few.
until compose logs setup 2>/dev/null | grep -q 'nli round 1 is open'; do
  [ $(($(date +%s) - began)) -lt 600 ] || { echo "The first round does not open."; exit 1; }
  sleep 2
done
"$PYTHON" scripts/walk.py "https://localhost:$HTTPS_PORT" operator@example.org "$work/secrets/admin_password"
echo "try_compose: from nothing to a judged example in $(($(date +%s) - began)) s."
compose exec -T backup /opt/dynabench/entry backup --days 28 /backups
compose exec -T backup /opt/dynabench/entry verify_backup "/backups/$(ls "$BACKUP_FOLDER")"
compose ps
for service in web models proxy postgres redis; do
  ! compose exec -T "$service" test -e /var/run/docker.sock || { echo "$service sees the engine"; exit 1; }
done
