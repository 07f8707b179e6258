"""What every request must pass: its Host, the token, the size of its body; and the headers of every answer."""

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final

LARGEST_BODY = 2**20  # bytes
TOKEN = "X-Dicot-Token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the first address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@final
class Guard:
    """An ASGI application around another one, which sees only requests that may be answered.

    Another site in the same browser can send requests here under a name that it owns (DNS rebinding): the Host tells.
    It can send requests blindly: without the token nothing under /api is answered.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"The explorer answers HTTP alone; got {scope['type']}.")
        is_api = scope["path"] == "/api" or scope["path"].startswith("/api/")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {**HEADERS, "Cache-Control": "no-store" if is_api else "no-cache"}
                headers = [(name.lower().encode(), value.encode()) for name, value in own.items()]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            await _refuse(answer, 400, "This server answers only under its own address; the Host is another one.")
            return
        tokens = [value for name, value in scope["headers"] if name == TOKEN.lower().encode()]
        if is_api and not (len(tokens) == 1 and hmac.compare_digest(tokens[0], self._token)):
            await _refuse(answer, 403, "The token is missing or wrong. Open the address that `dicot explore` printed.")
            return
        body = await _body(receive)
        if body is None:
            await _refuse(answer, 413, f"The request is larger than {LARGEST_BODY} bytes. Choose fewer windows.")
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, replay, answer)


async def _body(receive: Receive) -> bytes | None:
    """Read the body, whatever length it announces; None where it is too large, and no more than that is read."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the browser is gone
            return b"".join(chunks)
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _refuse(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": sentence}).encode()})
