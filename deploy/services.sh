#!/usr/bin/env bash
# What the tests need beside Python: a throw-away PostgreSQL on a loopback port, Chromium with its driver, curl and node.
#   services.sh start FILE   start what is not running, and write its environment to FILE
#   services.sh stop FILE    stop it, and remove all of it
# Missing packages are installed where this runs as root on a system with apt; an ordinary user needs them there.
set -euo pipefail

action=${1:?start or stop}
file=${2:?the file for the environment}

say() { echo "services: $*" >&2; }

newest() { find /usr/lib/postgresql /usr/local/pgsql /opt -maxdepth 3 -name pg_ctl 2>/dev/null | sort -V | tail -n 1; }

first() { for name in "$@"; do command -v "$name" && return; done; return 1; }

install() {  # whatever is missing, in one go
  local wanted=()
  [ -n "$(newest)" ] || wanted+=(postgresql)
  first chromium chromium-browser google-chrome >/dev/null || wanted+=(chromium)
  first chromedriver >/dev/null || wanted+=(chromium-driver)
  first curl >/dev/null || wanted+=(curl)
  first node >/dev/null || wanted+=(nodejs)
  [ ${#wanted[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: ${wanted[*]}; install them, or run this as root where there is apt-get"
    exit 1
  fi
  say "installing ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install --yes --no-install-recommends "${wanted[@]}" >/dev/null
}

# PostgreSQL refuses to run as root: there it runs as the user that its package made.
as_database() { if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

running() { [ -n "${UNFOG_POSTGRES_DATA:-}" ] && as_database "$(newest)" -D "$UNFOG_POSTGRES_DATA" status >/dev/null 2>&1; }

start() {
  install
  # shellcheck disable=SC1090
  [ -f "$file" ] && . "$file"
  if running; then say "running already"; return; fi
  local bin data port
  bin=$(dirname "$(newest)")
  data=$(as_database mktemp -d /tmp/unfog-postgres.XXXXXX)
  port=$(free_port)
  as_database "$bin/initdb" -D "$data/data" -U unfog -A trust -E UTF8 --no-locale >/dev/null
  as_database "$bin/pg_ctl" -D "$data/data" -w -l "$data/log" start >/dev/null \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories=$data -c max_connections=200 -c fsync=on"
  {
    echo "export UNFOG_POSTGRES=postgresql://unfog@127.0.0.1:$port/postgres"
    echo "export UNFOG_POSTGRES_DATA=$data/data"
    echo "export UNFOG_CHROMIUM=$(first chromium chromium-browser google-chrome)"
    echo "export UNFOG_CHROMEDRIVER=$(first chromedriver)"
  } >"$file"
  say "PostgreSQL at 127.0.0.1:$port"
}

stop() {
  [ -f "$file" ] || return 0
  # shellcheck disable=SC1090
  . "$file"
  if running; then as_database "$(newest)" -D "$UNFOG_POSTGRES_DATA" -m immediate stop >/dev/null; fi
  case ${UNFOG_POSTGRES_DATA:-} in /tmp/unfog-postgres.*/data) rm -rf "${UNFOG_POSTGRES_DATA%/data}" ;; esac
  rm -f "$file"
}

case $action in
  start) start ;;
  stop) stop ;;
  *) say "start or stop, not $action"; exit 2 ;;
esac
