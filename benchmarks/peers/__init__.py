"""How long other libraries take for the same linear Thompson sampling; `run.py` says how to start it."""
