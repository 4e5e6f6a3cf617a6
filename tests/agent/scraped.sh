# SPDX-License-Identifier: Apache-2.0
# A real process that is scraped and sampled by an agent, under one service name, is counted once: an
# answer has the values of one source, and names it and the other.
. "$ROOT/tests/agent/common.bash"
type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }

cat >go.mod <<'GO'
module both
go 1.19
GO
cat >main.go <<'GO'
package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

var sink int

//go:noinline
func spin() {
	for i := 0; ; i++ {
		sink += i * sink
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go spin()
	os.WriteFile("address.new", []byte(listener.Addr().String()), 0o644)
	os.Rename("address.new", "address")
	panic(http.Serve(listener, nil))
}
GO
GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 go build -o program . 2>build.log || {
    cat build.log
    echo "go can't build a program with net/http here."
    exit 77
}
service=both-$$
OTEL_SERVICE_NAME=$service ./program 2>program.log &
program=$!
agents+=("$program")
until [ -s address ]; do sleep 0.05; done
cat >>keep.yaml <<YAML
scrape_configs:
  - {job_name: $service, scrape_interval: 4s, scrape_timeout: 60s, static_configs: [{targets: ["$(cat address)"]}]}
YAML
start_server server --data store -c keep.yaml
start_agent agent --config generous.yaml
need_host agent

# top SELECTOR: in top.json
top() {
    get "/api/v1/top?query=cpu%7Bservice_name%3D%22$service%22$1%7D&$always&limit=100" >top.json
    json top.json 'd["total"]'
}
of_source() { top "%2C__source__%3D%22$1%22" 2>/dev/null || echo 0; }
# The names of what the agent sampled come later, from the agent.
tries=0
until [ "$(of_source scrape)" -gt 0 ] && [ "$(of_source agent)" -gt 0 ] &&
    json top.json 'any(f["function"] == "main.spin" for f in d["functions"])' 2>/dev/null; do
    [ $((tries += 1)) -lt 600 ] || { cat top.json server.log agent.log; exit 1; }
    sleep 0.5
done
kill "$program"
stop_agent
# No scrape of it is left to come.
get /api/v1/targets >targets.json
scrapes=$(json targets.json 'sum(t["scrapes"] for t in d)')
tries=0
until get /api/v1/targets >targets.json && [ "$(json targets.json 'sum(t["scrapes"] for t in d)')" -gt $((scrapes + 10)) ]; do
    [ $((tries += 1)) -lt 1200 ] || { cat targets.json; exit 1; }
    sleep 0.1
done

by_agent=$(of_source agent)
by_scrape=$(of_source scrape)
echo "by the agent $by_agent, scraped $by_scrape" >&2
chosen=$(top '')
source=$(json top.json 'd["quality"]["sources"][0]["source"]')
json top.json 'len(d["quality"]["sources"]) == 1 and
    sorted([d["quality"]["sources"][0]["source"], *d["quality"]["sources"][0]["unused"]]) == ["agent", "scrape"]'
case $source in
agent) [ "$chosen" = "$by_agent" ] ;;
scrape) [ "$chosen" = "$by_scrape" ] ;;
*) exit 1 ;;
esac
json top.json '{f["function"]: f["cum"] for f in d["functions"]}["main.spin"] > 0.5 * d["total"]'
"$ASSAY" query top "cpu{service=\"$service\"}" --from now-1h --to now+1m -u "$url" >top.txt
grep -E "^$service: (values of (agent|scrape); (agent|scrape) is left out|by host, values of)" top.txt
stop_server
