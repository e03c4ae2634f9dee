#!/usr/bin/env bash
# Before the first `docker compose up`, as root: the site's folders, secrets/, .env and site.env beside
# this file. What is there stays. deploy/prepare.sh bench.example.org you@example.org
set -euo pipefail
cd "$(dirname "$0")"
[ $# = 2 ] || { echo "Say the site's host name and the e-mail address of its administrator." >&2; exit 2; }
folder=${DYNABENCH_FOLDER:-/var/lib/dynabench}
erasures=${ERASURES_FOLDER:-/var/lib/dynabench-erasures} backups=${BACKUP_FOLDER:-/var/backups/dynabench}

install -d -m 700 -o 10001 -g 10001 "$folder" "$erasures" "$backups"
install -d -m 700 secrets
kept() { [ -s "secrets/$1" ] || (umask 022; cat >"secrets/$1"); }
random() { head -c 32 /dev/urandom | base64 | tr -d '/+=\n'; }
for name in secret_key database_password cache_password admin_password; do random | kept "$name"; done
echo "postgres://dynabench:$(cat secrets/database_password)@postgres:5432/dynabench" | kept database_url
echo "redis://:$(cat secrets/cache_password)@redis:6379" | kept cache_url
[ -s .env ] || cat >.env <<ENV
SITE_HOST=$1
ADMIN_EMAIL=$2
DYNABENCH_FOLDER=$folder
ERASURES_FOLDER=$erasures
BACKUP_FOLDER=$backups
DOCKER_GROUP=$(stat -c %g /var/run/docker.sock)
ENV
[ -e site.env ] || echo '# EMAIL_BACKEND=django.core.mail.backends.smtp.EmailBackend' >site.env
echo "The administrator's first password is in $PWD/secrets/admin_password."
