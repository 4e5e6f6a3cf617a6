# SPDX-License-Identifier: Apache-2.0
# The HTTP server with other programs' clients: curl, GnuTLS's, OpenSSL's and netcat's, over plain
# and TLS connections, with tokens and client certificates, and with its certificate exchanged
# while it serves.

for tool in curl openssl; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed"; exit 77; }
done

failures=0
check() { # NAME EXPECTED GOT
    if [[ $3 == *"$2"* ]]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "# expected: $2"
        sed 's/^/# got: /' <<<"$3"
        failures=$((failures + 1))
    fi
}

# serve NAME OPTION...: starts the server; $address is where.
serve() {
    local name=$1
    shift
    mkfifo "$name.in"
    "$HTTP_PEER" "$@" <"$name.in" >"$name.out" 2>"$name.err" &
    server=$!
    exec 7>"$name.in"
    for _ in $(seq 600); do
        [ -s "$name.out" ] && break
        kill -0 "$server" 2>/dev/null || { cat "$name.err"; exit 1; }
        sleep 0.1
    done
    address=$(sed -n 1p "$name.out")
}
end() {
    exec 7>&-
    wait "$server"
}
ask() { curl -sS --max-time 60 "$@" 2>&1 || true; }

certificate() { # NAME SUBJECT [OPTION...]
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -keyout "$1.key" -out "$1.pem" -subj "/CN=$2" \
        -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" "${@:3}" 2>/dev/null
}
signed() { # NAME AUTHORITY
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" \
        -out "$1.csr" -subj "/CN=$1" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 \
        -out "$1.pem" 2>/dev/null
}

# ---- plain ----
serve plain --unix unix:plain.sock --window 1000
check 'curl gets an answer' hello "$(ask "http://$address/hello")"
check 'HTTP/1.0' hello "$(ask -0 "http://$address/hello")"
check 'a unix socket' hello "$(ask --unix-socket plain.sock http://localhost/hello)"
check 'its mode' 600 "$(stat -c %a plain.sock)"
head -c 3000000 /dev/urandom >random
gzip -kf random
gzip -c random.gz >twice.gz
sum=$(ask --data-binary @random "http://$address/sum")
check 'a body' '3000000 ' "$sum"
check 'a gzip body' "$sum" "$(ask --data-binary @random.gz "http://$address/sum")"
check 'Content-Encoding' "$sum" \
    "$(ask --data-binary @random.gz -H 'Content-Encoding: gzip' "http://$address/sum")"
check 'a gzip file with Content-Encoding' "$sum" \
    "$(ask --data-binary @twice.gz -H 'Content-Encoding: gzip' "http://$address/sum")"
check 'chunks' "$sum" \
    "$(ask -H 'Transfer-Encoding: chunked' --data-binary @random "http://$address/sum")"
if command -v zstd >/dev/null; then
    zstd -qkf random
    check 'zstd' "$sum" \
        "$(ask --data-binary @random.zst -H 'Content-Encoding: zstd' "http://$address/sum")"
fi
head -c 1000000 random.gz >cut.gz
check 'a gzip body that is cut off' 'ends in the middle of its gzip data' \
    "$(ask --data-binary @cut.gz "http://$address/sum")"
check 'an unknown Content-Encoding' 'br is not supported' \
    "$(ask --data-binary @random -H 'Content-Encoding: br' "http://$address/sum")"
check 'an answer before the body was read' 'Not even read' \
    "$(ask -H 'Expect:' --data-binary @random "http://$address/early")"
check 'a large answer' 5000000 "$(ask "http://$address/stream?bytes=5000000" | wc -c)"
check 'a compressed answer' "$(ask "http://$address/big?bytes=100000" | cksum)" \
    "$(ask --compressed "http://$address/big?bytes=100000" | cksum)"
check 'a slow sender is told' 'arrived too slowly' "$(
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc' >&3
    timeout 60 cat <&3
)"
if command -v nc >/dev/null && nc -h 2>&1 | grep -e '-N' >/dev/null; then
    check 'netcat, which closes its side' hello \
        "$(printf 'GET /hello HTTP/1.0\r\n\r\n' | timeout 60 nc -N "${address%:*}" "${address#*:}")"
fi
if command -v wrk >/dev/null; then
    check 'wrk' 'requests in' "$(wrk -t1 -c20 -d1 "http://$address/hello")"
    errors=$(wrk -t1 -c20 -d1 "http://$address/sleep?ms=1" | grep -c -e 'Socket errors' -e Non-2xx || true)
    check 'wrk sees no errors' 0 "$errors"
fi
end

# ---- TLS ----
certificate first first.example
certificate second second.example
cp first.pem now.pem
cp first.key now.key
serve tls --tls now.pem now.key --idle 2000
port=${address#*:}
check 'curl over TLS' hello "$(ask --cacert first.pem "https://localhost:$port/hello")"
check 'a body over TLS' "$sum" \
    "$(ask --cacert first.pem --data-binary @random "https://localhost:$port/sum")"
check 'a certificate that is not to be trusted' 'certificate' "$(ask "https://localhost:$port/hello")"
check 'plain HTTP on the TLS port' 'curl:' "$(ask "http://$address/hello")"
check 'OpenSSL' 'CN = first.example' \
    "$(openssl s_client -connect "$address" </dev/null 2>/dev/null | grep subject=)"
old=$(openssl s_client -connect "$address" -tls1_1 -cipher DEFAULT:@SECLEVEL=0 </dev/null 2>&1 || true)
check 'no TLS 1.1' 'Cipher is (NONE)' "$old"
tls_raw() { openssl s_client -quiet -connect "$address" 2>/dev/null; }
said=$(printf '\0\0 x\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n' | tls_raw)
# libmicrohttpd 1.0 closes the connection without an answer.
check 'lines that begin with NUL, over TLS' 'HTTP/1.1 400' "${said:-instead of HTTP/1.1 400, nothing}"
check 'bare LF in chunks, over TLS' 'HTTP/1.1 400' "$(printf '%b' 'POST /echo HTTP/1.1\r\nHost: localhost\r\n' \
    'Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n' | tls_raw)"
if command -v gnutls-cli >/dev/null; then
    check 'GnuTLS' hello "$(printf 'GET /hello HTTP/1.0\r\n\r\n' |
        timeout 60 gnutls-cli --x509cafile=first.pem -p "$port" localhost 2>&1)"
fi
cp second.key now.key
kill -HUP "$server"
for _ in $(seq 100); do [ -s tls.err ] && break; sleep 0.1; done
check 'a key of another certificate is refused' "doesn't match the certificate" "$(cat tls.err)"
check 'and the old one stays' hello "$(ask --cacert first.pem "https://localhost:$port/hello")"
cp second.pem now.pem
kill -HUP "$server"
for _ in $(seq 100); do
    shown=$(openssl s_client -connect "$address" </dev/null 2>/dev/null | grep subject=)
    [[ $shown != *second* ]] || break
    sleep 0.1
done
check 'a new certificate without a restart' 'CN = second.example' "$shown"
check 'a handshake that never comes ends' '' "$(timeout 60 cat </dev/tcp/"${address%:*}"/"$port")"
end

# ---- client certificates ----
certificate authority 'an authority' -addext keyUsage=keyCertSign
signed agent authority
certificate stranger stranger
serve mutual --tls first.pem first.key --client-ca authority.pem
port=${address#*:}
check 'no client certificate' 'requires a client certificate' \
    "$(ask --cacert first.pem "https://localhost:$port/hello")"
check 'a client certificate' hello \
    "$(ask --cacert first.pem --cert agent.pem --key agent.key "https://localhost:$port/hello")"
check "somebody else's client certificate" 'requires a client certificate' \
    "$(ask --cacert first.pem --cert stranger.pem --key stranger.key "https://localhost:$port/hello")"
end

# ---- tokens ----
secret=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
line() { # ID ROLES TENANT EXPIRES NAME
    printf '%s\t%s\t%s\t1\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" \
        "$(printf 'assay_%s_%s' "$1" "$secret" | sha256sum | cut -d' ' -f1)" "$5"
}
{
    line t0000000001 ingest acme 0 agent
    line t0000000002 read acme 0 grafana
    line t0000000003 admin other 0 root
    line t0000000004 read acme 1000 old
} >tokens
serve tokens --tokens tokens
token() { echo "assay_t000000000$1_$secret"; }
as() { ask -H "Authorization: Bearer $(token "$1")" "${@:2}"; }
check 'no token' 'Token required' "$(ask "http://$address/big")"
check 'no token, for programs' '"unauthenticated"' "$(ask "http://$address/big")"
check 'what a browser sees' 'WWW-Authenticate: Basic' "$(ask -i "http://$address/big")"
check 'no token needed' hello "$(ask "http://$address/hello")"
check 'a token' 'tenant=acme token=grafana' "$(as 2 "http://$address/label/x/values")"
check 'a token as password' 'tenant=acme token=grafana' \
    "$(ask -u "anybody:$(token 2)" "http://$address/label/x/values")"
check 'a role that is missing' 'The token agent has the role ingest, but this request requires read.' \
    "$(as 1 "http://$address/label/x/values")"
check 'a role that fits' bytes "$(as 1 -d bytes "http://$address/echo")"
check 'readers do not write' 403 "$(as 2 -d bytes -o /dev/null -w '%{http_code}' "http://$address/echo")"
check 'admins do everything' 'tenant=other' "$(as 3 "http://$address/rest/x")"
check 'an old token' 'The token has expired' "$(as 4 "http://$address/label/x/values")"
check 'a wrong token' 'Unknown token' "$(ask -H "Authorization: Bearer $(token 9)" "http://$address/big")"
sed -i /grafana/d tokens
for _ in $(seq 100); do
    answer=$(as 2 "http://$address/label/x/values")
    [[ $answer == *tenant=* ]] || break
    sleep 0.1
done
check 'a token that was revoked' 'Unknown token' "$answer"
end
exit $((failures > 0))
