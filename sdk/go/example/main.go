// SPDX-License-Identifier: Apache-2.0

// A service whose requests assay can tell apart, without a library of assay's: labels of
// goroutines are all that it takes. Samples of a request have its route as a label, and link to its
// span by the labels trace_id and span_id. Goroutines that a request starts inherit them.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
)

// traced runs a handler with labels for its request: the route, and the ids that the tracer of the
// caller has sent (W3C's traceparent: version-trace-parent-flags).
func traced(route string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		labels := []string{"http.route", route}
		parts := strings.Split(r.Header.Get("traceparent"), "-")
		if len(parts) == 4 && len(parts[1]) == 32 && len(parts[2]) == 16 {
			// With a tracer, take the ids of the span that it began for this request:
			// span.SpanContext().TraceID().String() and SpanID().String().
			labels = append(labels, "trace_id", parts[1], "span_id", parts[2])
		}
		pprof.Do(r.Context(), pprof.Labels(labels...), func(ctx context.Context) {
			handle(w, r.WithContext(ctx))
		})
	}
}

func search(w http.ResponseWriter, r *http.Request) {
	sum := 0
	for i := 0; i < 50_000_000; i++ {
		sum += i % 7
	}
	fmt.Fprintln(w, sum)
}

func main() {
	address := "127.0.0.1:8080"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	http.HandleFunc("/search/", traced("/search/{word}", search))
	fmt.Fprintln(os.Stderr, http.ListenAndServe(address, nil))
	os.Exit(1)
}
