"""Names that are texts of another kind, NumPy's or an enumeration's, are plain text in the log."""

from enum import StrEnum
from pathlib import Path

import numpy as np

from tests.live.ground import Hand, opened, problem


class Who(StrEnum):
    """Names as programs have them."""

    ANN = "ann"
    KEY = "k-1"


def test_texts_of_other_kinds_are_plain_text_in_the_log(tmp_path: Path) -> None:
    """A row is checked when it is read: its checksum is of the text, whatever kind of text it was."""
    with opened(tmp_path, Hand()) as store:
        live = problem(store, np.str_("p"))
        made = live.decide([1.0, 2.0], unit=Who.ANN, key=Who.KEY)
        live.reward(np.array([made.id])[0], 1.0, key=np.str_("k-2"))
        live.reveal(np.str_(made.id), {np.str_("x"): 1.0})
        forced = live.decide([1.0, 2.0], unit=np.str_("ann"), logged_arm=np.str_(made.arm))
        live.cancel(np.str_(forced.id))
        live.add_arm(np.str_("new"))
        live.add_shadow(np.str_("naive"))
        before = live.state_hash()
        assert store.replay(verify=True)["p"].same
    with opened(tmp_path, Hand()) as store:
        again = store.problem("p")
        assert again.state_hash() == before
        assert again.decide([1.0, 2.0], unit="ann", key="k-1") == made
        assert store.erase(unit=np.str_("ann")) == {"p": 2}
