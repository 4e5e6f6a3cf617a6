// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
)

// Each worker serves requests of one kind under its labels, two kinds at a time.
func startLoad(slow bool) func() {
	stop := make(chan struct{})
	var workers sync.WaitGroup
	shop := newShop(slow)
	kinds := []struct {
		endpoint string
		handle   func(request int)
	}{
		{"/search", shop.search},
		{"/cart", shop.cart},
		{"/page", shop.page},
	}
	for tenant := 0; tenant < 2; tenant++ {
		for _, kind := range kinds {
			labels := pprof.Labels("endpoint", kind.endpoint, "tenant", fmt.Sprint("t", tenant))
			handle := kind.handle
			workers.Add(1)
			go pprof.Do(context.Background(), labels, func(context.Context) {
				defer workers.Done()
				for request := 0; ; request++ {
					select {
					case <-stop:
						return
					default:
						handle(request)
					}
				}
			})
		}
	}
	return func() {
		close(stop)
		workers.Wait()
	}
}

type item struct {
	name  string
	price int
	left  *item
	right *item
}

type shop struct {
	lock    sync.Mutex
	catalog *item
	carts   map[int][]string
	kept    [][]byte
	escape  func(string) string
}

func newShop(slow bool) *shop {
	s := &shop{carts: map[int][]string{}, escape: escapeFast}
	if slow {
		s.escape = escapeSlow
	}
	for i := 0; i < 2000; i++ {
		s.catalog = s.catalog.insert(fmt.Sprintf("item-%04d", i*7919%2000), i)
	}
	return s
}

func (at *item) insert(name string, price int) *item {
	if at == nil {
		return &item{name: name, price: price}
	}
	if name < at.name {
		at.left = at.left.insert(name, price)
	} else {
		at.right = at.right.insert(name, price)
	}
	return at
}

// Recursive on purpose: one function many times in one stack.
func (at *item) walk(visit func(*item)) {
	if at == nil {
		return
	}
	at.left.walk(visit)
	visit(at)
	at.right.walk(visit)
}

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func isEven(n int) bool { return n == 0 || isOdd(n-1) }

func isOdd(n int) bool { return n != 0 && isEven(n-1) }

func mapAll[T, U any](values []T, change func(T) U) []U {
	changed := make([]U, 0, len(values))
	for _, value := range values {
		changed = append(changed, change(value))
	}
	return changed
}

type number interface{ ~int | ~float64 }

func sum[T number](values []T) T {
	var total T
	for _, value := range values {
		total += value
	}
	return total
}

func (s *shop) search(request int) {
	var found []string
	s.catalog.walk(func(at *item) {
		if strings.Contains(at.name, fmt.Sprint(request%10)) {
			found = append(found, at.name)
		}
	})
	sort.Strings(found)
	fibonacci(18)
}

func (s *shop) cart(request int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	key := request % 64
	s.carts[key] = append(s.carts[key], fmt.Sprintf("order-%d", request))
	if len(s.carts[key]) > 200 {
		s.carts[key] = nil
	}
	if len(s.kept) < 400 {
		s.kept = append(s.kept, make([]byte, 4096))
	}
	isEven(500)
}

func (s *shop) page(request int) {
	prices := make([]int, 0, 2000)
	s.catalog.walk(func(at *item) { prices = append(prices, at.price) })
	scaled := mapAll(prices, func(price int) float64 { return float64(price) * 1.19 })
	var page strings.Builder
	s.lock.Lock()
	for i := 0; i < 40; i++ {
		page.WriteString(s.escape(fmt.Sprintf("<li>%d & %f</li>", i, sum(scaled))))
	}
	s.lock.Unlock()
}

func escapeFast(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;").Replace(text)
}

func escapeSlow(text string) string {
	escaped := ""
	for round := 0; round < 60; round++ {
		escaped = ""
		for _, letter := range text {
			escaped += escapeLetter(letter)
		}
	}
	return escaped
}

func escapeLetter(letter rune) string {
	switch letter {
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '&':
		return "&amp;"
	}
	return string(letter)
}
