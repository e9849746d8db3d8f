"""Where others are told to come."""

import pytest

from unfog.serve.http_client import check_address
from unfog.serve.server import advertised, bound
from unfog.validation import InputError


def test_it_is_as_the_operator_says_or_where_it_listens() -> None:
    with bound("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        assert advertised(None, opened, shared=True) == f"http://127.0.0.1:{port}"
        assert advertised("https://a.example/unfog/", opened, shared=True) == "https://a.example/unfog"
    assert check_address("advertise", "https://a.example/unfog/", "").path == "/unfog/"


def test_nobody_comes_to_all_addresses() -> None:
    with bound("0.0.0.0", 0) as opened:
        port = opened.getsockname()[1]
        assert advertised(None, opened, shared=False) == f"http://0.0.0.0:{port}"
        with pytest.raises(InputError, match=r"^advertise: not given, and nobody comes to http://0\.0\.0\.0"):
            advertised(None, opened, shared=True)


NO_ADDRESSES = [
    "10.0.0.5:8000",
    "ftp://a",
    "http://",
    "http://ann:secret@a",
    "http://ann:secret@[a",
    "http://a?x",
    "http://a:b",
    "http://[a",
]


def test_what_is_no_address_is_refused_and_no_password_is_shown() -> None:
    for told in NO_ADDRESSES:
        with pytest.raises(InputError, match=r"^advertise: .*; allowed: an address$") as refused:
            check_address("advertise", told, "an address")
        assert "secret" not in str(refused.value)
