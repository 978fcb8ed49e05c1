// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package sandbox

import (
	"slices"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An interpreter can go on while it is held: timers send it SIGCONT. It starts nothing then, also while a cell is
// prepared whose start is not recorded yet.
func TestE2EPreparedStartsNothing(t *testing.T) {
	o, rec := pythonOptions(t)
	rec.reset(allow)
	r := testRunner(t, o)
	out, _ := runPython(t, r, `
import ctypes, os, signal, threading, time
class Notification(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("kind", ctypes.c_int), ("rest", ctypes.c_int * 12)]
libc = ctypes.CDLL("librt.so.1")
for i in range(25, 200): # a timer whose signal is pending sends no other
    timer, when = ctypes.c_void_p(), (ctypes.c_long * 4)(0, 0, i // 50, i % 50 * 20_000_000 + 1)
    libc.timer_create(1, ctypes.byref(Notification(signal=signal.SIGCONT)), ctypes.byref(timer))
    libc.timer_settime(timer, 0, when, None)
tries = []
def start():
    time.sleep(0.4) # no child is stopped at the end of this cell, for which this would wait
    while True:
        try:
            os.waitpid(os.posix_spawn("/usr/bin/true", ["true"], {}), 0)
            tries.append("started")
        except OSError:
            tries.append("refused")
        time.sleep(0.01)
threading.Thread(target=start, daemon=True).start()`)
	if out != "" {
		t.Fatalf("%q", out)
	}
	x := Execution{ID: "cell", Cell: &Cell{Language: "python", Context: "main", Code: "tries.clear()"},
		Grant: proposal.Grant{Limits: o.Limits}}
	rec.reset(allow)
	r.Prepare(x, false)
	var seen []string
	for end := time.Now().Add(10 * time.Second); len(seen) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		seen = rec.of("cell")
	}
	if !slices.Equal(seen, []string{"refused /usr/bin/true"}) {
		t.Errorf("%q", seen)
	}
	if out, _ := runPython(t, r, "time.sleep(0.5); print('started' in tries)"); out != "True\n" {
		t.Errorf("%q", out)
	}
}
