"""The explorer's server: on 127.0.0.1 alone, to whoever knows a token that is new at every start."""

import secrets
import socket
import webbrowser
from collections.abc import Callable

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import InputError, need_extra
from dicot.explorer.page import Assets
from dicot.explorer.workspace import ExplorerWorkspace

try:
    import uvicorn
except ImportError as error:
    raise need_extra("fastapi and uvicorn", "explore", "The explorer") from error

from dicot.explorer.routes import create_app

ADDRESS = "127.0.0.1"
PATIENCE = 3  # seconds that running requests have when the server ends


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this port of 127.0.0.1, 0 for a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"Port {port} cannot be used: {error}. Choose another, or --port 0 for a free one.") from error
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
    port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
    app = create_app(workspace, token, port, assets)
    address = f"http://{ADDRESS}:{port}/?token={token}"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=PATIENCE, ws="none"
    )  # an access log would hold the token
    on_ready(address)
    if open_browser:
        webbrowser.open(address)  # it listens already: a browser that is quick waits
    try:
        with threadpool_limits(1):  # a browser without a GPU draws on the same cores
            uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has ended by itself and hands the signal on
        pass
    finally:
        listener.close()
