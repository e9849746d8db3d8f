"""A unit erased in all problems of a database: each is asked of the process that serves it.

Where one of them cannot do it the answer says so, and what was done by then stays done: to ask again does the
rest.
"""

import asyncio
from collections.abc import Mapping

from starlette.types import Scope

from unfog.live.errors import Elsewhere, StoreError, Unknown
from unfog.serve.bodies import Erase
from unfog.serve.calls import Answer, Call
from unfog.serve.exchange import as_json
from unfog.serve.forward import asked_by
from unfog.serve.operations import Operation
from unfog.serve.refusals import Refused, busy
from unfog.serve.service import Service
from unfog.serve.strict import read
from unfog.validation import InputError


class Erasing:
    """One request, for all problems."""

    def __init__(
        self, service: Service, operation: Operation, scope: Scope, headers: Mapping[bytes, bytes]
    ) -> None:
        """Nothing is erased yet."""
        self._service, self._operation, self._scope, self._headers = service, operation, scope, headers
        self._found: dict[str, int] = {}  # how many decisions of each problem

    async def answer(self, unit: str) -> Answer:
        """What was erased."""
        for name in await asyncio.to_thread(self._service.shelf.names):
            try:
                self._found |= await self._erased(Erase(unit=unit, problem=name))
            except (StoreError, Refused) as error:
                done = ", ".join(self._found) or "no problem"
                raise busy(f"Erased in {done} so far, and not in {name}: {error} Ask again.") from None
        if not self._found:
            raise Unknown("unit", repr(unit), "a unit that decisions were made for")
        return as_json({"decisions": self._found})

    async def _erased(self, body: Erase) -> Mapping[str, int]:
        """In one problem; nothing where it has no such unit."""
        assert body.problem is not None
        try:
            store = await self._service.store(body.problem)
            call = Call(store, self._service.settings, body=body)
            told: Mapping[str, Mapping[str, int]] = await self._service.do(self._operation, call)
        except Elsewhere as other:
            told = await self._asked(other, body)
        except InputError:
            return {}
        return told["decisions"]

    async def _asked(self, other: Elsewhere, body: Erase) -> Mapping[str, Mapping[str, int]]:
        """Of the process that serves the problem."""
        asked = asked_by(self._scope, self._headers, body.model_dump_json().encode())
        answer = await self._service.passed_on(other, str(body.problem), asked)
        assert isinstance(answer.body, bytes)
        told: dict[str, dict[str, int]] = read(answer.body)
        if answer.status in (404, 422):
            return {"decisions": {}}
        if answer.status != 200:
            raise Refused(answer.status, str(told["detail"]))
        return told
