"""What kinds of text are called that are sent, and how JSON is written: for service and client alike."""

import json

JSON = "application/json"
LINES = "application/x-ndjson"
PROBLEM = "application/problem+json"

encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
