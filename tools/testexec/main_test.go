// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// asProgram in the environment makes this test program behave as the one that testexec runs.
const asProgram = "TESTEXEC_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "list":
		fmt.Println("TestNightlyA\nTestNightlyB\nTestNightlyC\nTestNightlyD\nok  \tx\t0.1s")
	case "busy":
		for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
		}
	case "none":
		fmt.Println("testing: warning: no tests to run\nPASS")
	case "fail":
		os.Exit(7)
	case "killed":
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

func program(t *testing.T, as string) []string {
	t.Helper()
	t.Setenv(asProgram, as)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := os.Stdout
	os.Stdout = null // go test would read the program's lines as this one's
	t.Cleanup(func() { os.Stdout = shown; null.Close() })
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// The exit code of a test program is returned, and that of one that was killed is not 0.
func TestExitCode(t *testing.T) {
	for as, want := range map[string]int{"fail": 7, "killed": 137, "none": 0} {
		if code, err := runPackage(program(t, as), "", "", "", "1/1"); err != nil || code != want {
			t.Errorf("%s: %d, %v; want %d", as, code, err, want)
		}
	}
}

// A package that uses more than its budget fails; an invalid table is an error.
func TestBudget(t *testing.T) {
	lanetest.SkipShort(t)
	file := filepath.Join(t.TempDir(), "budgets")
	for text, want := range map[string]int{"tools/testexec 0.001\n": 1, "# why\ntools/testexec 600\n": 0} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, err := runPackage(program(t, "busy"), "", file, "", "1/1"); err != nil || code != want {
			t.Errorf("%q: exit code %d, %v; want %d", text, code, err, want)
		}
	}
	for _, text := range []string{"tools/testexec\n", "tools/testexec x\n", "tools/testexec -1\n", "tools/testexec NaN\n", "tools/testexec 1 2\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := runPackage(program(t, "busy"), "", file, "", "1/1"); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Each test of a lane is in exactly one part.
func TestParts(t *testing.T) {
	args := program(t, "list")
	seen := map[string]int{}
	for k := 1; k <= 3; k++ {
		tests, err := selectTests(args[0], "pkg/x", "TestNightly", fmt.Sprintf("%d/3", k))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range tests {
			seen[name]++
		}
	}
	if len(seen) != 4 || seen["TestNightlyA"] != 1 || seen["TestNightlyB"] != 1 || seen["TestNightlyC"] != 1 || seen["TestNightlyD"] != 1 {
		t.Errorf("tests by parts: %v", seen)
	}
	for _, part := range []string{"0/3", "4/3", "1", "1/0", "-1/3", "1/3x", ""} {
		if _, err := selectTests(args[0], "pkg/x", "TestNightly", part); err == nil {
			t.Errorf("part %q is accepted", part)
		}
	}
}

// The summary fails if no test ran.
func TestSummary(t *testing.T) {
	lanetest.SkipShort(t)
	file := filepath.Join(t.TempDir(), "usage")
	if _, err := runPackage(program(t, "none"), file, "", "", "1/1"); err != nil {
		t.Fatal(err)
	}
	if err := printSummary(os.Stdout, file); err == nil {
		t.Error("a lane without tests passes")
	}
	if _, err := runPackage(program(t, "busy"), file, "", "", "1/1"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printSummary(&out, file); err != nil || !strings.HasPrefix(out.String(), "tests of 1 packages used ") || !strings.Contains(out.String(), "tools/testexec\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
