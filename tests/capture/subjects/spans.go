// SPDX-License-Identifier: Apache-2.0
// Goroutines that work in spans with pprof.Do, and what they did: the same lines as those of
// spans.c. Each stays on its thread, or with "free" as the fourth argument goes where Go sends it,
// and its lines begin with 0.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var routes = []string{"/cart", "/user/{id}", "/"}
var lock sync.Mutex
var sink [64]uint64

//go:noinline
func spin(n int) uint64 {
	var x uint64
	for i := 0; i < n; i++ {
		x += uint64(i) * 3
	}
	return x
}

// CPU time of the thread, or elapsed time where the thread is not its own.
func work(i int, micros int, free bool) {
	if free {
		for until := time.Now().Add(time.Duration(micros) * time.Microsecond); time.Now().Before(until); {
			sink[i] += spin(2000)
			runtime.Gosched()
		}
		return
	}
	used := func() int64 {
		var now syscall.Timespec
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&now)), 0) // CLOCK_THREAD_CPUTIME_ID
		return now.Nano()
	}
	for until := used() + int64(micros)*1000; used() < until; {
		sink[i] += spin(10000)
	}
}

func random(bytes int) string {
	id := make([]byte, bytes)
	rand.Read(id)
	return hex.EncodeToString(id)
}

func run(thread, spans, micros int, free bool) {
	lines := make([]string, 0, spans)
	tid := 0
	if !free {
		runtime.LockOSThread()
		tid = syscall.Gettid()
	}
	for i := 0; i < spans; i++ {
		var times [5]int64
		trace, span := random(16), random(8)
		times[0] = time.Now().UnixNano()
		labels := pprof.Labels("trace_id", trace, "span_id", span, "http.route", routes[i%3])
		pprof.Do(context.Background(), labels, func(context.Context) {
			times[1] = time.Now().UnixNano()
			work(thread, micros, free)
			times[2] = time.Now().UnixNano()
		})
		times[3] = time.Now().UnixNano()
		work(thread, micros/4, free)
		times[4] = time.Now().UnixNano()
		lines = append(lines, fmt.Sprintln(tid, trace, span, times[0], times[1], times[2], times[3], times[4], i%3))
	}
	lock.Lock()
	defer lock.Unlock()
	for _, line := range lines {
		fmt.Print(line)
	}
}

func main() {
	number := func(at int) int {
		n, _ := strconv.Atoi(os.Args[at])
		return n
	}
	var group sync.WaitGroup
	work(0, 50000, false) // so that the process is known before the first span
	for i := 0; i < number(1); i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			run(i, number(2), number(3), len(os.Args) > 4)
		}(i)
	}
	group.Wait()
}
