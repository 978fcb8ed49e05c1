// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestSize(t *testing.T) {
	for args, want := range map[string]uint64{
		"runsc boot --total-memory 4294967296 id":           64 << 20,
		"runsc boot --total-memory 1099511627776 id":        64 << 20,
		"runsc boot --total-memory 268435456 id":            4 << 20,
		"runsc boot --total-memory 18446744073709551615 id": 64 << 20,
		"runsc boot --total-memory -1 id":                   0,
		"runsc boot --total-memory":                         0,
		"runsc gofer --bundle=x":                            0,
	} {
		if got := size(strings.Fields(args)); got != want {
			t.Errorf("%q: %d, want %d", args, got, want)
		}
	}
}

// Garbage of the size of the reserve is not collected, and the reserve itself takes no memory.
func TestReserve(t *testing.T) {
	t.Cleanup(func() { reserve = nil })
	before := resident(t)
	Reserve([]string{"boot", "--total-memory", strconv.Itoa(1 << 40)})
	if grown := resident(t) - before; grown > most/4 {
		t.Errorf("the reserve takes %d bytes", grown)
	}
	runtime.GC()
	collections := collected()
	for range most / 2 >> 10 {
		garbage = make([]byte, 1<<10)
	}
	if n := collected() - collections; n != 0 {
		t.Errorf("%d collections for half of the reserve", n)
	}
	runtime.KeepAlive(reserve)
}

var garbage []byte

func collected() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// resident is this process's resident memory, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
