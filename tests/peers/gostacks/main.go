// SPDX-License-Identifier: Apache-2.0

// The other side of tests/peers/go-stacks.sh and go-names.sh. `work` keeps the CPU busy in ways
// that Go's stacks differ by (recursion, collection of garbage, system calls, C), writes the
// runtime's own profile of it, and prints the kernel's times. `addresses` lists addresses of its own code, and `frames` says what
// the runtime calls them.
package main

import (
	"bufio"
	"debug/elf"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
	_ "unsafe" // for go:linkname
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: gostacks work SECONDS PROFILE | addresses STEP | frames")
	}
	switch os.Args[1] {
	case "work":
		work(os.Args[2], os.Args[3])
	case "addresses":
		listAddresses(os.Args[2])
	case "frames":
		printFrames()
	}
}

func work(duration, target string) {
	seconds, err := strconv.Atoi(duration)
	check(err)
	file, err := os.Create(target)
	check(err)
	check(pprof.StartCPUProfile(file))
	times := busy(time.Duration(seconds) * time.Second)
	pprof.StopCPUProfile()
	check(file.Close())
	for name, seconds := range times {
		fmt.Println(name, seconds)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The executable, and what was added to its addresses when it was loaded.
func self() (*elf.File, uint64) {
	file, err := elf.Open("/proc/self/exe")
	check(err)
	path, err := os.Readlink("/proc/self/exe")
	check(err)
	maps, err := os.ReadFile("/proc/self/maps")
	check(err)
	var start uint64
	for _, line := range strings.Split(string(maps), "\n") {
		if start == 0 && strings.HasSuffix(line, path) {
			start, err = strconv.ParseUint(strings.SplitN(line, "-", 2)[0], 16, 64)
			check(err)
		}
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_LOAD {
			return file, start - segment.Vaddr&^4095
		}
	}
	log.Fatal("no segments")
	return nil, 0
}

func listAddresses(text string) {
	step, err := strconv.ParseUint(text, 10, 64)
	check(err)
	file, bias := self()
	section := file.Section(".text")
	for address := section.Addr; address < section.Addr+section.Size; address += step {
		// C code of an external linker is none of Go's; and the last byte of a function can't be
		// asked for, since return addresses are what can be.
		function := runtime.FuncForPC(uintptr(address + bias))
		next := runtime.FuncForPC(uintptr(address+bias) + 1)
		if function != nil && next != nil && function.Entry() == next.Entry() {
			fmt.Printf("%x\n", address)
		}
	}
}

//go:linkname expandFinalInlineFrame runtime/pprof.runtime_expandFinalInlineFrame
func expandFinalInlineFrame(stack []uintptr) []uintptr

func printFrames() {
	_, bias := self()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		address, err := strconv.ParseUint(input.Text(), 16, 64)
		check(err)
		// As a return address: one behind the instruction.
		stack := expandFinalInlineFrame([]uintptr{uintptr(address+bias) + 1})
		frames := runtime.CallersFrames(stack)
		for {
			frame, more := frames.Next()
			if frame.Function != "" {
				fmt.Fprintf(out, "%s\t%s:%d\n", frame.Function, frame.File, frame.Line)
			}
			if !more {
				break
			}
		}
		fmt.Fprintln(out)
	}
}
