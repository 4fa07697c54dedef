"""What goes over a connection to PostgreSQL: bytes, and the messages that they are."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

CHUNK = 65536
HEAD = 5  # a message's type and length


class Messages:
    """Splits a stream into messages; the client's first has no type."""

    def __init__(self, *, is_client: bool) -> None:
        self._rest = b""
        self._is_first = is_client

    def read(self, chunk: bytes) -> Iterator[bytes]:
        self._rest += chunk
        while len(self._rest) >= HEAD:
            at = 0 if self._is_first else 1
            size = at + struct.unpack_from("!i", self._rest, at)[0]
            if len(self._rest) < size:
                return
            message, self._rest = self._rest[:size], self._rest[size:]
            self._is_first = False
            yield message


class Streams:
    """A reader and a writer as one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.read(CHUNK)
        return b""

    async def write(self, chunk: bytes) -> None:
        with suppress(ConnectionError):
            self._writer.write(chunk)
            await self._writer.drain()

    def reset(self) -> None:
        connection = self._writer.get_extra_info("socket")
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """Close it, without a wait: whoever closes may be cancelled, and what is not closed then never is."""
        self._writer.close()
