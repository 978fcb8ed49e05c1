// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Hang is the time limit for events that must happen. It ends a test that would
// otherwise never end; it is high enough for slow machines.
const Hang = 5 * time.Minute

// WaitUntil waits until something is done.
func WaitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > Hang {
			t.Fatalf("waited %s in vain for %s", Hang, what)
		}
	}
}

// ReadFile returns the content of a file.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// CheckNothingRuns waits for the end of all processes that have a run's private
// directory in their arguments: runsc, the gofer and gVisor's kernel all do. They
// die with their parent.
func CheckNothingRuns(t testing.TB, dir string) {
	t.Helper()
	begin := time.Now()
	for left := FindProcesses(dir); len(left) > 0; left = FindProcesses(dir) {
		if time.Since(begin) > Hang {
			t.Fatalf("processes are left: %v", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// FindProcesses returns the command lines of the processes whose arguments contain text, by
// their ids. The arguments of a job's child name no file: it is found by its open files, too.
func FindProcesses(text string) map[int]string {
	found := map[int]string{}
	for _, pid := range listProcesses() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && (bytes.Contains(line, []byte(text)) ||
			bytes.HasSuffix(line, []byte("\x00--job\x00")) && opens(pid, text)) {
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// opens reports whether the path of an open file of a process contains text.
func opens(pid int, text string) bool {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(links, func(link string) bool {
		path, _ := os.Readlink(link)
		return strings.Contains(path, text)
	})
}

// listProcesses returns the ids of all processes, of which this one is always one.
func listProcesses() (list []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
			list = append(list, pid)
		}
	}
	if len(list) == 0 {
		panic("/proc is not mounted")
	}
	return list
}

// WatchFor looks for a secret in the arguments of all processes, and in the environment of those
// that it is not given to. The returned function ends that and returns what was found.
func WatchFor(secret string, given func(args string) bool) (end func() []string) {
	stop, found := make(chan struct{}), make(chan []string)
	go func() {
		var list []string
		for {
			select {
			case <-stop:
				found <- list
				return
			case <-time.After(2 * time.Millisecond):
			}
			for _, pid := range listProcesses() {
				args, env := sightingOf(fmt.Sprintf("/proc/%d", pid))
				if bytes.Contains(args, []byte(secret)) || bytes.Contains(env, []byte(secret)) && !given(string(args)) {
					list = append(list, string(args))
				}
			}
		}
	}()
	return func() []string { close(stop); return <-found }
}

// sightingOf returns the arguments and the environment of a process, given its directory. A process that
// is becoming another program has no arguments for a moment, and one that has ended has neither.
func sightingOf(dir string) (args, env []byte) {
	for range 20 {
		args, _ = os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ = os.ReadFile(filepath.Join(dir, "environ"))
		if len(args) > 0 || len(env) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return args, env
}
