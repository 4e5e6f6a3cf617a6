// SPDX-License-Identifier: Apache-2.0

// golang ROUNDS: goroutines with chains of their own, through interfaces and closures. With an
// address instead it serves HTTP there until it is ended: each request costs some work.
package main

import (
	"fmt"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
)

//go:noinline
func work(rounds int) (sum int) {
	for i := 0; i < rounds; i++ {
		sum += i ^ sum
	}
	return sum
}

//go:noinline
func inner(rounds int) int { return work(rounds) + 1 }

//go:noinline
func outer(rounds int) int { return inner(rounds) + 1 }

type shape interface{ draw() int }
type circle struct{}

//go:noinline
func (circle) draw() int { return work(50000) + 1 }

//go:noinline
func dynamic(s shape) int { return s.draw() + 1 }

//go:noinline
func recurse(left int) int {
	if left == 0 {
		return work(50000)
	}
	return recurse(left-1) + 1
}

//go:noinline
func repeat(rounds int, section func() int) (sum int) {
	for i := 0; i < rounds; i++ {
		sum += section()
	}
	return sum
}

func serve(address string) {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		words := strings.Fields(strings.Repeat("some words to sort and to count ", 50))
		sort.Strings(words)
		fmt.Fprintln(w, len(words), work(20000), words[0])
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(address, nil))
	os.Exit(1)
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		serve(os.Args[1])
	}
	var group sync.WaitGroup
	results := make([]int, 3)
	for i, section := range []func() int{
		func() int { return outer(50000) },
		func() int { return dynamic(circle{}) },
		func() int { return recurse(50) },
	} {
		group.Add(1)
		go func(i int, section func() int) {
			defer group.Done()
			results[i] = repeat(rounds, section)
		}(i, section)
	}
	group.Wait()
	fmt.Println(results[0]+results[1]+results[2] == 0)
}
