"""An OpenID Connect provider that says exactly what a test gives it, as odd as real ones are."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jwt

LOGIN = "/accounts/oidc/oidc/login/"
CLIENT = "site"
KEY = "a key of the provider that nobody checks, for the token comes by TLS"


class Provider:
    """A server in a thread. `userinfo` and `id_token` are the claims; None: it does not come."""

    def __init__(self):
        self.userinfo, self.id_token, self.asked = {}, {}, {}
        self.server = ThreadingHTTPServer(("localhost", 0), self._handler())
        self.url = f"http://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(provider):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                answers = {
                    "/.well-known/openid-configuration": provider.discovery,
                    "/userinfo": lambda: provider.userinfo,
                }
                self._answer(answers[urlsplit(self.path).path]())

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(provider.token())

            def _answer(self, body):
                text = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_args):
                pass

        return Handler

    def discovery(self):
        places = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
        urls = {place: f"{self.url}/{place.partition('_')[0]}" for place in places}
        return {"issuer": self.url, **urls}

    def token(self):
        answer = {"access_token": "t", "token_type": "Bearer", "expires_in": 3600}
        if self.id_token is not None:
            usual = {"iss": self.url, "aud": CLIENT, "exp": int(time.time()) + 60}
            # PyJWT would refuse an odd `sub` where it makes a token, so it is put in afterwards.
            answer["id_token"] = _signed(usual | self.id_token)
        return answer

    def come(self, client, userinfo=None, id_token=None, *, way=LOGIN):
        """Sign somebody in; returns the answer to the way back."""
        self.userinfo = {} if userinfo is None else userinfo
        self.id_token = id_token
        return self.back(client, client.get(way))

    def back(self, client, sent):
        """The way back of a browser that was sent to the provider's page."""
        assert sent.url.startswith(self.url), sent.url
        self.asked = {name: value[0] for name, value in parse_qs(urlsplit(sent.url).query).items()}
        state = {"code": "c", "state": self.asked["state"]}
        return client.get(f"{LOGIN}callback/", state)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def _signed(claims):
    """A JWT of any claims, also those that PyJWT would refuse to write."""
    return jwt.api_jws.encode(json.dumps(claims).encode(), KEY, algorithm="HS256")


def use(provider, settings, roles=()):
    """Let the site know the provider."""
    settings.OIDC_ISSUER, settings.OIDC_NAME = provider.url, "Campus"
    settings.OIDC_ROLES = dict(roles)
    app = {"provider_id": "oidc", "client_id": CLIENT, "secret": "s", "name": "Campus"}
    app["settings"] = {"server_url": provider.url}
    of_provider = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"] | {"APPS": [app]}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": of_provider}
