"""A PostgreSQL server for tests: in a temporary folder, on a socket in it, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlalchemy as sa


def programs() -> Path | None:
    """The folder of the server's programs; Debian keeps it off the search path."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "postgres").exists()), None)


def missing() -> str:
    """Why there can be no server here; "" if there can."""
    if programs() is None:
        return "PostgreSQL's server is not installed (apt-get install postgresql)"
    if os.geteuid() == 0 and not any(account.pw_name == "postgres" for account in pwd.getpwall()):
        return "PostgreSQL's server does not run as root, and there is no user postgres"
    if find_spec("psycopg") is None:
        return 'psycopg is not installed (pip install "diffbbo[postgres]")'
    return ""


class Server:
    """A running server. `kill` is what a crash does to it; `start` brings it back with what it had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The server refuses to run as root.
        account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self._as: dict[str, Any] = {"cwd": folder}
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._as |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        found = programs()
        assert found is not None
        self._programs = found
        init = [found / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL, **self._as)
        self.start()

    def start(self) -> None:
        # What a killed process had written is with the system already; only a power cut would need fsync.
        settings = [f"unix_socket_directories={self.folder}", "listen_addresses=", "max_connections=20", "fsync=off"]
        options = [part for setting in settings for part in ("-c", setting)]
        with (self.folder / "log").open("a") as log:
            command = [self._programs / "postgres", "-D", self.folder / "data", *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._as)
        while True:  # it may have to replay its log first
            try:
                return self.execute("SELECT 1")
            except sa.exc.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, at whatever it is doing. Its children notice and end by themselves."""
        self.process.kill()
        self.process.wait()

    def stop(self, how: int = signal.SIGINT) -> None:
        """Cut every connection and end in order; with SIGQUIT without tidying up."""
        self.process.send_signal(how)
        self.process.wait()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://tester@/{database}?host={self.folder}"

    def execute(self, statement: str) -> None:
        """A statement outside of every storage and transaction."""
        engine = sa.create_engine(self.url(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def database(self, name: str) -> str:
        """The URL of a new and empty database."""
        self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)


@contextmanager
def server() -> Iterator[Server]:
    """A server while the block runs. Its folder is short, as the path of a socket must be."""
    with tempfile.TemporaryDirectory(prefix="diffbbo-pg-") as folder:
        running = Server(Path(folder))
        try:
            yield running
        finally:
            running.stop(signal.SIGQUIT)
