// SPDX-License-Identifier: Apache-2.0

// A service whose versions differ in the cost of one function, and its clients:
//
//	shop serve ROUNDS                  prints its address
//	shop load ADDRESS RATE SECONDS     sends requests at random times, RATE a second
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Price float64  `json:"price"`
}

var body []byte
var rounds int
var served int64

// The function that a version makes slower: its cost is proportional to the number of rounds.
//
//go:noinline
func score(items []item) uint32 {
	sum := uint32(1)
	for r := 0; r < rounds; r++ {
		for i := range items {
			sum = sum*16777619 ^ uint32(items[i].ID) ^ uint32(len(items[i].Name)+r)
			for k := 0; k < 40; k++ {
				sum ^= sum << 13
				sum ^= sum >> 17
				sum ^= sum << 5
			}
		}
	}
	return sum
}

//go:noinline
func arrange(items []item) {
	sort.Slice(items, func(a, b int) bool { return items[a].Price < items[b].Price })
}

//go:noinline
func render(items []item, sum uint32) []byte {
	var out bytes.Buffer
	for i := range items {
		fmt.Fprintf(&out, "%d %s %.2f\n", items[i].ID, items[i].Name, items[i].Price)
	}
	fmt.Fprintf(&out, "%d %d\n", sum, crc32.ChecksumIEEE(out.Bytes()))
	return out.Bytes()
}

//go:noinline
func handle(w http.ResponseWriter, r *http.Request) {
	var items []item
	if err := json.Unmarshal(body, &items); err != nil {
		panic(err)
	}
	sum := score(items)
	arrange(items)
	atomic.AddInt64(&served, 1)
	w.Write(render(items, sum))
}

func serve() {
	var items []item
	for i := 0; i < 60; i++ {
		items = append(items, item{i * 7919 % 1000, fmt.Sprintf("item number %d", i),
			[]string{"a", "bb", "ccc"}, float64(i*37%101) / 3})
	}
	body, _ = json.Marshal(items)
	http.HandleFunc("/", handle)
	http.HandleFunc("/served", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, atomic.LoadInt64(&served))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

func load(address string, rate, seconds float64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	limit := make(chan bool, 64) // requests at once: a starved service gets fewer
	var wait sync.WaitGroup
	start := time.Now()
	for next := start; next.Sub(start).Seconds() < seconds; {
		time.Sleep(time.Until(next))
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * 1e9))
		limit <- true
		wait.Add(1)
		go func() {
			defer wait.Done()
			if response, err := client.Get("http://" + address + "/"); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			<-limit
		}()
	}
	wait.Wait()
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		rounds = int(number(os.Args[2]))
		serve()
	} else if len(os.Args) == 5 && os.Args[1] == "load" {
		load(os.Args[2], number(os.Args[3]), number(os.Args[4]))
	} else {
		log.Fatal("shop serve ROUNDS, or shop load ADDRESS RATE SECONDS")
	}
}
