"""Workers with pipes of their own: what a dead one leaves behind keeps nobody waiting."""

import multiprocessing
import os
import struct

from unfog.simulation.executors.local import Answer, Worker


def test_an_answer_that_breaks_off_in_the_middle_is_a_death() -> None:
    worker = Worker.__new__(Worker)
    worker.pipe, theirs = multiprocessing.Pipe()
    theirs.send(Answer())
    os.write(theirs.fileno(), struct.pack("!i", 10_000) + b"the first bytes of an answer")
    theirs.close()
    assert worker.answer() == Answer()
    assert worker.answer() is None
    worker.pipe.close()
