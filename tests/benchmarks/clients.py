"""Bare clients over prepared requests: `python tests/benchmarks/clients.py openai|aiohttp BODIES URL IN_FLIGHT LIMIT`.

BODIES is JSON Lines with a request's body in each line. Nothing is split, checked, kept or written.
"""

import asyncio
import json
import sys
from itertools import islice
from pathlib import Path


async def ask_with_openai(bodies: list[str], url: str, in_flight: int) -> None:
    """The documented way: a typed call for each, as many at once as a semaphore lets through."""
    from openai import AsyncOpenAI  # noqa: PLC0415  # not in the other's start-up

    client = AsyncOpenAI(base_url=url, api_key="none")
    slots = asyncio.Semaphore(in_flight)

    async def ask(body: str) -> None:
        async with slots:
            completion = await client.chat.completions.create(**json.loads(body))
        json.loads(completion.choices[0].message.content)

    await asyncio.gather(*map(ask, bodies))


async def ask_with_aiohttp(bodies: list[str], url: str, in_flight: int) -> None:
    """The floor of HTTP in Python: bytes out, bytes in."""
    import aiohttp  # noqa: PLC0415  # not in the other's start-up

    slots = asyncio.Semaphore(in_flight)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(body: str) -> None:
            async with slots, session.post(f"{url}/chat/completions", data=body.encode()) as response:
                await response.read()

        await asyncio.gather(*map(ask, bodies))


def main() -> None:
    """Ask."""
    name, path, url, in_flight, limit = sys.argv[1:]
    with Path(path).open(encoding="utf-8") as stream:
        bodies = list(islice(stream, int(limit)))
    client = {"openai": ask_with_openai, "aiohttp": ask_with_aiohttp}[name]
    asyncio.run(client(bodies, url, int(in_flight)))


if __name__ == "__main__":
    main()
