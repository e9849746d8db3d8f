#!/usr/bin/env bash
# The peers' own environment, benchmarks/out/peers-venv: their pins are not ours. Each is installed by itself,
# held to requirements.txt, so that one that cannot be does not stop the others; its reason is kept in failed/.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=benchmarks/out/peers-venv
peers=(numpy bayesianbandits coba mabwiser contextualbandits river vowpalwabbit)
export PIP_CONSTRAINT=$PWD/benchmarks/peers/requirements.txt # for what a build needs, too

"${PYTHON:-python3}" -m venv "$venv"
rm -rf "$venv/failed"
mkdir "$venv/failed"
for peer in "${peers[@]}"; do
  pin=$(grep "^$peer==" "$PIP_CONSTRAINT")
  echo "installing $pin" >&2
  if ! said=$("$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$pin" 2>&1); then
    reason=$(grep -i '^ *error' <<<"$said" || echo "$said")
    head -n 1 <<<"$reason" | tee "$venv/failed/$peer.txt" >&2
  fi
done
