"""A deployment on one machine: a SuperLink and one SuperNode a party, as processes of their own, with TLS and keys."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sfumato.parties.flower_processes import environment, free_port, program, running, wait_for_port


class Deployment:
    """What is running, and how to submit an app to it."""

    def __init__(self, folder: Path, environ: dict[str, str], nodes: dict[str, subprocess.Popen[bytes]]) -> None:
        self.folder = folder
        self.environ = environ
        self.nodes = nodes

    def submit(self, app: Path) -> subprocess.Popen[bytes]:
        """``flwr run``, which ends with the run."""
        command = [program("flwr"), "run", str(app), "trial", "--stream"]
        log = (self.folder / "run.log").open("ab")
        return subprocess.Popen(command, env=self.environ, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        """SIGKILL for a party's node and all it started."""
        os.killpg(self.nodes[name].pid, signal.SIGKILL)


@contextmanager
def deployed(folder: Path, parties: Sequence[Path]) -> Iterator[Deployment]:
    """One SuperLink and a SuperNode for each folder; all of them are gone afterwards."""
    ca, certificate, key = certificates(folder)
    port = free_port()
    (folder / "config.toml").write_text(
        f'[superlink.trial]\naddress = "127.0.0.1:{port}"\nroot-certificates = "{ca}"\n'
    )
    environ = environment(folder, OMP_NUM_THREADS="1")
    link = [program("flower-superlink"), "--host", "127.0.0.1", "--port", str(port), "--enable-supernode-auth"]
    link += ["--ssl-ca-certfile", str(ca), "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    with ExitStack() as stack:
        child = stack.enter_context(running(link, environ, folder / "superlink.log", grace=0))
        wait_for_port(port, child, folder / "superlink.log")
        keys = {party.name: node_key(folder / party.name) for party in parties}
        register = [program("flwr"), "supernode", "register"]
        asked = [subprocess.Popen([*register, f"{one}.pub", "trial"], env=environ, stdout=-3) for one in keys.values()]
        assert [one.wait(60) for one in asked] == [0] * len(parties)
        nodes = {}
        for party in parties:
            command = [program("flower-supernode"), "--superlink", f"127.0.0.1:{port}", "--root-certificates", str(ca)]
            command += ["--auth-supernode-private-key", str(keys[party.name]), "--port", str(free_port())]
            command += ["--node-config", f'name="{party.name}" data="{party}"']
            log = folder / f"{party.name}.log"
            nodes[party.name] = stack.enter_context(running(command, environ, log, grace=0))
        yield Deployment(folder, environ, nodes)


def stranger(folder: Path, deployment: Deployment, seconds: float) -> str:
    """What a SuperNode with a key that nobody registered gets to hear."""
    address = next(line for line in (folder / "config.toml").read_text().splitlines() if "address" in line)
    key = node_key(folder / "stranger")
    command = [program("flower-supernode"), "--superlink", address.split('"')[1], "--root-certificates"]
    command += [str(folder / "ca.crt"), "--auth-supernode-private-key", str(key), "--port", str(free_port())]
    log = folder / "stranger.log"
    with running(command, deployment.environ, log, grace=0) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            return "still there"
    return log.read_text()


def node_key(path: Path) -> Path:
    """A key pair for one node: ``path`` and ``path.pub``."""
    key = ec.generate_private_key(ec.SECP384R1())
    kinds = serialization.Encoding, serialization.PublicFormat, serialization.PrivateFormat
    encoding, public, private = kinds
    path.write_bytes(key.private_bytes(encoding.PEM, private.OpenSSH, serialization.NoEncryption()))
    path.with_name(f"{path.name}.pub").write_bytes(key.public_key().public_bytes(encoding.OpenSSH, public.OpenSSH))
    return path


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A throw-away authority, and a certificate of 127.0.0.1 that it signed, with its key."""
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trial authority")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    may = dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"), False)
    may |= {"key_agreement": False, "encipher_only": False, "decipher_only": False}
    root = x509.BasicConstraints(ca=True, path_length=None), x509.KeyUsage(key_cert_sign=True, crl_sign=True, **may)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    ca = _signed(issuer, authority.public_key(), issuer, authority, *root)
    own = _signed(subject, server.public_key(), issuer, authority, names, by)
    plain = serialization.NoEncryption()
    files = {
        "ca.crt": ca.public_bytes(serialization.Encoding.PEM),
        "link.crt": own.public_bytes(serialization.Encoding.PEM),
        "link.key": server.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / "ca.crt", folder / "link.crt", folder / "link.key"


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
    for one in (x509.SubjectKeyIdentifier.from_public_key(key), *extensions):
        builder = builder.add_extension(one, critical=isinstance(one, x509.BasicConstraints | x509.KeyUsage))
    return builder.not_valid_after(now + timedelta(days=1)).sign(by, hashes.SHA256())
