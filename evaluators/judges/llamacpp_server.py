"""A program of its own: llama.cpp's server for one model file, alive as long as the process that started it.

It reads its settings as one line of JSON from standard input, which then stays open and is the thread it hangs on.
It writes `ready` to standard output once it listens. The extension holds Python's lock while it loads a model and
cannot give up half-way, which is why it does not run in the process of the run.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until standard input ends."""
    if sys.platform == "linux":  # while a model is loading nobody reads standard input
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    settings = json.loads(sys.stdin.buffer.readline() or b"{}")
    if settings.get("parent") != os.getppid():
        return
    told = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no message of ours
    import xllamacpp  # noqa: PLC0415  # 100 MB of code, and it may fail: where its message is read

    server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), settings))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)  # from here on it would be told of records
    os.write(told, b"ready\n")
    sys.stdin.buffer.read()
    del server
    os._exit(0)


def _parameters(params: Any, settings: dict[str, Any]) -> Any:  # noqa: ANN401  # the package has no types
    """llama.cpp's parameters; n_ctx is the room of one request, while llama.cpp's is that of all slots."""
    params.model.path = settings["path"]
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.reuse_port = True  # the port is held for us until we listen
    params.api_keys = [settings["api_key"]]
    params.n_parallel = settings["n_parallel"]
    params.n_ctx = settings["n_ctx"] * settings["n_parallel"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["n_threads"]
    params.n_threads_http = settings["n_parallel"] + 2
    if settings["n_gpu_layers"] is not None:
        params.n_gpu_layers = settings["n_gpu_layers"]
    params.cache_ram_mib = 0  # 8 GB by default; what requests have in common stays in the slots
    params.ui = params.endpoint_slots = False
    params.verbosity = 1
    return params


if __name__ == "__main__":
    main()
