// SPDX-License-Identifier: Apache-2.0
// Three programs: `backend` answers each request after 100 ms, `shop BACKEND` asks it for each of its
// own requests, `load SHOP N` has N clients that ask the shop all the time. `lock` is a shop whose
// requests wait for a mutex that is held for 20 ms at a time; it shows its own profiles. Servers print
// their address.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var stock sync.Mutex

func serve(handler http.HandlerFunc) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/", handler)
	fmt.Println("http://" + listener.Addr().String())
	panic(http.Serve(listener, nil))
}

func fetch(url string) {
	answer, err := http.Get(url)
	if err != nil {
		return
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

//go:noinline
func askBackend(url string) { fetch(url) }

//go:noinline
func updateStock() {
	stock.Lock()
	time.Sleep(20 * time.Millisecond)
	stock.Unlock()
}

//go:noinline
func orderItem() { updateStock() }

func main() {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 100
	switch os.Args[1] {
	case "backend":
		serve(func(w http.ResponseWriter, r *http.Request) { time.Sleep(100 * time.Millisecond) })
	case "shop":
		serve(func(w http.ResponseWriter, r *http.Request) { askBackend(os.Args[2]) })
	case "lock":
		runtime.SetMutexProfileFraction(1)
		runtime.SetBlockProfileRate(1)
		serve(func(w http.ResponseWriter, r *http.Request) { orderItem() })
	case "load":
		clients, _ := strconv.Atoi(os.Args[3])
		for i := 1; i < clients; i++ {
			go func() {
				for {
					fetch(os.Args[2])
				}
			}()
		}
		for {
			fetch(os.Args[2])
		}
	}
}
