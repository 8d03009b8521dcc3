"""Requests to any of the processes, as an honest client sends them: again and again until there is an answer."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse
from dataclasses import dataclass

TIMEOUT = 8
PAUSE = 0.15
# Answers after which the same request may succeed.
BUSY = (408, 423, 429)
AGAIN = ("UPLOAD_IN_PROGRESS", "UPLOAD_BROKEN", "BODY_BROKEN", "UPLOAD_CHANGED")


class Lost(Exception):
    """There was no answer, and it is unknown whether the request was carried out."""


class GivenUp(Exception):
    """The run is over, and the request still has no answer."""


@dataclass
class Answer:
    status: int
    headers: dict
    content: bytes

    @property
    def json(self):
        return json.loads(self.content) if self.content else {}

    @property
    def code(self):
        try:
            return self.json["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return ""

    @property
    def is_good(self):
        return self.status < 300

    def is_temporary(self):
        return self.status >= 500 or self.status in BUSY or self.code in AGAIN

    def __str__(self):
        return f"{self.status} {self.code}".strip()


def token(secret, user, tenant, role=None):
    def encoded(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    claims = {"sub": user, "tenant": tenant, "exp": int(time.time()) + 7 * 86_400} | ({"role": role} if role else {})
    signed = encoded({"alg": "HS256", "typ": "JWT"}) + b"." + encoded(claims)
    mac = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return (signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


def request(address, method, path, body=None, headers=None, timeout=TIMEOUT):
    """One request, without a second try."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())
    except (OSError, http.client.HTTPException) as error:
        raise Lost(str(error)) from error
    finally:
        connection.close()


class Session:
    """One user at one of the clients. `is_over` is set when a client has waited long enough."""

    def __init__(self, user, addresses, random, history, is_over):
        self.user, self.addresses, self.random = user, addresses, random
        self.history, self.is_over = history, is_over

    def headers(self, more=None):
        return {"Authorization": f"Bearer {self.user.token}"} | (more or {})

    def try_once(self, method, path, body=None, headers=None, address=None):
        """Sends to a process that is drawn, unless an address is given. A body that is not bytes is sent as JSON."""
        sent = self.headers(headers)
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        answer = request(address or self.random.choice(self.addresses), method, path, body, sent)
        self.history.count("requests")
        # A process that cannot do its work says so with 503 or 507. 500 is a fault of its own.
        if answer.status == 500:
            self.history.break_promise("no request ends with 500", f"{method} {path.split('?')[0]}: {answer.content[:300]}")
        return answer

    def insist(self, method, path, body=None, headers=None):
        """Repeats the request until the answer is final."""
        while True:
            try:
                answer = self.try_once(method, path, body, headers)
                if not answer.is_temporary():
                    return answer
                last = str(answer)
            except Lost as lost:
                last = str(lost)
            self.history.count("repeated requests")
            self.wait(f"{method} {path.split('?')[0]}: {last}")

    def wait(self, what):
        if self.is_over.wait(PAUSE * self.random.uniform(0.3, 2)):
            raise GivenUp(what)

    def pages(self, path, field):
        """All items of a list."""
        found, cursor = [], None
        while True:
            query = {"limit": 200} | ({"cursor": cursor} if cursor else {})
            separator = "&" if "?" in path else "?"
            answer = self.insist("GET", f"{path}{separator}{urllib.parse.urlencode(query)}")
            if not answer.is_good:
                raise GivenUp(f"{path}: {answer}")
            found += answer.json[field]
            cursor = answer.json.get("nextCursor")
            if not cursor:
                return found
