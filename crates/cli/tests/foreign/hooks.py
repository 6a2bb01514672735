"""What schemathesis has to be told beyond the description: how a long poll is kept short, what is really there, and how
NDJSON is written and read."""

import itertools
import json
import uuid

import requests
import schemathesis

# Long enough to be a wait, short enough to be waited for a thousand times.
WAIT_MS_MAX = 100
# A queue of its own, so that no other case takes away what was made for one.
QUEUE = "hooks"

session = requests.Session()
every_second = itertools.cycle([True, False])


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Changes only what is right already, and leaves it right: a case that must be refused must still be.

    A random id or receipt finds nothing, and what lies behind it would never be reached; every second one that has the
    form of one becomes that of something that is there.
    """
    # A lease that nothing is ready for would wait for as long as it is told.
    if case.headers is not None:
        case.headers.pop("Prefer", None)
    make = Maker(case.operation.base_url)
    if isinstance(case.body, dict):
        shorten(case.body)
        settle(case.body, make)
    path, template = case.path_parameters or {}, case.operation.path
    if is_uuid(path.get("id")) and next(every_second):
        if "/operations/" in template:
            path["id"] = make.operation()
        elif isinstance(path.get("queue"), str):
            path["id"] = make.leased()["id"] if "/leases/" in template else make.message()
            path["queue"] = QUEUE
    elif template.endswith("/lease") and isinstance(path.get("queue"), str) and next(every_second):
        make.message()
        path["queue"] = QUEUE


class Maker:
    """Makes what a case is about."""

    def __init__(self, base_url):
        self.base_url = base_url.rstrip("/")

    def post(self, path, body):
        answer = session.post(f"{self.base_url}/v1/queues/{QUEUE}/{path}", json=body, timeout=5)
        answer.raise_for_status()
        return answer.json()

    def message(self):
        return self.post("messages", {"body": "made for a case"})["id"]

    def leased(self):
        self.message()
        return self.post("lease", {"consumer": "hooks"})["messages"][0]

    def operation(self):
        return self.post("messages/discard", {"filter": {"ids": [self.message()]}, "rate": 1})["id"]


def shorten(body):
    wait = body.get("wait_ms")
    if type(wait) is int and wait > WAIT_MS_MAX:
        body["wait_ms"] = WAIT_MS_MAX


def settle(body, make):
    items = body.get("items")
    first = items[0] if isinstance(items, list) and items else body
    if isinstance(first, dict) and isinstance(first.get("receipt"), str) and next(every_second):
        first["receipt"] = make.leased()["receipt"]


def is_uuid(text):
    try:
        return isinstance(text, str) and bool(uuid.UUID(text))
    except ValueError:
        return False


@schemathesis.serializer("application/x-ndjson")
def write_lines(ctx, value):
    """One message is one line; what was made to be no message at all is sent as it is."""
    if isinstance(value, bytes):
        return {"data": value}
    return {"data": json.dumps(value).encode() + b"\n"}


@schemathesis.deserializer("application/x-ndjson")
def read_lines(ctx, response):
    """Every line must be JSON. The description is that of a line, so that one of them stands for all."""
    lines = [json.loads(line) for line in response.content.splitlines()]
    return lines[-1] if lines else {}
