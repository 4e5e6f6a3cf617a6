// SPDX-License-Identifier: Apache-2.0
// A service that works, allocates and waits for locks, with Pyroscope's SDK pushing what it does. At
// the end it prints the CPU time it has used while profiled, in nanoseconds.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/grafana/pyroscope-go"
)

var kept [][]byte
var sum uint64

//go:noinline
func burnHot(until time.Time) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 200000; i++ {
			sum += i * i
		}
	}
}

//go:noinline
func keepMemory() {
	kept = append(kept, make([]byte, 1<<20))
}

//go:noinline
func contend(lock *sync.Mutex, group *sync.WaitGroup) {
	defer group.Done()
	for i := 0; i < 20; i++ {
		lock.Lock()
		time.Sleep(time.Millisecond)
		lock.Unlock()
	}
}

func cpu() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[2])
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "peer.service",
		ServerAddress:   os.Args[1],
		UploadRate:      5 * time.Second,
		Tags:            map[string]string{"region": "test"},
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := cpu()
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for time.Now().Before(end) {
		burnHot(time.Now().Add(300 * time.Millisecond))
		keepMemory()
		var lock sync.Mutex
		var group sync.WaitGroup
		for i := 0; i < 4; i++ {
			group.Add(1)
			go contend(&lock, &group)
		}
		group.Wait()
	}
	used := cpu() - before
	profiler.Stop()
	fmt.Println(used, len(kept))
}
