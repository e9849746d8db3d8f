#!/usr/bin/env bash
# obp's own environment, benchmarks/out/obp-venv. obp wants torch, which takes a few GB, and pins versions that
# no longer install, so it is installed by itself and then what it imports.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=benchmarks/out/obp-venv
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps obp==0.4.1
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 pyyaml==6.0.3 tqdm==4.70.1 seaborn==0.13.2 \
  mypy-extensions==1.2.0 torch==2.15.0
