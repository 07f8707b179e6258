"""What stands before the explorer's application: only requests that may be answered come through."""

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final

LARGEST_BODY = 2**20  # bytes
TOKEN = b"x-dicot-token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the first address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@final
class Guard:
    """An ASGI application around another one, which sees only requests that may be answered.

    Another site in the same browser can send requests here under a name that it owns (DNS rebinding): the Host tells.
    It can send requests blindly: without the token nothing under /api is answered.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"The explorer answers HTTP alone; got {scope['type']}.")

        answer = _with_headers(send, is_api=_is_api(scope))
        if not self._has_own_host(scope):
            await _refuse(answer, 400, "This server answers only under its own address; the Host is another one.")
            return
        if _is_api(scope) and not self._has_token(scope):
            await _refuse(answer, 403, "The token is missing or wrong. Open the address that `dicot explore` printed.")
            return
        body = await _read_body(receive)
        if len(body) > LARGEST_BODY:
            await _refuse(answer, 413, f"The request is larger than {LARGEST_BODY} bytes. Choose fewer windows.")
            return
        await self.app(scope, _replay(body, receive), answer)

    def _has_own_host(self, scope: Scope) -> bool:
        hosts = _header(scope, b"host")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts

    def _has_token(self, scope: Scope) -> bool:
        tokens = _header(scope, TOKEN)
        return len(tokens) == 1 and hmac.compare_digest(tokens[0], self._token)


def _is_api(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == "/api" or path.startswith("/api/")


def _header(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _with_headers(send: Send, is_api: bool) -> Send:
    """Return what sends an answer with the headers that every answer has."""
    added = {**HEADERS, "Cache-Control": "no-store" if is_api else "no-cache"}
    encoded = [(name.lower().encode(), value.encode()) for name, value in added.items()]

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *encoded]}
        await send(message)

    return answer


async def _refuse(answer: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await answer({"type": "http.response.start", "status": status, "headers": headers})
    await answer({"type": "http.response.body", "body": json.dumps({"detail": sentence}).encode()})


async def _read_body(receive: Receive) -> bytes:
    """Read a request, but not much more than is allowed, whatever length it announces."""
    body = b""
    has_more = True
    while has_more and len(body) <= LARGEST_BODY:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)  # not where the browser is gone
    return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives the application a body that has been read already, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
