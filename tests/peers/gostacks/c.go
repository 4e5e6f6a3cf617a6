// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

/*
#include <stdint.h>

extern int goBack(int);

static __attribute__((noinline)) uint64_t churn(uint64_t n)
{
    volatile uint64_t total = 1;
    for (uint64_t i = 0; i < n; i++)
        total = total * 31 + i;
    return total;
}

static __attribute__((noinline)) int bounce(int n)
{
    return goBack(n) + 1;
}
*/
import "C"

import "time"

func init() {
	kinds = append(kinds, kind{"main.callingC", callingC}, kind{"main.throughC", throughC})
}

//export goBack
func goBack(n C.int) C.int { return C.int(spin(int(n)) & 7) }

//go:noinline
func callingC(end time.Time) {
	for time.Now().Before(end) {
		C.churn(500000)
	}
}

//go:noinline
func throughC(end time.Time) {
	for time.Now().Before(end) {
		C.bounce(500000)
	}
}
