// SPDX-License-Identifier: Apache-2.0

// A small server under load that profiles itself: the other side of tests/peers/pprof.sh. It does
// recursion, generics, closures, labels, allocation and contention, serves net/http/pprof on a
// port of 127.0.0.1, fetches its own profiles from there and writes them to a directory.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	out := flag.String("out", ".", "directory to write the profiles to")
	seconds := flag.Int("seconds", 2, "how long to profile the CPU")
	slow := flag.Bool("slow", false, "render pages with the slow escaping (a planted regression)")
	flag.Parse()

	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1000)
	runtime.MemProfileRate = 16 << 10

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, nil)) }()

	stop := startLoad(*slow)
	base := fmt.Sprintf("http://%s/debug/pprof/", listener.Addr())
	profiles := []struct{ file, path string }{
		{"cpu", fmt.Sprintf("profile?seconds=%d", *seconds)},
		{"cpu2", "profile?seconds=1"},
		{"heap", "heap?gc=1"},
		{"allocs", "allocs"},
		{"mutex", "mutex"},
		{"block", "block"},
		{"goroutine", "goroutine"},
		{"threadcreate", "threadcreate"},
	}
	for _, profile := range profiles {
		target := filepath.Join(*out, profile.file+".pb.gz")
		if err := fetch(base+profile.path, target); err != nil {
			log.Fatal(err)
		}
	}
	stop()
}

func fetch(url, target string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return os.WriteFile(target, body, 0o644)
}
