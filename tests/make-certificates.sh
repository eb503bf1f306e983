#!/bin/sh
# make-certificates.sh FOLDER: makes an authority, ca.pem, and a server's certificate for localhost and
# 127.0.0.1, cert.pem with key.pem, all good for two days. For the tests of the clients.
set -eu
cd "$1"
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
openssl req -x509 $key -days 2 -subj /CN=authority -keyout ca-key.pem -out ca.pem \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>openssl.log
openssl req -new $key -subj /CN=server -keyout key.pem -out request.pem 2>>openssl.log
cat >extensions <<EOF
subjectAltName = DNS:localhost, IP:127.0.0.1
authorityKeyIdentifier = keyid
extendedKeyUsage = serverAuth
EOF
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
  -extfile extensions -out cert.pem 2>>openssl.log
