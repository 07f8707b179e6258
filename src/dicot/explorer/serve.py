"""The explorer's server: on 127.0.0.1 alone, with a token that is new at every start."""

import secrets
import socket
import webbrowser
from collections.abc import Callable

from dicot.core.errors import InputError, need_extra
from dicot.explorer.app import create_app
from dicot.explorer.assets import Assets
from dicot.explorer.workspace import ExplorerWorkspace

ADDRESS = "127.0.0.1"
PATIENCE = 3  # seconds that running requests have when the server ends


def check_installed() -> None:
    """Say what to install before any work is done."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise need_extra("fastapi and uvicorn", "explore", "The explorer") from error


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this port of 127.0.0.1, 0 for a free one."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be a number from 0 to 65535; got {port}.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(
            f"Port {port} cannot be used: {error.strerror or error}. Choose another by --port, or 0 for a free one."
        ) from error
    return listener


def serve(
    workspace: ExplorerWorkspace,
    listener: socket.socket,
    assets: Assets,
    *,
    on_ready: Callable[[str], None],
    open_browser: bool = True,
) -> None:
    """Serve a workspace until Ctrl-C; `on_ready` is told the address, which holds the token."""
    import uvicorn

    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = create_app(workspace, token, port, assets)
    address = f"http://{ADDRESS}:{port}/?token={token}"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=PATIENCE, ws="none"
    )  # an access log would hold the token
    on_ready(address)
    if open_browser:
        webbrowser.open(address)  # it listens already: a browser that is quick waits
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has ended by itself and hands the signal on
        pass
    finally:
        listener.close()
