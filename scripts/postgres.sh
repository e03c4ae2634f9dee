# Sourced by ./test: starts a throw-away PostgreSQL where its programs are installed, and sets
# POSTGRES_URL. An address that is set already is used as it is.
stop_postgres() { :; }
start_postgres() {
  [ -n "${POSTGRES_URL:-}" ] && return 0
  local initdb port
  initdb=$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1 || true)
  [ -n "$initdb" ] || initdb=$(command -v initdb || true)
  [ -n "$initdb" ] || return 1
  PGBIN=$(dirname "$initdb")
  PGDIR=$(mktemp -d)
  PGAS=()
  if [ "$(id -u)" = 0 ]; then  # PostgreSQL refuses to run as root
    id postgres >/dev/null 2>&1 || return 1
    chown postgres "$PGDIR"
    PGAS=(runuser -u postgres --)
  fi
  port=$((20000 + $$ % 10000))  # below those that connections get by chance
  (
    cd "$PGDIR"
    "${PGAS[@]}" "$PGBIN/initdb" -D "$PGDIR/data" -U dynabench --auth=trust --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    "${PGAS[@]}" "$PGBIN/pg_ctl" -D "$PGDIR/data" -w -l "$PGDIR/log" -o "-p $port -k $PGDIR \
      -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off -c max_connections=200" start >/dev/null
  ) || return 1
  stop_postgres() { (cd "$PGDIR" && "${PGAS[@]}" "$PGBIN/pg_ctl" -D "$PGDIR/data" -m immediate stop >/dev/null); rm -rf "$PGDIR"; }
  POSTGRES_URL=postgres://dynabench@127.0.0.1:$port/postgres
}
