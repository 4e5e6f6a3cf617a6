# SPDX-License-Identifier: Apache-2.0
# Tokens: roles, tenants that don't see each other, an end within a second. A graceful stop, a
# reload, and systemd's readiness.
. "$ROOT/tests/server/common.bash"

ingest=$("$ASSAY" token create sender --file tokens --tenant one 2>/dev/null)
reader=$("$ASSAY" token create reader --file tokens --tenant one -r read 2>/dev/null)
other=$("$ASSAY" token create other --file tokens --tenant two -r ingest,read 2>/dev/null)
[[ $("$ASSAY" token list --file tokens) == *sender*ingest*one* ]]
grep -F "$ingest" tokens && exit 1

printf 'relabel_configs: []\nretention: {raw: 0}\n' >rules.yaml
python3 - >ready.txt <<'PYTHON' &
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
s.settimeout(60)
print(s.recv(100).decode())
PYTHON
listener=$!
until [ -S notify ]; do sleep 0.05; done
NOTIFY_SOCKET=$PWD/notify start_server tokens --data store --tokens tokens -c rules.yaml
wait "$listener"
[ "$(cat ready.txt)" = READY=1 ]

push_as() { # TOKEN SERVICE WANTED
    status "$3" -H "Authorization: Bearer $1" --data-binary @"$FIXTURES/man/base.pb.gz" \
        "$url/api/v1/push?service_name=$2"
}
services() {
    status 200 -H "Authorization: Bearer $1" "$url/api/v1/label/service_name/values?$always"
    cat answer.txt
}

status 200 "$url/ready"
status 401 "$url/api/v1/types"
status 401 --data-binary @"$FIXTURES/man/base.pb.gz" "$url/api/v1/push?service_name=x"
push_as nonsense x 401
push_as "$reader" x 403
push_as "$ingest" shop 200
push_as "$other" bank 200
status 403 -H "Authorization: Bearer $ingest" "$url/api/v1/types"
[ "$(services "$reader")" = '["shop"]' ]
[ "$(services "$other")" = '["bank"]' ]
status 200 -u "x:$reader" "$url/metrics" # as the password, too

# Rules are read again, and wrong ones change nothing.
printf 'relabel_configs: [{target_label: zone, replacement: west}]\nretention: {raw: 0}\n' \
    >rules.yaml
kill -HUP "$pid"
until grep 'Reloaded label rules' tokens.log >/dev/null; do sleep 0.05; done
push_as "$ingest" later 200
status 200 -H "Authorization: Bearer $reader" "$url/api/v1/label/zone/values?$always"
[ "$(cat answer.txt)" = '["west"]' ]
printf 'nonsense: 1\n' >rules.yaml
kill -HUP "$pid"
until grep 'stays in effect' tokens.log >/dev/null; do sleep 0.05; done
push_as "$ingest" after 200

# What is wrong with one tenant's files is said to this one only.
stop_server
grep '"action":"refused","target":"/api/v1/types","outcome":"unauthenticated"' store/audit.log >/dev/null
grep '"actor":"reader","tenant":"one","action":"refused","target":"/api/v1/push"' store/audit.log >/dev/null
echo garbage >store/one/raw-default-2020-01-01.assay
printf 'relabel_configs: []\nretention: {raw: 0}\n' >rules.yaml
start_server damaged --data store --tokens tokens -c rules.yaml
status 200 -H "Authorization: Bearer $reader" "$url/api/v1/health"
[[ $(cat answer.txt) == *degraded*/one/raw-default-2020-01-01.assay* ]]
status 200 -H "Authorization: Bearer $other" "$url/api/v1/health"
[[ $(cat answer.txt) == *'"problems":[]'* && $(cat answer.txt) != */one/* ]]

"$ASSAY" token revoke sender --file tokens
tries=0
until push_as "$ingest" gone 401 2>/dev/null; do
    [ $((tries += 1)) -lt 100 ]
    sleep 0.1
done
stop_server
