# SPDX-License-Identifier: Apache-2.0
# ClickHouse for tests: Debian's server, started by hand in the test's directory, and the current
# engine as PyPI's chdb behind clickhouse_front.py. CHDB_PYTHON is a Python that has chdb (default:
# python3).

free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# clickhouse_ask HOST:PORT SQL
clickhouse_ask() { curl -sS --fail-with-body --data-binary "$2" "http://$1/"; }

clickhouse_wait() {
    local tries=0
    until clickhouse_ask "$1" 'SELECT 1' >/dev/null 2>&1; do
        if ! kill -0 "$clickhouse_pid" 2>/dev/null || [ $((tries += 1)) -gt 600 ]; then
            cat "$2" >&2
            return 1
        fi
        sleep 0.1
    done
}

clickhouse_run() {
    clickhouse-server --config-file="$1/config.xml" >"$1/out" 2>&1 &
    clickhouse_pid=$!
    servers+=("$clickhouse_pid")
    clickhouse_wait "$clickhouse" "$1/out"
}

# Sets $clickhouse to HOST:PORT, and $clickhouse_pid. Directories must be new.
start_clickhouse_old() {
    local directory=$PWD/$1
    type clickhouse-server >/dev/null 2>&1 || {
        echo "clickhouse-server is not installed."
        exit 77
    }
    mkdir -p "$directory/data" "$directory/tmp"
    clickhouse=127.0.0.1:$(free_port)
    cat >"$directory/config.xml" <<XML
<yandex>
<logger><level>warning</level><log>$directory/log</log><errorlog>$directory/errors</errorlog></logger>
<http_port>${clickhouse#*:}</http_port><tcp_port>$(free_port)</tcp_port>
<listen_host>127.0.0.1</listen_host><max_connections>256</max_connections>
<path>$directory/data/</path><tmp_path>$directory/tmp/</tmp_path>
<users_config>$directory/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
</yandex>
XML
    cat >"$directory/users.xml" <<'XML'
<yandex><profiles><default></default></profiles><quotas><default></default></quotas><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default>
<assay><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></assay></users></yandex>
XML
    clickhouse_run "$directory"
}

start_clickhouse_current() {
    local directory=$PWD/$1
    "${CHDB_PYTHON:-python3}" -c 'import chdb' 2>/dev/null || {
        echo "chdb is not installed; CHDB_PYTHON can name a Python that has it."
        exit 77
    }
    mkdir -p "$directory"
    clickhouse=127.0.0.1:$(free_port)
    "${CHDB_PYTHON:-python3}" "$ROOT/tests/server/clickhouse_front.py" "$directory" \
        "${clickhouse#*:}" >"$directory/out" 2>&1 &
    clickhouse_pid=$!
    servers+=("$clickhouse_pid")
    clickhouse_wait "$clickhouse" "$directory/out"
}

# The whole of what both engines have to do.
check_clickhouse() {
    local store=clickhouse://$clickhouse/assay
    TEST_STORE_URL=clickhouse://$clickhouse "$TEST_STORE"

    # A database without tables is refused; init can be repeated.
    if "$ASSAY" server --listen 127.0.0.1:0 --data data --store "$store" 2>refused.log; then
        return 1
    fi
    grep 'run `assay store init`' refused.log
    "$ASSAY" store init --store "$store"
    "$ASSAY" store init --store "$store"

    start_server one --data data --store "$store" -c keep.yaml
    push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
    json answer.json 'd["windows"] == 14 and "repeated" not in d'
    check_answers
    push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
    json answer.json 'd["repeated"]'

    # A second server on the same database: both have all of it.
    local first=$url first_pid=$pid
    start_server two --data data2 --store "$store" -c keep.yaml
    check_answers
    push "$file" 'service=shop&host=h1' -H 'X-Assay-Batch-Id: b1' >answer.json
    json answer.json 'd["repeated"]'
    push "$file" 'service=bank' -H 'X-Assay-Batch-Id: b2' >answer.json
    json answer.json '"repeated" not in d'
    kill -9 "$first_pid"
    wait "$first_pid" || true
    url=$first
    [[ $("$ASSAY" store stats "$store") == *" 28 windows of 28 series and 2 services"* ]]
    "$ASSAY" store check "$store"
    stop_server

    # Profiles move to a directory and back, and a second import finds all of them.
    local moved=clickhouse://$clickhouse/moved
    "$ASSAY" store export "$store" moved.export
    "$ASSAY" store import moved moved.export
    "$ASSAY" store check moved
    "$ASSAY" store compare "$store" moved >compared.txt
    grep -F '28 windows with ' compared.txt
    "$ASSAY" store export moved moved.again
    "$ASSAY" store init --store "$moved"
    "$ASSAY" store import "$moved" - <moved.again
    "$ASSAY" store import "$moved" moved.again 2>said.txt
    grep -F ' 0 windows were stored' said.txt
    "$ASSAY" store check "$moved"
    "$ASSAY" store compare moved "$moved"
    "$ASSAY" store export "$store" half.export --query '{service="bank"}'
    "$ASSAY" store import half half.export
    "$ASSAY" store compare half "$store" --query '{service="bank"}'
    if "$ASSAY" store compare half "$store" 2>said.txt; then return 1; fi
    grep -F 'totals differ' said.txt

    # The examples of the manual run; of the functions, they say what the server says.
    python3 "$ROOT/tests/server/clickhouse_examples.py" "$ROOT/docs/clickhouse.md" "$clickhouse" \
        'process_cpu:cpu:nanoseconds:cpu:nanoseconds' <want.csv

    # Tables of the first version, which had no views, get them and keep their seed.
    local older=clickhouse://$clickhouse/older statement
    "$ASSAY" store init --store "$older"
    for statement in 'DROP TABLE older.functions_by_hour' 'DROP TABLE older.assay_schema' \
        'CREATE TABLE older.assay_schema (version UInt32, seed UInt64, written DateTime)
            ENGINE = MergeTree ORDER BY version' \
        'INSERT INTO older.assay_schema (version, seed, written) SELECT 1, 7, now()'; do
        clickhouse_ask "$clickhouse" "$statement"
    done
    if "$ASSAY" store stats "$older" 2>refused.log; then return 1; fi
    grep 'older schema' refused.log
    "$ASSAY" store init --store "$older"
    "$ASSAY" store stats "$older"
    [ "$(clickhouse_ask "$clickhouse" 'SELECT DISTINCT seed FROM older.assay_schema FORMAT TSV')" = 7 ]
    [ "$(clickhouse_ask "$clickhouse" 'SELECT count() FROM older.functions_by_hour FORMAT TSV')" = 0 ]

    # Tables of a newer version are refused.
    clickhouse_ask "$clickhouse" \
        "INSERT INTO assay.assay_schema (version, seed, written) SELECT 1000000, 1, now()"
    if "$ASSAY" store init --store "$store" 2>refused.log; then return 1; fi
    grep 'Use a newer assay' refused.log
}
