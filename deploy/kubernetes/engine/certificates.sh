#!/usr/bin/env bash
# Makes what queue and engine know each other by, as two Secrets: certificates.sh NAMESPACE | kubectl apply -f -
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

pair() {  # NAME PURPOSE
  openssl req -newkey rsa:2048 -nodes -keyout "$1-key.pem" -subj "/CN=$1" -out "$1.csr" 2>/dev/null
  printf 'subjectAltName=DNS:engine\nextendedKeyUsage=%s\n' "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 3650 -extfile "$1.ext" \
    -out "$1.pem" 2>/dev/null
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: engine-%s, namespace: %s}\ndata:\n' "$1" "$namespace"
  printf '  ca.pem: %s\n  cert.pem: %s\n  key.pem: %s\n' \
    "$(base64 -w0 <ca.pem)" "$(base64 -w0 <"$1.pem")" "$(base64 -w0 <"$1-key.pem")"
}

namespace=${1:?Say the namespace.}
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -days 3650 -subj /CN=dynabench-engine 2>/dev/null
pair server serverAuth
pair client clientAuth
