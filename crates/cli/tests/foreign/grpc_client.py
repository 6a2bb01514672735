"""The gRPC API through a client that is not ours, and that knows nothing but an address.

There is no generated code: what can be called, and with which messages, the server says itself by reflection.
Usage: python grpc_client.py HOST:PORT
"""

import json
import queue
import sys
import threading
import urllib.request

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

# Nothing here takes a second; a call that takes this long has failed, and says so.
DEADLINE = 20.0
SERVICE = "redrive.v1.Redrive"
QUEUE = "foreign"


class Api:
    """Every method of a service, as its descriptor has it."""

    def __init__(self, channel, pool, service):
        self.pool = pool
        self.methods = {}
        for method in pool.FindServiceByName(service).methods:
            self.methods[method.name] = self._callable(channel, service, method)

    @staticmethod
    def _callable(channel, service, method):
        kinds = {
            (False, False): channel.unary_unary,
            (False, True): channel.unary_stream,
            (True, False): channel.stream_unary,
            (True, True): channel.stream_stream,
        }
        answer = message_factory.GetMessageClass(method.output_type)
        return kinds[method.client_streaming, method.server_streaming](
            f"/{service}/{method.name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=answer.FromString,
        )

    def message(self, name):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def call(self, method, request):
        return self.methods[method](request, timeout=DEADLINE)


def equal(found, expected, what):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def refusal(call, code):
    """The refusal of a call, which must have this code, with its details decoded."""
    try:
        answer = call()
    except grpc.RpcError as error:
        equal(error.code(), code, f"the code of {error.details()!r}")
        status = rpc_status.from_call(error)
        assert status is not None, f"{error.details()!r} has no details in grpc-status-details-bin"
        equal(status.code, code.value[0], "the code inside the details")
        return status
    raise AssertionError(f"expected {code}, was answered {answer}")


def detail(status, kind):
    for packed in status.details:
        found = kind()
        if packed.Unpack(found):
            return found
    raise AssertionError(f"no {kind.DESCRIPTOR.full_name} among {[one.type_url for one in status.details]}")


class Stream:
    """A bidirectional stream: requests are said one by one, answers are waited for with a deadline."""

    END = object()

    def __init__(self, method):
        self.requests = queue.SimpleQueue()
        self.answers = queue.SimpleQueue()
        self.call = method(iter(self.requests.get, self.END), timeout=DEADLINE)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for answer in self.call:
                self.answers.put(answer)
            self.answers.put(self.END)
        except grpc.RpcError as error:
            self.answers.put(error)

    def say(self, request):
        self.requests.put(request)

    def next(self, what):
        try:
            answer = self.answers.get(timeout=DEADLINE)
        except queue.Empty:
            raise AssertionError(f"nothing came in {DEADLINE} s, but {what} should have") from None
        assert not isinstance(answer, grpc.RpcError), f"waiting for {what}: {answer}"
        return answer

    def messages(self, count, what):
        """That many messages, in however many answers they come."""
        found = []
        while len(found) < count:
            answer = self.next(what)
            assert answer is not self.END, f"the stream ended before {what}"
            found.extend(answer.messages)
        equal(len(found), count, what)
        return found

    def settled(self, count, what):
        """What became of settlements, and whatever was pushed before the answer to them."""
        pushed = []
        while True:
            answer = self.next(what)
            assert answer is not self.END, f"the stream ended before {what}"
            pushed.extend(answer.messages)
            if answer.settled:
                equal(len(answer.settled), count, what)
                return answer.settled, pushed

    def end(self):
        self.say(self.END)
        equal(self.next("the end of the stream"), self.END, "after the last request")


def health(channel, pool):
    api = Api(channel, pool, "grpc.health.v1.Health")
    check = api.message("grpc.health.v1.HealthCheckRequest")
    serving = api.message("grpc.health.v1.HealthCheckResponse").ServingStatus.Value("SERVING")
    for service in ["", SERVICE]:
        equal(api.call("Check", check(service=service)).status, serving, f"the health of {service!r}")
    try:
        api.call("Check", check(service="no.such.Service"))
    except grpc.RpcError as error:
        equal(error.code(), grpc.StatusCode.NOT_FOUND, "the health of a service that is not there")
    else:
        raise AssertionError("a service that is not there is healthy")


def v1(api, name, /, **fields):
    return api.message(f"redrive.v1.{name}")(**fields)


def lease(api, limit, **fields):
    answer = api.call("Lease", v1(api, "LeaseRequest", queue=QUEUE, limit=limit, consumer="python", **fields))
    return list(answer.messages)


def settle(api, verb, items):
    """Settles by a unary call, which must be applied to every item."""
    answer = api.call(verb, v1(api, f"{verb}Request", items=[v1(api, verb, **item) for item in items]))
    equal([result.code for result in answer.results], [""] * len(items), f"the codes of {verb}")
    return answer.results


def queues(api):
    retry = v1(api, "Retry", max_attempts=5, base_delay_ms=60_000, jitter="none")
    config = v1(api, "QueueConfig", lease_timeout_ms=60_000, retry=retry)
    created = api.call("CreateQueue", v1(api, "CreateQueueRequest", name=QUEUE, config=config))
    equal((created.name, created.version), (QUEUE, 1), "the new queue")
    found = api.call("GetQueue", v1(api, "GetQueueRequest", name=QUEUE))
    equal(found, created, "the queue as it is read")
    equal(found.config.retry.max_attempts, 5, "its attempts")
    listed = api.call("ListQueues", v1(api, "ListQueuesRequest"))
    equal([one.name for one in listed.queues], [QUEUE], "all queues")


def enqueue(api):
    messages = [
        v1(api, "NewMessage", body=bytes([number, 0xFF]), type="foreign.made", headers={"number": str(number)})
        for number in range(12)
    ]
    messages.append(v1(api, "NewMessage", body=b"once", dedup_key="once", priority=0))
    messages.append(v1(api, "NewMessage", body=b"twice", dedup_key="once"))
    answer = api.call("Enqueue", v1(api, "EnqueueRequest", queue=QUEUE, messages=messages))
    results = answer.results
    equal([result.code for result in results], [""] * 14, "the codes of the batch")
    equal([result.duplicate for result in results], [False] * 13 + [True], "which are duplicates")
    equal(results[13].id, results[12].id, "a duplicate has the id of the first")
    equal(len({result.id for result in results}), 13, "how many ids there are")
    return [result.id for result in results[:13]]


def settlements(api, ids):
    """One message for every verb; answers how many are gone, delayed, ready again and dead."""
    first = lease(api, 5)
    equal([message.id for message in first], ids[:5], "who is served first")
    equal(first[1].body, bytes([1, 0xFF]), "a body that is no text")
    equal(dict(first[1].headers), {"number": "1"}, "its headers")
    equal([message.attempts for message in first], [1] * 5, "their attempts")
    assert all(message.deadline_ms > message.created_at_ms for message in first), "a deadline lies in the past"
    acked, nacked, extended, released, buried = (message.receipt for message in first)

    settle(api, "Ack", [{"receipt": acked}])
    [result] = settle(api, "Nack", [{"receipt": nacked, "error": "no luck", "checkpoint": b"half"}])
    equal(result.state, "delayed", "a message that failed")
    [result] = settle(api, "Extend", [{"receipt": extended, "lease_ms": 600_000}])
    assert result.deadline_ms > first[2].deadline_ms, "an extension moved the deadline back"
    settle(api, "Release", [{"receipt": released}])
    [result] = settle(api, "Bury", [{"receipt": buried, "error": "never again"}])
    equal((result.state, result.dead_reason), ("dead", "buried"), "a message that was buried")

    again = api.call("Ack", v1(api, "AckRequest", items=[v1(api, "Ack", receipt=acked), v1(api, "Ack", receipt="x")]))
    equal([result.code for result in again.results], ["NOT_FOUND", "INVALID_RECEIPT"], "a receipt that is used up, and none")
    [back] = lease(api, 1)
    equal((back.id, back.attempts, back.deliveries), (ids[3], 1, 2), "what was released has its place and its attempt back")
    assert back.lease_id > first[3].lease_id, "a later lease has a smaller fencing token"
    late = api.call("Ack", v1(api, "AckRequest", items=[v1(api, "Ack", receipt=released)]))
    equal([result.code for result in late.results], ["LEASE_LOST"], "a receipt of an earlier lease")
    settle(api, "Ack", [{"receipt": back.receipt}, {"receipt": extended}])


def consume(api, ids):
    """The stream: credit bounds what is out, a settlement makes room for the next, and no credit is a pause."""
    request = lambda **fields: v1(api, "ConsumeRequest", **fields)
    stream = Stream(api.methods["Consume"])
    stream.say(request(start=v1(api, "ConsumeStart", queue=QUEUE, consumer="python", credit=2)))
    out = stream.messages(2, "as many messages as there is credit")
    equal([message.id for message in out], ids[5:7], "what is pushed first")

    # With more credit the third comes; only then is it known that it was kept back until now.
    stream.say(request(credit=3))
    out += stream.messages(1, "the message that more credit allows")
    equal(out[2].id, ids[7], "what more credit allows")

    settle_request = v1(
        api,
        "ConsumeSettle",
        acks=[v1(api, "Ack", receipt=out[0].receipt)],
        extends=[v1(api, "Extend", receipt=out[1].receipt, lease_ms=600_000)],
        buries=[v1(api, "Bury", receipt=out[2].receipt, error="poison")],
    )
    stream.say(request(settle=settle_request))
    results, pushed = stream.settled(3, "the answer to three settlements")
    equal([result.code for result in results], [""] * 3, "the codes on the stream")
    equal([result.receipt for result in results], [message.receipt for message in out], "whom the answers are about")
    equal(results[2].dead_reason, "buried", "the last of them")
    pushed += stream.messages(2 - len(pushed), "what two settlements make room for")
    equal([message.id for message in pushed], ids[8:10], "what came after")

    # Nothing is pushed without credit: the answer to the settlement comes, and then the end, and no message.
    stream.say(request(credit=0))
    acks = [v1(api, "Ack", receipt=message.receipt) for message in [out[1], *pushed]]
    stream.say(request(settle=v1(api, "ConsumeSettle", acks=acks)))
    results, more = stream.settled(3, "the answer to the last acks")
    equal([result.code for result in results], [""] * 3, "the last acks")
    equal(list(more), [], "what is pushed without credit")
    stream.end()


def watch(api, done):
    """Events come as they happen, in order, and a reader that comes back goes on where it was."""
    watching = api.methods["WatchEvents"](v1(api, "WatchEventsRequest", queue=QUEUE, after=0), timeout=DEADLINE)
    seen = []
    # What happens close together is told together, each kind once: the last ack may be told before the first nack.
    missing = {"lease", "ack", "nack", "move_to_dlq"}
    for event in watching:
        equal(event.queue, QUEUE, "the queue of an event")
        assert not seen or event.offset > seen[-1].offset, "events came out of order"
        seen.append(event)
        missing.discard(event.type)
        if not missing and sum(one.count for one in seen if one.type == "ack") == done:
            break
    watching.cancel()
    kinds = [event.type for event in seen]
    equal(kinds[:2], ["queue", "enqueue"], "the first events")
    equal(seen[1].count, 13, "how many messages came in")

    later = api.methods["WatchEvents"](v1(api, "WatchEventsRequest", after=seen[1].offset), timeout=DEADLINE)
    equal(next(iter(later)), seen[2], "the event after the one that was read last")
    later.cancel()


def refusals(api):
    bad = v1(api, "CreateQueueRequest", name="no spaces, please")
    status = refusal(lambda: api.call("CreateQueue", bad), grpc.StatusCode.INVALID_ARGUMENT)
    [violation] = detail(status, error_details_pb2.BadRequest).field_violations
    equal(violation.field, "queue", "the field that is wrong")
    assert violation.description, "a violation that says nothing"
    info = detail(status, error_details_pb2.ErrorInfo)
    equal((info.reason, info.domain), ("INVALID_ARGUMENT", "redrive"), "the reason")

    missing = v1(api, "LeaseRequest", queue="nowhere")
    status = refusal(lambda: api.call("Lease", missing), grpc.StatusCode.NOT_FOUND)
    equal(detail(status, error_details_pb2.ErrorInfo).reason, "QUEUE_NOT_FOUND", "the reason")

    message = v1(api, "NewMessage", priority=10)
    request = v1(api, "EnqueueRequest", queue=QUEUE, messages=[message])
    status = refusal(lambda: api.call("Enqueue", request), grpc.StatusCode.INVALID_ARGUMENT)
    [violation] = detail(status, error_details_pb2.BadRequest).field_violations
    assert violation.field.endswith("priority"), f"the field that is wrong: {violation.field}"

    unstarted = Stream(api.methods["Consume"])
    unstarted.say(v1(api, "ConsumeRequest", credit=1))
    answer = unstarted.answers.get(timeout=DEADLINE)
    assert isinstance(answer, grpc.RpcError), f"a stream without a start was answered {answer}"
    equal(answer.code(), grpc.StatusCode.INVALID_ARGUMENT, "a stream without a start")


def bus(api):
    """The life of a topic, of a subscription and of an event, and a breaker."""
    topic = api.call("SetTopic", v1(api, "SetTopicRequest", pattern="foreign.*", retain_ms=60_000))
    equal((topic.dispatch, topic.retain_ms), ("independent", 60_000), "the topic")
    equal(api.call("GetTopic", v1(api, "GetTopicRequest", pattern="foreign.*")), topic, "the topic as it is read")
    equal(list(api.call("ListTopics", v1(api, "ListTopicsRequest")).topics), [topic], "all topics")

    wanted = v1(api, "HeaderValues", values=["eu", "us"])
    settings = v1(api, "SubscriptionSettings", pattern="foreign.*", filter={"region": wanted})
    target = v1(api, "NewTarget", kind="handler")
    made = api.call(
        "CreateSubscription", v1(api, "CreateSubscriptionRequest", id="python", settings=settings, target=target)
    ).subscription
    equal((made.queue, made.state, made.policy.max_attempts), ("bus.sub.python", "active", 4), "the subscription")
    listed = api.call("ListSubscriptions", v1(api, "ListSubscriptionsRequest")).subscriptions
    equal([one.id for one in listed], ["python"], "all subscriptions")

    events = [v1(api, "NewEvent", body=b"x", headers={"region": region}) for region in ["eu", "asia"]]
    results = api.call("Publish", v1(api, "PublishRequest", topic="foreign.made", events=events)).results
    equal([result.subscriptions for result in results], [1, 0], "who wants what")

    for verb, state in [("Pause", "paused"), ("Resume", "active"), ("Disable", "disabled"), ("Enable", "active")]:
        switched = api.call(f"{verb}Subscription", v1(api, f"{verb}SubscriptionRequest", id="python"))
        equal(switched.state, state, verb)
    settings = v1(api, "SubscriptionSettings", pattern="foreign.**", timeout_ms=1_000)
    api.call("UpdateSubscription", v1(api, "UpdateSubscriptionRequest", id="python", settings=settings))
    found = api.call("GetSubscription", v1(api, "GetSubscriptionRequest", id="python"))
    equal((found.settings.pattern, found.settings.timeout_ms), ("foreign.**", 1_000), "what was changed")
    rotate = v1(api, "RotateSecretRequest", id="python")
    status = refusal(lambda: api.call("RotateSecret", rotate), grpc.StatusCode.FAILED_PRECONDITION)
    equal(detail(status, error_details_pb2.ErrorInfo).reason, "WRONG_TARGET", "the reason")
    replay = api.call("ReplaySubscription", v1(api, "ReplaySubscriptionRequest", id="python", from_ms=0))
    assert replay.replay, "a replay without a name"

    for verb, state in [("Trip", "open"), ("Get", "open"), ("Reset", "closed")]:
        breaker = api.call(f"{verb}Breaker", v1(api, f"{verb}BreakerRequest", subscription="python"))
        equal((breaker.state, breaker.queue), (state, "bus.sub.python"), f"the breaker after {verb}")

    api.call("DeleteSubscription", v1(api, "DeleteSubscriptionRequest", id="python"))
    missing = v1(api, "GetSubscriptionRequest", id="python")
    status = refusal(lambda: api.call("GetSubscription", missing), grpc.StatusCode.NOT_FOUND)
    equal(detail(status, error_details_pb2.ErrorInfo).reason, "SUBSCRIPTION_NOT_FOUND", "the reason")
    api.call("DeleteTopic", v1(api, "DeleteTopicRequest", pattern="foreign.*"))


def http(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=DEADLINE) as answer:
        return json.load(answer)


def same_truth(api, address, expected):
    """HTTP and gRPC tell of the same queue."""
    stats = api.call("QueueStats", v1(api, "QueueStatsRequest", name=QUEUE))
    equal({state: getattr(stats, state) for state in expected}, expected, "the numbers by gRPC")
    by_http = http(address, f"/v1/queues/{QUEUE}/stats")
    equal(by_http["states"], expected, "the numbers by HTTP")
    totals = {name: by_http["totals"][name] for name in ["enqueue", "ack", "nack", "bury", "duplicates"]}
    equal(totals, {"enqueue": 13, "ack": 7, "nack": 1, "bury": 2, "duplicates": 1}, "the totals by HTTP")
    [delayed] = http(address, f"/v1/queues/{QUEUE}/messages?state=delayed")["messages"]
    equal((delayed["last_error"], delayed["checkpoint_base64"]), ("no luck", "aGFsZg=="), "what the nack said")


def main(address):
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=DEADLINE)
        database = ProtoReflectionDescriptorDatabase(channel)
        services = set(database.get_services())
        assert {SERVICE, "grpc.health.v1.Health"} <= services, f"reflection lists only {services}"
        pool = descriptor_pool.DescriptorPool(database)
        health(channel, pool)
        api = Api(channel, pool, SERVICE)
        queues(api)
        ids = enqueue(api)
        settlements(api, ids)
        consume(api, ids)
        watch(api, done=7)
        refusals(api)
        bus(api)
        same_truth(api, address, {"delayed": 1, "ready": 3, "leased": 0, "dead": 2, "done": 0})
    print(f"grpcio {grpc.__version__}: every verb, the stream, the events and the refusals by reflection alone")


if __name__ == "__main__":
    main(sys.argv[1])
