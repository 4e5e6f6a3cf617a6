# SPDX-License-Identifier: Apache-2.0
# A real Go program, scraped with the settings that nobody has to give: all five profiles, and an
# alloc_space that is to the byte what the program allocated, through a restart.
# Chance: the Go runtime updates its allocation counts at garbage collections, which come when it
# likes.
# Toolchains: go
. "$ROOT/tests/server/common.bash"
type go >/dev/null 2>&1 || { echo "go is missing."; exit 77; }

cat >go.mod <<'GO'
module scraped
go 1.19
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var sink []byte

//go:noinline
func burn(n int) {
	for i := 0; i < n; i++ {
		sink = make([]byte, 65536)
	}
}

//go:noinline
func spin() {
	for i := 0; ; i++ {
		if i%100000000 == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func wait(lock *sync.Mutex) {
	for {
		lock.Lock()
		time.Sleep(5 * time.Millisecond)
		lock.Unlock()
	}
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	go spin()
	go wait(&lock)
	go wait(&lock)
	http.HandleFunc("/burn", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		burn(n)
		// Profiles show what was allocated before the garbage collection before the last.
		runtime.GC()
		runtime.GC()
		fmt.Fprintln(w, "done")
	})
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

start_program() { # ADDRESS
    rm -f address
    ./program "$1" 2>>program.log &
    program=$!
    servers+=("$program")
    until [ -s address ]; do sleep 0.05; done
    address=$(cat address)
}
start_program 127.0.0.1:0

printf 'scrape_configs: [{job_name: shop, scrape_interval: 2s, scrape_timeout: 60s,
    static_configs: [{targets: ["%s"]}]}]\n' "$address" >>keep.yaml
start_server scrape --in-memory -c keep.yaml

scrapes() { # PROFILE: how many went well
    get /api/v1/targets >targets.json
    json targets.json "[x['scrapes'] - x['failures'] for x in d if x['profile'] == '$1'][0]"
}
after_scrapes() { # PROFILE COUNT: waits for so many more
    local until=$(($(scrapes "$1") + $2)) tries=0
    until [ "$(scrapes "$1")" -ge $until ]; do
        [ $((tries += 1)) -le 1200 ] || { cat targets.json scrape.log >&2; return 1; }
        sleep 0.1
    done
}
burnt() {
    get "/api/v1/top?query=memory:alloc_space:bytes:space:bytes%7Bservice_name%3D%22shop%22%7D&limit=100000&$always" >top.json
    python3 -c 'import json
d = json.load(open("top.json"))
print(sum(f["flat"] for f in d["functions"] if f["function"] == "main.burn"))'
}

# Waits for exactly so many bytes. The program collects its garbage before it answers, so two scrapes
# should suffice; with sanitizers they sometimes did not, for a reason that is not known. Bytes that
# are lost or counted twice still fail.
has_burnt() {
    local tries=0
    until [ "$(burnt)" = "$1" ]; do
        [ $((tries += 1)) -le 20 ] || { echo "main.burn has $(burnt) bytes, not $1." >&2; return 1; }
        after_scrapes memory 1
    done
}

until [ "$(get /api/v1/targets)" != "[]" ]; do sleep 0.1; done
for profile in process_cpu memory goroutine mutex block; do after_scrapes $profile 1; done
after_scrapes memory 2
[ "$(burnt)" = 0 ]

# 100 and 50 times 64 KiB.
curl -sS "http://$address/burn?n=100" >/dev/null
after_scrapes memory 2
has_burnt 6553600
curl -sS "http://$address/burn?n=50" >/dev/null
after_scrapes memory 2
has_burnt 9830400

# Another process at the same address: what it did before we saw it is not ours to know.
kill -9 "$program"
wait "$program" 2>/dev/null || true
start_program "$address"
after_scrapes memory 2
[ "$(get /metrics | sed -n 's/^assay_delta_restarts_total //p')" -ge 1 ]
curl -sS "http://$address/burn?n=10" >/dev/null
after_scrapes memory 2
has_burnt 10485760

# All types by the names that Pyroscope's users know, each with what it should show.
get "/api/v1/types?$always" >types.json
for type in process_cpu:cpu:nanoseconds:cpu:nanoseconds memory:inuse_space:bytes:space:bytes \
    goroutine:goroutine:count:goroutine:count mutex:delay:nanoseconds:contentions:count \
    block:contentions:count:contentions:count; do
    json types.json "'$type' in [t['id'] for t in d]"
done
shown() { # TYPE FUNCTION
    get "/api/v1/top?query=$1%7Bservice_name%3D%22shop%22%7D&limit=100000&$always" >shown.json
    json shown.json "any(f['function'] == '$2' and f['cum'] > 0 for f in d['functions'])"
}
shown process_cpu:cpu:nanoseconds:cpu:nanoseconds main.spin
shown goroutine:goroutine:count:goroutine:count main.wait
shown mutex:delay:nanoseconds:contentions:count main.wait
stop_server
