"""Thousands of slow clients at the same time: heads, bodies and reads that take forever, by slowhttptest.

Usage: python slow.py HOST:PORT PID
"""

import re
import subprocess
import sys

from healthy import Watch

CONNECTIONS = 1_000
COMMON = ["slowhttptest", "-c", CONNECTIONS, "-r", CONNECTIONS, "-p", 3, "-i", 2, "-v", 1]
# Heads and bodies end when the last connection was closed, however long a busy machine takes to open them all; only
# where the server waits for ever does the time limit count. Slow reads have no end of their own.
ATTACKS = {
    "slow heads": ["-H", "-t", "GET", "-x", 24, "-l", 120],
    "slow bodies": ["-B", "-t", "POST", "-s", 8_192, "-x", 10, "-f", "application/json", "-l", 120],
    "slow reads": ["-X", "-w", 1, "-y", 10, "-n", 5, "-z", 8, "-k", 3, "-l", 16],
}
# What the tool says when the server has closed every connection before its time limit.
ALL_CLOSED = "No open connections left"
PATHS = {"slow bodies": "/v1/queues/slow/messages", "slow reads": "/openapi.json"}


def start(address, name):
    url = f"http://{address}{PATHS.get(name, '/')}"
    command = [str(word) for word in [*COMMON, *ATTACKS[name], "-u", url]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def figures(output):
    """The most of each count that was printed, and how it ended. Counts are printed every few seconds, and not at the end."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    most = {name: max(map(int, re.findall(rf"{name}:\s+(\d+)", plain))) for name in ("connected", "error", "closed")}
    return most | {"ended": re.search(r"Exit status:\s+(.*)", plain).group(1).strip()}


def all_at_once(address):
    """Answers what became of them; those who are too slow must have been closed."""
    running = {name: start(address, name) for name in ATTACKS}
    ended = {name: figures(process.communicate()[0]) for name, process in running.items()}
    for name in ("slow heads", "slow bodies"):
        was = ended[name]
        assert max(was["connected"], was["closed"]) >= CONNECTIONS // 2, f"{name}: too few were ever connected: {was}"
        assert was["ended"] == ALL_CLOSED, f"{name}: some were left open: {was}"
    return ", ".join(f"{name} {counts}" for name, counts in ended.items())


def main():
    address, pid = sys.argv[1:]
    Watch(address, pid).survives("slow clients", lambda: all_at_once(address))


if __name__ == "__main__":
    main()
