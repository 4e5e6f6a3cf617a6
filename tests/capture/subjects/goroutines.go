// SPDX-License-Identifier: Apache-2.0
// Goroutines whose waits are known; prints its pid when all of them wait. They wait until it ends.
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

var lock sync.Mutex
var queue, never = make(chan int), make(chan int)

//go:noinline
func receiver() { <-queue }

//go:noinline
func locker() { lock.Lock() }

//go:noinline
func sleeper() { time.Sleep(time.Hour) }

//go:noinline
func reader(c net.Conn) { c.Read(make([]byte, 1)) }

//go:noinline
func chooser() {
	select {
	case <-queue:
	case <-never:
	}
}

//go:noinline
func deep(n int) {
	if n > 0 {
		deep(n - 1)
		return
	}
	<-never
}

func main() {
	lock.Lock()
	for i := 0; i < 3; i++ {
		go receiver()
	}
	go locker()
	go sleeper()
	go chooser()
	go deep(20)
	if len(os.Args) > 1 { // more than are looked at at once
		for i := 0; i < 2000; i++ {
			go receiver()
		}
	}
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	connection, _ := net.Dial("tcp", listener.Addr().String())
	go reader(connection)
	time.Sleep(100 * time.Millisecond) // those that have not come to wait yet are few
	fmt.Println(os.Getpid())
	time.Sleep(time.Hour)
}
