#!/usr/bin/env python3
"""An extraction gateway for Landfall: it makes Markdown of CSV tables. docs/gateway.md has the contract.

Start it with `python3 examples/gateway.py 8080`, and Landfall with EXTRACT_GATEWAY_URL=http://127.0.0.1:8080/.
"""
import csv
import io
import json
import sys
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Gateway(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n"
        form = BytesParser(policy=HTTP).parsebytes(head + body)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        mapping = json.loads(parts["mapping"].get_payload(decode=True)) if "mapping" in parts else {}
        try:
            text = parts["file"].get_payload(decode=True).decode("utf-8")
        except UnicodeDecodeError:
            # A 4xx: another attempt would end in the same way. Its owner reads the message.
            return self.answer(422, "application/json", json.dumps({"message": "The table is not UTF-8"}))
        rows = list(csv.reader(io.StringIO(text), delimiter=mapping.get("delimiter", ",")))
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]) if rows else "")
        self.answer(200, "text/markdown; charset=utf-8", "\n".join(lines))

    def answer(self, status, content_type, text):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Gateway)
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
