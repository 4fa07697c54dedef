"""A proxy between a crew and its server, to make the network fail: it passes, swallows, resets, and cuts off answers.

It reads as much of the protocol as it takes to tell which statement is being answered: types and lengths of messages,
and the text behind the name of a prepared statement. It speaks no TLS.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from scenarios.wire import HEAD, Messages, Streams

Fault = Literal["cut", "lose", "swallow", "halve"]


class Passage:
    """One connection, and its twin to the server."""

    def __init__(self, proxy: FaultProxy, client: Streams, server: Streams) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, str] = {}  # the text behind each prepared name
        self._held: list[bytes] | None = None  # an answer that the client is not to get
        self._kinds: set[bytes] = set()  # of the messages in it
        self.is_dark = False

    async def pass_on(self) -> None:
        """Carry both ways until one side ends."""
        ways = [asyncio.create_task(way) for way in (self._from_client(), self._from_server())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if self.is_dark:  # neither side learns of the other's end
                await asyncio.wait(ways)
        finally:
            for way in ways:
                way.cancel()
            self._server.close()
            self._client.close()
            await asyncio.gather(*ways, return_exceptions=True)

    def reset(self) -> None:
        """Have the client's next word meet an RST."""
        self._client.reset()

    async def _from_client(self) -> None:
        messages = Messages(is_client=True)
        while chunk := await self._client.read():
            if self.is_dark:
                continue
            fault = None
            for message in messages.read(chunk):
                fault = fault or self._fault(message)
            if fault == "lose":
                self.reset()
                return
            if fault in ("swallow", "halve"):
                self.is_dark = True
                chunk = chunk[: len(chunk) // 2] if fault == "halve" else b""
            if fault == "cut":
                self._held, self._kinds = [], set()
            await self._server.write(chunk)

    async def _from_server(self) -> None:
        messages = Messages(is_client=False)
        while chunk := await self._server.read():
            found = list(messages.read(chunk))
            if self.is_dark:
                continue
            if self._held is None:
                await self._client.write(chunk)
                continue
            self._held.append(chunk)
            self._kinds |= {message[:1] for message in found}
            if b"Z" not in self._kinds:
                continue
            if self._proxy.is_worth_it(self._kinds):
                self.reset()
                return
            answer, self._held = b"".join(self._held), None  # before the write, which the next request may overtake
            await self._client.write(answer)

    def _fault(self, message: bytes) -> Fault | None:
        """Say what is to happen to a request, when the statement that it runs is one that was named."""
        body = message[HEAD:]
        match message[:1]:
            case b"Q":
                return self._proxy.take(body.decode(errors="replace"))
            case b"P":
                name, text, *_ = body.split(b"\0", 2)
                self._statements[name] = text.decode(errors="replace")
            case b"B":
                _portal, name, *_ = body.split(b"\0", 2)
                return self._proxy.take(self._statements.get(name, ""))
        return None


class FaultProxy:
    """Runs in a thread for as long as its block lasts; what it is told holds for what comes after."""

    def __init__(self, dsn: str) -> None:
        self._upstream = conninfo_to_dict(dsn)
        self._passages: set[Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._pattern: re.Pattern[str] | None = None
        self._last: re.Pattern[str] | None = None
        self._fault: Fault = "cut"
        self._has_rows = False
        self._is_dark = False
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def dsn(self) -> str:
        """The address of the same database through the proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        kept = {name: value for name, value in self._upstream.items() if name in {"user", "dbname", "password"}}
        return make_conninfo("", host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable", **kept)

    def cut(self, statement: str, *, has_rows: bool = False) -> None:
        """Carry the next statement of this pattern to the server, await its answer, and reset the client instead.

        One that is refused gets its answer, and where rows are asked for one without any: nothing came of them.
        """
        self._arm(statement, "cut", has_rows=has_rows)

    def lose(self, statement: str) -> None:
        """Reset the client of the next statement of this pattern; the server never hears of it."""
        self._arm(statement, "lose", has_rows=False)

    def swallow_at(self, statement: str, *, half: bool = False) -> None:
        """Have the connection of the next statement of this pattern go silent with it, or after half of it, towards
        both sides."""
        self._arm(statement, "halve" if half else "swallow", has_rows=False)

    @property
    def is_armed(self) -> bool:
        """Whether the fault that was asked for is still to come."""
        return self._pattern is not None

    def swallow(self) -> None:
        """From now on carry nothing and keep every connection open, new ones too; the server learns of nothing."""

        def darken() -> None:
            self._is_dark = True
            for passage in self._passages:
                passage.is_dark = True

        self._call(darken)

    def let_pass(self) -> None:
        """Carry again what comes on new connections; those that were swallowed stay dead."""

        def lighten() -> None:
            self._is_dark = False

        self._call(lighten)

    def reset(self, chance: random.Random, *, share: float = 1.0) -> None:
        """Reset a share of the connections that are open now, at least one if there is any."""

        def reset() -> None:
            some = [passage for passage in self._passages if not passage.is_dark]
            for passage in chance.sample(some, k=min(len(some), max(1, round(share * len(some))))):
                passage.reset()

        self._call(reset)

    def take(self, statement: str) -> Fault | None:
        """For a passage: the fault that this statement is to meet, which no other then meets."""
        with self._lock:
            if self._pattern is None or not self._pattern.search(statement):
                return None
            self._last, self._pattern = self._pattern, None
            return self._fault

    def is_worth_it(self, kinds: set[bytes]) -> bool:
        """For a passage: whether an answer of these messages is to be cut off; if not, another statement's will be."""
        if b"E" not in kinds and (b"D" in kinds or not self._has_rows):
            return True
        with self._lock:
            self._pattern = self._last
        return False

    def _arm(self, statement: str, fault: Fault, *, has_rows: bool) -> None:
        with self._lock:
            self._pattern, self._fault, self._has_rows = re.compile(statement, re.IGNORECASE), fault, has_rows

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _shut(self) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(0)  # what was accepted just now begins, so that it can be ended
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes the sockets

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        client = Streams(reader, writer)
        try:
            if self._is_dark:
                while await client.read():
                    pass
                return
            passage = Passage(self, client, Streams(*await self._connect()))
            self._passages.add(passage)
            try:
                await passage.pass_on()
            finally:
                self._passages.discard(passage)
        except (OSError, asyncio.CancelledError):
            return
        finally:
            client.close()
            self._tasks.discard(task)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._upstream["host"]), str(self._upstream.get("port", 5432))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)  # type: ignore[arg-type]

    def _call(self, work: Callable[[], None]) -> None:
        """Run in the proxy's thread, and wait until that is done."""

        async def made() -> None:
            work()

        self._do(made())
