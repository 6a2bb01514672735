"""A client that does what it should while another does not, and what the server's memory is meanwhile."""

import http.client
import json
import statistics
import threading
import time

# What a server may keep after an attack: allocators and caches, but nothing that grows with it.
GROWTH_MAX_KIB = 32 * 1024
# How long the server may take to give back what the attack's connections needed while they were there.
SETTLE_SECONDS = 5.0
# How long the client is watched alone.
BASELINE_SECONDS = 1.0


class Healthy:
    """Enqueues one message after another on a connection of its own. Every one must be taken."""

    def __init__(self, address):
        self.address = address
        self.latencies = []
        self.problem = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def _run(self):
        try:
            connection = http.client.HTTPConnection(self.address, timeout=20)
            while not self.stopped.is_set():
                begun = time.monotonic()
                body = json.dumps({"body": "healthy"})
                connection.request("POST", "/v1/queues/healthy/messages", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                if answer.status != 201:
                    raise AssertionError(f"a healthy client was answered {answer.status}")
                self.latencies.append(time.monotonic() - begun)
        except Exception as problem:  # whatever it is, it is told by the thread that waits
            self.problem = problem

    def p99_ms(self):
        if self.problem is not None:
            raise AssertionError(f"a healthy client was disturbed: {self.problem!r}") from self.problem
        assert len(self.latencies) > 1, "a healthy client was not served at all"
        return statistics.quantiles(self.latencies, n=100)[98] * 1000


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


class Watch:
    """Attacks a server and looks at what becomes of it."""

    def __init__(self, address, pid):
        self.address, self.pid = address, pid
        # Twice: the first time, the server grows to the size at which it works.
        self._alone()
        self.baseline = self._alone()

    def _alone(self):
        with Healthy(self.address) as healthy:
            time.sleep(BASELINE_SECONDS)
        return healthy.p99_ms()

    def _growth(self, before):
        end = time.monotonic() + SETTLE_SECONDS
        while (growth := rss_kib(self.pid) - before) > GROWTH_MAX_KIB and time.monotonic() < end:
            time.sleep(0.1)
        return growth

    def survives(self, name, attack):
        """Runs an attack. Healthy clients go on, and memory stays."""
        before = rss_kib(self.pid)
        with Healthy(self.address) as healthy:
            did = attack()
            growth = self._growth(before)
        print(
            f"{name}: {did}; healthy p99 {healthy.p99_ms():.1f} ms (alone {self.baseline:.1f}) in "
            f"{len(healthy.latencies)} calls, memory {growth / 1024:+.1f} MiB",
            flush=True,
        )
        assert growth <= GROWTH_MAX_KIB, f"{name}: the server grew by {growth / 1024:.1f} MiB"
