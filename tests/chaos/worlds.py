"""Where the processes live: a database, a storage, a disk with little room, and proxies in between."""

import hashlib
import hmac
import http.client
import os
import re
import secrets
import subprocess
import time

from servers import ObjectStore, Postgres, Proxies, keeper

DISK_MEGABYTES = 1024
S3_KEY, S3_SECRET, REGION = "landfall-test", "landfall-test-secret", "us-east-1"
BUCKET = "chaos"

# Short times, so that a run sees in seconds what otherwise takes minutes.
QUICK = {
    "HEARTBEAT_EXPIRY_MS": "2000", "POLL_INTERVAL_MS": "100", "CIRCUIT_TIMEOUT_MS": "1000", "RETRY_BASE_DELAY_MS": "500",
    "RETRY_LATE_BASE_DELAY_MS": "500", "UPLOAD_STALL_MS": "5000", "SHUTDOWN_GRACE_MS": "3000", "MIN_FREE_DISK": "8MB",
    "DATABASE_CONNECTIONS": "6", "WRITES_PER_USER": "1000000/1m", "REGISTRATIONS_PER_TENANT": "1000000/1m",
    "MAX_CONNECTIONS_PER_ADDRESS": "4000", "LOG_LEVEL": "warn", "LOG_FORMAT": "json", "EXTRACT_CONCURRENCY": "4",
    "STUCK_RECOVERY_SCHEDULE": "*/10 * * * * *",
    # A file that is registered under a clock 25 minutes behind and swept under one 25 minutes ahead seems 50 minutes older than it is.
    "UPLOAD_CONFIRM_WINDOW_MS": "86400000",
}

NAMES = ("sqlite", "postgres", "objects")


class World:
    """`sqlite`: SQLite and a folder. `postgres`: PostgreSQL and a folder. `objects`: PostgreSQL and SeaweedFS."""

    def __init__(self, name, folder, processes):
        self.name, self.folder = name, folder
        folder.mkdir()
        self.secret = secrets.token_hex(32)
        self.disk = Disk(folder / "disk")
        self.postgres = Postgres() if name != "sqlite" else None
        self.store = ObjectStore(folder) if name == "objects" else None
        self.ports = keeper.free_ports(processes)
        targets = {f"client{number}": port for number, port in enumerate(self.ports)}
        for number in range(processes):
            if self.postgres:
                targets[f"database{number}"] = self.postgres.port
            if self.store:
                targets[f"store{number}"] = self.store.port
        self.proxies = Proxies(targets)
        if self.store:
            create_bucket(self.store.port)

    def settings(self, number):
        found = QUICK | {
            "DATA_DIR": str(self.folder / "data"), "JWT_SECRET": self.secret, "SECRET_KEY": self.secret,
            "DATABASE_URL": f"sqlite://{self.disk.folder}/landfall.db", "STORAGE_URL": f"file://{self.disk.folder}/blobs",
        }
        if self.postgres:
            found["DATABASE_URL"] = self.postgres.url_by(self.proxies.ports[f"database{number}"])
        if self.store:
            address = f"http://127.0.0.1:{self.proxies.ports[f'store{number}']}"
            found |= {
                "STORAGE_URL": f"s3://{BUCKET}", "AWS_ENDPOINT_URL": address, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": S3_KEY, "AWS_SECRET_ACCESS_KEY": S3_SECRET,
            }
        return found

    def addresses(self):
        """Where clients reach the processes, in the order of the processes."""
        return [f"127.0.0.1:{self.proxies.ports[f'client{number}']}" for number in range(len(self.ports))]

    def blobs(self):
        """The SHA-256 of every finished blob, read from the storage and not through Landfall."""
        if self.store:
            return [hashlib.sha256(s3("GET", self.store.port, f"/{BUCKET}/{key}")).hexdigest() for key in self.keys()]
        root = self.disk.folder / "blobs" / "blobs"
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in root.rglob("*") if path.is_file()]

    def keys(self):
        found, after = [], ""
        while True:
            query = f"list-type=2&prefix=blobs%2F&start-after={after.replace('/', '%2F')}"
            query = "&".join(sorted(query.split("&")))
            page = re.findall(r"<Key>([^<]+)</Key>", s3("GET", self.store.port, f"/{BUCKET}", query).decode())
            if not page:
                return found
            found += page
            after = page[-1]

    def remove(self):
        for part in (self.proxies, self.store, self.postgres, self.disk):
            if part:
                part.remove()


class Disk:
    """A file system in memory with little room. Where mounting is not allowed it is a plain folder, which cannot be filled."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m,mode=700", "landfall-chaos", folder]
        self.can_fill = subprocess.run(mount, capture_output=True).returncode == 0
        self.filler = folder / "filler"

    def fill(self, leave):
        """Takes all room but so many bytes."""
        disk = os.statvfs(self.folder)
        size = disk.f_bavail * disk.f_frsize - leave
        with open(self.filler, "wb") as filler:
            try:
                os.posix_fallocate(filler.fileno(), 0, max(size, 1))
            except OSError:
                pass  # A process took the last of it, and that is what was wanted.

    def free(self):
        self.filler.unlink(missing_ok=True)

    def remove(self):
        if self.can_fill:
            subprocess.run(["umount", "--lazy", self.folder], check=False)


def create_bucket(port):
    s3("PUT", port, f"/{BUCKET}")


def s3(method, port, path, query=""):
    """A signed request to the store, so that nothing else has to be installed."""
    host, now = f"127.0.0.1:{port}", time.gmtime()
    date, at = time.strftime("%Y%m%d", now), time.strftime("%Y%m%dT%H%M%SZ", now)
    empty, scope = hashlib.sha256(b"").hexdigest(), f"{date}/{REGION}/s3/aws4_request"
    names = "host;x-amz-content-sha256;x-amz-date"
    request = f"{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{at}\n\n{names}\n{empty}"
    to_sign = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{S3_SECRET}".encode()
    for part in (date, REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    headers = {
        "x-amz-date": at, "x-amz-content-sha256": empty,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={S3_KEY}/{scope}, SignedHeaders={names}, Signature={signature}",
    }
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request(method, f"{path}?{query}" if query else path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"the store answered {response.status} to {method} {path}: {content[:300]}")
    return content
