"""A bucket with any number of objects that exist only in its listings, for measuring sweeps.

A real store takes an hour to be filled with a million objects. What a sweep needs of it is small: listings in pages, and a few objects
that the server itself writes.
"""

import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OLD = "2020-01-01T00:00:00.000Z"


class Bucket:
    """Listens at `address` until it is closed. Its first objects are of `count` files that no database knows."""

    def __init__(self, count):
        self.count, self.objects, self.pages = count, {}, 0
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                bucket.get(self)

            do_HEAD = do_GET

            def do_PUT(self):
                bucket.put(self)

            def do_DELETE(self):
                self.path_key() and bucket.objects.pop(self.path_key(), None)
                self.reply(204)

            def path_key(self):
                return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/").partition("/")[2]

            def reply(self, status, body=b"", headers=None):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()

    def key(self, number):
        return f"blobs/{number >> 10:06x}/{number:032x}"

    def put(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        key = handler.path_key()
        if handler.headers.get("If-None-Match") == "*" and key in self.objects:
            return handler.reply(412)
        self.objects[key] = body
        handler.reply(200, headers={"ETag": f'"{len(body)}-{hash(body) & 0xFFFFFFFF:08x}"'})

    def get(self, handler):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query, keep_blank_values=True))
        if "uploads" in query:
            return handler.reply(200, b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")
        if "list-type" in query:
            return handler.reply(200, self.listing(query).encode(), {"Content-Type": "application/xml"})
        body = self.objects.get(handler.path_key())
        if body is None:
            return handler.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        headers = {"ETag": f'"{len(body)}-{hash(body) & 0xFFFFFFFF:08x}"', "Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT"}
        handler.reply(200, body, headers)

    def listing(self, query):
        prefix, limit = query.get("prefix", ""), int(query.get("max-keys", 1000))
        begin = int(query.get("continuation-token", 0))
        keys, token = [], ""
        if "blobs/".startswith(prefix) or prefix.startswith("blobs/"):
            self.pages += 1
            end = min(begin + limit, self.count)
            keys = [self.key(number) for number in range(begin, end)]
            if end < self.count:
                token = f"<NextContinuationToken>{end}</NextContinuationToken>"
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{OLD}</LastModified><ETag>&quot;e&quot;</ETag><Size>1000</Size></Contents>"
            for key in keys
        )
        more = "true" if token else "false"
        return f"<ListBucketResult><KeyCount>{len(keys)}</KeyCount><IsTruncated>{more}</IsTruncated>{token}{entries}</ListBucketResult>"
