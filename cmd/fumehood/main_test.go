// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/sandbox"
)

// asFumehood in the environment makes the test binary run fumehood's main.
const asFumehood = "FUMEHOOD_TEST_AS_MAIN"

// shared is a directory for files that several tests use, removed after the last one.
var shared string

// testImages in the environment, or as a file beside the program, makes every workspace an
// image. The action's child has the file alone: it starts with an empty environment.
const testImages = "FUMEHOOD_TEST_IMAGES"

func TestMain(m *testing.M) {
	if os.Getenv(testImages) != "" || isBesideProgram(testImages) {
		sandbox.DefaultImageFrom = 1
	}
	if os.Getenv(asFumehood) != "" || isGateway(os.Args[1:]) { // the gateway runs with an empty environment
		main()
	}
	testscript.Main(allTests{m}, map[string]func(){"fumehood": func() { settle = jobtest.Settle; main() }})
}

// allTests makes and removes the shared directory.
type allTests struct{ *testing.M }

func (a allTests) Run() int {
	roottest.Check()
	var err error
	if shared, err = os.MkdirTemp("", "fumehood-test-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(shared)
	if err := os.Setenv("CI", "true"); err != nil { // no test uses layers of others
		panic(err)
	}
	if sandbox.DefaultImageFrom == 1 {
		markProgram(testImages)
	}
	lanetest.WaitMuch()
	return a.M.Run()
}

// isBesideProgram reports whether this program's directory has the file name.
func isBesideProgram(name string) bool {
	program, err := os.Executable()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(filepath.Dir(program), name))
	return err == nil
}

// markProgram makes the file name beside the program that fumehood returns.
func markProgram(name string) {
	program, err := exec.LookPath("fumehood")
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(program), name), nil, 0o644)
	}
	if err != nil {
		panic(err)
	}
}

// countSleeps counts the sleeps that have started, by the events in the logs of a pattern.
func countSleeps(t testing.TB, pattern string) (n int) {
	t.Helper()
	logs, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		data, _ := os.ReadFile(log)
		n += bytes.Count(data, []byte(`"exec":{"argv":["sleep"`))
	}
	return n
}

// treesum DIR FILE writes a digest of the names, modes, sizes, times, targets
// and contents of everything below DIR, so that two of them can be compared.
func treesum(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: treesum DIR FILE")
	}
	sum := sha256.New()
	root := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %s %d %d %v\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano(), owner(info))
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			sum.Write(data)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintln(sum, target)
			return err
		}
		return nil
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), fmt.Appendf(nil, "%x\n", sum.Sum(nil)), 0o644))
}

// lines FILE PREFIX N checks that N lines of FILE begin with PREFIX, ignoring white
// space before it.
func lines(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: lines FILE PREFIX N")
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), args[1]) {
			n++
		}
	}
	if fmt.Sprint(n) != args[2] {
		ts.Fatalf("%d lines begin with %q, want %s", n, args[1], args[2])
	}
}

func owner(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "?"
	}
	return fmt.Sprint(st.Uid, ":", st.Gid)
}
