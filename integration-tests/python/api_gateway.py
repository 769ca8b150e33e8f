"""Does what Amazon API Gateway does before a deployment's API: TLS, a stage, and signatures for `execute-api`.

Usage: api_gateway.py SERVICE REGION CERTIFICATE

Verifies each request with botocore's code and AWS's rules, and passes it on to the service without its stage and its
signature. Writes its certificate, prints its URL as a line, and serves until standard input ends. The access keys are
those of `KEYS`.
"""

import datetime
import http.server
import ipaddress
import json
import os
import ssl
import sys
import threading
import urllib.parse
import uuid

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

STAGE = "/graph"
SKEW = datetime.timedelta(minutes=5)
# Secrets and session tokens by access key, and whether the token has expired.
KEYS = {
    "AKIDUSER": ("a-secret-of-the-user", None, False),
    "ASIAROLE": ("a-secret-of-the-role", "a-session-token", False),
    "ASIAEXPIRED": ("a-secret-of-yesterday", "a-token-of-yesterday", True),
}
# Headers that stay between a client and API Gateway.
HOP = {"host", "authorization", "connection", "content-length", "transfer-encoding", "upgrade", "keep-alive"}


class Refused(Exception):
    pass


def verify(region, method, target, headers, body):
    """Raises `Refused` with AWS's words unless the request has a right signature."""
    given = headers.get("Authorization", "")
    if not given:
        raise Refused("Missing Authentication Token")
    algorithm, _, rest = given.partition(" ")
    fields = dict(field.strip().partition("=")[::2] for field in rest.split(","))
    if algorithm != "AWS4-HMAC-SHA256" or not {"Credential", "SignedHeaders", "Signature"} <= set(fields):
        raise Refused("Authorization header requires 'Credential' parameter, 'Signature' and 'SignedHeaders'.")
    access_key, date, named_region, service, _ = fields["Credential"].split("/")
    if service != "execute-api":
        raise Refused("Credential should be scoped to correct service: 'execute-api'.")
    if named_region != region:
        raise Refused(f"Credential should be scoped to a valid region, not '{named_region}'.")
    secret, token, expired = KEYS.get(access_key, (None, None, False))
    if secret is None or headers.get("X-Amz-Security-Token") != token:
        raise Refused("The security token included in the request is invalid.")
    if expired:
        raise Refused("The security token included in the request is expired")
    timestamp = headers.get("X-Amz-Date", "")
    at = datetime.datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    now = datetime.datetime.now(datetime.timezone.utc)
    if not timestamp.startswith(date) or abs(now - at) > SKEW:
        raise Refused(f"Signature expired: {timestamp} is now earlier than {(now - SKEW):%Y%m%dT%H%M%SZ}")
    signed = fields["SignedHeaders"].split(";")
    needed = {"host"} | {name.lower() for name in headers if name.lower().startswith("x-amz-")}
    if not needed <= set(signed):
        raise Refused("'Host' and headers of x-amz- must be in SignedHeaders")

    # AWS reads the query string and writes it again, so that `+` becomes a space.
    path, _, query = target.partition("?")
    read = urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    again = urllib.parse.urlencode(read, quote_via=urllib.parse.quote)
    url = f"https://{headers['Host']}{path}{'?' if again else ''}{again}"
    request = AWSRequest(method=method, url=url, data=body, headers={name: headers[name] for name in signed})
    request.context["timestamp"] = timestamp
    signer = SigV4Auth(Credentials(access_key, secret, token), service, region)
    expected = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    if expected != fields["Signature"]:
        raise Refused("The request signature we calculated does not match the signature you provided.")


def handler(service, region):
    pool = urllib3.PoolManager()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, headers, body):
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            try:
                if not self.path.startswith(f"{STAGE}/"):
                    # What API Gateway says of a path that it does not know.
                    raise Refused("Missing Authentication Token")
                verify(region, self.command, self.path, self.headers, body)
            except Refused as error:
                # The shape that the deployment gives to these answers.
                code, message = "AccessDeniedException", str(error)
                refusal = {"requestId": str(uuid.uuid4()), "code": code, "detailedMessage": message, "message": message}
                self.answer(403, {"Content-Type": "application/json"}, json.dumps(refusal).encode())
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            url = service + self.path.removeprefix(STAGE)
            got = pool.request(self.command, url, headers=headers, body=body, decode_content=False, retries=False)
            self.answer(got.status, got.headers, got.data)

        do_GET = do_POST = do_DELETE = do_PUT = do

        def log_message(self, *_):
            pass

    return Handler


def certificate(path):
    """Makes a key and writes them with a certificate of this machine's address. Returns the path of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "API Gateway of the tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    with open(path, "wb") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))
    both = f"{path}.key"
    with open(os.open(both, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        file.write(made.public_bytes(serialization.Encoding.PEM))
    return both


def main():
    service, region, path = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(service, region))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"https://127.0.0.1:{server.server_port}{STAGE}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
