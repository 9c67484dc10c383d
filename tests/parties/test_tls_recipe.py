"""The recipe for certificates in docs/parties.md, run as it stands there."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "parties.md"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the recipe's openssl commands make."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    block = PAGE.read_text().split("## TLS and node keys")[1].split("```sh\n")[1].split("```")[0]
    commands = block.split("flower-superlink")[0].replace("rsa:4096", "rsa:2048")
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(["sh", "-e", "-c", commands], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("dialled", ["link.example.org", "127.0.0.1"])
def test_the_certificate_is_valid_for_parties_and_for_the_links_own_process(recipe: Path, dialled: str) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(recipe / "link.crt", recipe / "link.key")
    client = ssl.create_default_context(cafile=str(recipe / "ca.crt"))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            one, _ = listening.accept()
            with server.wrap_socket(one, server_side=True) as safe:
                safe.sendall(b"hello")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with (
            socket.create_connection(listening.getsockname(), timeout=10) as plain,
            client.wrap_socket(plain, server_hostname=dialled) as safe,
        ):
            assert safe.recv(5) == b"hello"
        thread.join(10)
