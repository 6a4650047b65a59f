"""Runs that are killed again and again at random moments."""

import random
import signal
import subprocess
import time
from dataclasses import dataclass, field

from servers.loopback import LoopbackServer


@dataclass(kw_only=True)
class Told:
    """What came of the processes."""

    killed: int = 0
    stopped: list[int] = field(default_factory=list)
    """Exit codes of those that were asked to end."""
    errors: bytes = b""
    """What was written by those that have a traceback."""


def kill_often(  # a scenario has that many sides
    server: LoopbackServer, command: list[str], *, kills: int, stops: int, requests: int, seed: int = 7
) -> Told:
    """Start the command, kill or stop it, and again; then let it run to its end.

    The moments are spread over as many `requests` as there are to send; one in five comes while the command starts.
    """
    chance = random.Random(seed)
    signals = [signal.SIGKILL] * kills + [signal.SIGTERM] * stops
    chance.shuffle(signals)
    told = Told()
    for number, what in enumerate(signals, start=1):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            if what is signal.SIGKILL and chance.random() < 0.2:
                time.sleep(chance.uniform(0, 0.6))
            else:
                _wait_for(server, process, requests * number // (len(signals) + 1))
                time.sleep(chance.uniform(0, 0.02))
            process.send_signal(what)
            _, said = process.communicate(timeout=60)
        told.killed += process.returncode == -signal.SIGKILL
        if what is signal.SIGTERM:
            told.stopped.append(process.returncode)
        told.errors += said if b"Traceback" in said else b""
    done = subprocess.run(command, capture_output=True, check=False)
    told.errors += done.stderr if done.returncode else b""
    return told


def _wait_for(server: LoopbackServer, process: "subprocess.Popen[bytes]", seen: int) -> None:
    """Until so many requests have come, and one from this process in any case."""
    least = max(seen, len(server.seen) + 1)
    while len(server.seen) < least and process.poll() is None:
        time.sleep(0.0005)
