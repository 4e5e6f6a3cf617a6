// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Each of these keeps one goroutine busy until the end; C code adds some where it is built in. Those
// with a name have a thread of their own, so that the kernel can say what they took.
type kind struct {
	name string
	run  func(end time.Time)
}

var kinds = []kind{
	{"main.hashing", hashing}, {"main.sorting", sorting}, {"main.collecting", collecting},
	{"", recursing}, {"", serving},
}

// Returns seconds of CPU time by name, that of the whole process under "".
func busy(duration time.Duration) map[string]float64 {
	end := time.Now().Add(duration)
	times := map[string]float64{}
	var lock sync.Mutex
	var group sync.WaitGroup
	for _, kind := range kinds {
		kind := kind
		group.Add(1)
		go func() {
			defer group.Done()
			if kind.name != "" {
				runtime.LockOSThread()
			}
			before := cpuSeconds(rusageThread)
			kind.run(end)
			if kind.name != "" {
				lock.Lock()
				times[kind.name] = cpuSeconds(rusageThread) - before
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	times[""] = cpuSeconds(syscall.RUSAGE_SELF)
	return times
}

const rusageThread = 1

func cpuSeconds(who int) float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(who, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

//go:noinline
func hashing(end time.Time) {
	data := make([]byte, 16<<10)
	for time.Now().Before(end) {
		sum := sha256.Sum256(data)
		copy(data, sum[:])
	}
}

//go:noinline
func sorting(end time.Time) {
	for time.Now().Before(end) {
		var words []string
		for i := 0; i < 1000; i++ {
			words = append(words, fmt.Sprintf("word-%d", i*7919%1000))
		}
		sort.Strings(words)
		if strings.Join(words, ",") == "" {
			panic("no words")
		}
	}
}

type tree struct {
	left, right *tree
	value       int
}

func grow(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{grow(depth - 1), grow(depth - 1), depth}
}

func (t *tree) sum() int {
	if t == nil {
		return 0
	}
	return t.left.sum() + t.value + t.right.sum()
}

//go:noinline
func collecting(end time.Time) {
	for time.Now().Before(end) {
		if grow(14).sum() < 0 {
			panic("no sum")
		}
	}
}

func small(n int) int  { return n*3 + 1 }
func middle(n int) int { return small(n) + small(n+1) }

//go:noinline
func spin(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		total = total>>1 + middle(i)
	}
	return total
}

//go:noinline
func descend(depth int) int {
	if depth == 0 {
		return spin(100000)
	}
	return descend(depth-1) + 1
}

// A new goroutine has a small stack: it grows on the way down.
//
//go:noinline
func recursing(end time.Time) {
	for time.Now().Before(end) {
		done := make(chan int)
		go func() { done <- descend(150) }()
		<-done
	}
}

//go:noinline
func serving(end time.Time) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := &http.Server{Handler: http.HandlerFunc(answer)}
	go server.Serve(listener)
	for time.Now().Before(end) {
		response, err := http.Get("http://" + listener.Addr().String() + "/")
		check(err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	server.Close()
}

//go:noinline
func answer(writer http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(writer, strings.Repeat("answer ", 100))
}
