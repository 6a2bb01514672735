"""What is small on the wire and large once it is unpacked: refused, however it is packed, and nothing is unpacked.

Usage: python bombs.py HOST:PORT PID
"""

import gzip
import http.client
import sys
import zlib

import brotli
import grpc
import zstandard

from healthy import Watch

PIECE = bytes(1 << 20)
# Of each kind 256 MiB, sent this often; for gRPC 64 MiB, which the client has to hold itself.
PIECES = 256
TIMES = 10
GRPC_BYTES = 64 << 20


def packed(compressor):
    """The pieces as one stream."""
    add = getattr(compressor, "compress", None) or compressor.process
    finish = getattr(compressor, "flush", None) or compressor.finish
    if isinstance(compressor, brotli.Compressor):
        finish = compressor.finish
    return b"".join([*(add(PIECE) for _ in range(PIECES)), finish()])


def bombs():
    yield "gzip", packed(zlib.compressobj(9, zlib.DEFLATED, 31))
    yield "deflate", packed(zlib.compressobj(9))
    yield "br", packed(brotli.Compressor(quality=3))
    yield "zstd", packed(zstandard.ZstdCompressor().compressobj())
    # One inside the other.
    yield "gzip, gzip", gzip.compress(packed(zlib.compressobj(9, zlib.DEFLATED, 31)))
    # Claimed only.
    yield "x-gzip", b"{}"
    yield "identity, br", b"{}"


def send(address, path, encoding, body, kind):
    """The status and the body of the answer."""
    connection = http.client.HTTPConnection(address, timeout=20)
    headers = {"content-type": kind} | ({"content-encoding": encoding} if encoding else {})
    try:
        connection.request("POST", f"/v1/queues/bombs/{path}", body, headers)
    except (BrokenPipeError, ConnectionResetError):
        # The server has answered, and does not want the rest.
        pass
    answer = connection.getresponse()
    return answer.status, answer.read()


def over_http(address):
    sent = 0
    for encoding, bomb in bombs():
        for path, kind in (("messages", "application/json"), ("messages/import", "application/x-ndjson")):
            for _ in range(TIMES):
                status, body = send(address, path, encoding, bomb, kind)
                assert (status, b"UNSUPPORTED_ENCODING" in body) == (415, True), f"{encoding}: {status} {body}"
                sent += len(bomb)
        # Not even said to be packed, it is no JSON.
        status, body = send(address, "messages", None, bomb[: 1 << 20] if bomb != b"{}" else b"\x1f\x8b", "application/json")
        assert status == 400, f"{encoding}, unsaid: {status} {body}"
    return f"{sent >> 10} KiB sent for {PIECES} MiB each"


def over_grpc(address):
    channel = grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)])
    call = channel.unary_unary("/redrive.v1.Redrive/Enqueue", lambda bomb: bomb, lambda answer: answer)
    for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        try:
            answer = call(bytes(GRPC_BYTES), timeout=20, compression=compression)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, f"{compression}: {error}"
        else:
            raise AssertionError(f"{compression} was taken: {answer}")
    return f"{GRPC_BYTES >> 20} MiB as gzip and as deflate"


def main():
    address, pid = sys.argv[1:]
    watch = Watch(address, pid)
    watch.survives("bombs over HTTP", lambda: over_http(address))
    watch.survives("bombs over gRPC", lambda: over_grpc(address))


if __name__ == "__main__":
    main()
