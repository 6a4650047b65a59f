"""llama.cpp's own server, with a model of random weights."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest

_MISSING = [name for name in ("xllamacpp", "gguf") if find_spec(name) is None]
MARKS = [
    pytest.mark.llamacpp,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)} (pip install -e '.[llamacpp,protocol]')"
    ),
]
KEY = "sk-of-the-test"
_LIKED = {"]": 2.0, "}": 1.5, "[": 1.8, "{": 1.8, ":": 1.8, '"': 2.5}
"""Bytes that the model likes: lists and texts come to an end, and there is little white space."""
_SERVE = """
import json, sys, xllamacpp
settings = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = settings.pop("path")
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
for name, value in settings.items():
    setattr(params, name, value)
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def write_model(path: Path, *, seed: int = 0, context: int = 8192) -> Path:
    """A llama of one layer whose vocabulary are the bytes; what it says is little and noise. Some 150 kB."""
    import gguf  # noqa: PLC0415  # an extra
    import numpy as np  # noqa: PLC0415  # arrives with gguf

    width, inner = 64, 128
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")
    random = np.random.default_rng(seed)
    matrices = {
        "token_embd": (len(tokens), width),
        "output": (len(tokens), width),
        **{f"blk.0.attn_{name}": (width, width) for name in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{name}": (inner, width) for name in ("gate", "up")},
        "blk.0.ffn_down": (width, inner),
    }
    for name, shape in matrices.items():
        matrix = random.standard_normal(shape) / 10
        if name in ("blk.0.attn_output", "blk.0.ffn_down"):
            matrix /= 20  # what the layer adds is little beside the tokens
        if name == "token_embd":
            matrix[:, 0] = 1  # the same for all tokens, so that the first column of `output` is a bias
        if name == "output":
            matrix[:, 0] = [0.0] * 3 + [_LIKED.get(chr(byte), 0.0) for byte in range(256)]
        writer.add_tensor(f"{name}.weight", matrix.astype(np.float16))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class LlamaServer:
    """The server in a process of its own, as somebody else would run it; it asks for KEY."""

    def __init__(self, model: Path, **settings: Any) -> None:  # noqa: ANN401  # llama.cpp's parameters
        given = {"path": str(model), "n_ctx": 32768, "n_parallel": 4, "api_keys": [KEY], "endpoint_metrics": True}
        began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, json.dumps({"verbosity": 0, "ui": False, **given, **settings})],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        )  # fmt: skip
        assert self._process.stdout
        self.address = self._process.stdout.readline().decode().strip()
        self.seconds = time.monotonic() - began
        """From the start of the process until it listened."""
        assert self.address

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def metrics(self) -> dict[str, float]:
        """Its counters, by their names without `llamacpp:`."""
        request = urllib.request.Request(f"{self.address}/metrics", headers={"Authorization": f"Bearer {KEY}"})  # noqa: S310
        with urllib.request.urlopen(request) as response:  # noqa: S310  # its own address
            lines = response.read().decode().splitlines()
        pairs = (line.removeprefix("llamacpp:").split() for line in lines if line.startswith("llamacpp:"))
        return {name: float(value) for name, value in pairs}

    def kill(self) -> None:
        """End it as want of memory would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()


def start_run(*arguments: str | Path) -> "subprocess.Popen[bytes]":
    """The command at work, leader of a process group of its own."""
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, process_group=0)


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Return once it holds; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def rows_of(folder: Path) -> int:
    """Rows that a run has written so far."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("results.jsonl*"))
