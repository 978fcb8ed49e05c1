// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// answering returns a client whose init answers text to every request.
func answering(t testing.TB, text string) *initClient {
	t.Helper()
	requests, toInit, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromInit, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = answers.WriteString(text); answers.Close() }()
	c := newInitClient(toInit, fromInit)
	t.Cleanup(func() { _ = c.close(); requests.Close() })
	return c
}

// A process that runs as root inside could write anything into the answers: each
// of these is an error, and no part of it is used.
func TestHostileAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"no newline":       "ok 1",
		"endless line":     strings.Repeat("x", 3*answerLine) + "\n",
		"unknown kind":     "change forged file 1 \"x\"\nok 0\n",
		"unknown type":     "change added socket 1 \"x\"\nok 0\n",
		"negative size":    "change added file -1 \"x\"\nok 0\n",
		"unquoted path":    "change added file 1 x\nok 0\n",
		"newline in path":  "change added file 1 \"x\ny\"\nok 0\n",
		"too many":         strings.Repeat("change added file 1 \"x\"\n", maxTotal+1) + "ok 0\n",
		"negative omitted": "ok -1\n",
		"no number":        "ok\n",
		"error":            "error \"no\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := answering(t, text).listChanges(); err == nil {
				t.Errorf("believed: %+v", list)
			}
		})
	}
}

// Requests that were sent ahead get their own answers, and no others.
func TestRequestsAhead(t *testing.T) {
	const listed = "change added file 1 \"x\"\nok 0\n"
	for name, test := range map[string]struct {
		answers string
		err     string // of the sweep, the list, or what is asked instead
		ask     func(*initClient) error
	}{
		"in order":           {"ok 0\nok 3\n" + listed, "", nil},
		"resume failed":      {"error \"no\"\nok 3\n" + listed, "guest init: no", nil},
		"no answer to sweep": {"ok 0\n" + listed, "guest init answers", nil},
		"sweep failed":       {"ok 0\nerror \"left\"\n" + listed, "guest init: left", nil},
		"another request":    {"ok 0\nok 3\n" + listed, "sent ahead", func(c *initClient) error { return c.resumeServices(askGrace, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := answering(t, test.answers)
			if err := c.resumeServices(sweepGrace, 0); err != nil {
				t.Fatal(err)
			}
			left, err := c.sweepAndList(sweepGrace)
			var list proposal.Changes
			if err == nil && test.ask != nil {
				err = test.ask(c)
			} else if err == nil {
				list, err = c.listChanges()
			}
			if test.err == "" && (err != nil || left != 3 || len(list.Files) != 1) {
				t.Errorf("%d left, %+v, %v", left, list, err)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

func TestHostileReady(t *testing.T) {
	for name, text := range map[string]string{
		"other version": "ready 99 \"Linux\"\n",
		"not quoted":    "ready 3 Linux\n",
		"nothing":       "",
		"noise":         "panic: runtime error\n",
	} {
		t.Run(name, func(t *testing.T) {
			if version, err := answering(t, text).waitUntilReady(t.Context(), startGrace); err == nil {
				t.Errorf("believed: %q", version)
			}
		})
	}
}

func TestCopyFileBounds(t *testing.T) {
	for name, text := range map[string]string{
		"larger than asked": "data 11\n12345678901ok 11\n",
		"negative":          "data -1\n",
		"short":             "data 5\n123",
		"no end":            "data 3\n123",
		"changed meanwhile": "data 3\n123error \"the file changed\"\n",
		"error":             "error \"not a regular file\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if _, err := answering(t, text).copyFile(newSide, "x", 10, &out); err == nil {
				t.Errorf("believed: %q", out.String())
			}
		})
	}
}

func TestHostileEntries(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"other answer":  "ok 1\n",
		"unknown type":  "entry socket 420 1 \"\"\n",
		"mode too long": "entry file 4096 1 \"\"\n",
		"negative size": "entry file 420 -1 \"\"\n",
		"not quoted":    "entry symlink 511 1 x\n",
		"error":         "error \"no\"\n",
	} {
		if state, err := answering(t, text).describePath(oldSide, "x"); err == nil {
			t.Errorf("%s: believed: %+v", name, state)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("change added file 1 \"a\"\nok 0\n")
	f.Add("ok 3\n")
	f.Add("error \"x\"\n")
	f.Add("entry symlink 511 1 \"x\"\n")
	f.Add("match file 3 \"a/b\"\nok 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := answering(t, text).listChanges(); err == nil {
			checkChanges(t, list)
		}
		_, _ = answering(t, text).listOutputs("*", 10)
		_, _ = answering(t, text).killLeftProcesses(startGrace)
		if state, err := answering(t, text).describePath(newSide, "x"); err == nil && state != nil && (!fileTypes[state.Type] || state.Bytes < 0 || state.Mode > 0o7777) {
			t.Errorf("accepted %+v", state)
		}
	})
}

func checkChanges(t *testing.T, list proposal.Changes) {
	t.Helper()
	if len(list.Files) > maxTotal || list.Omitted < 0 {
		t.Errorf("accepted %d changes and %d omitted", len(list.Files), list.Omitted)
	}
	for _, c := range list.Files {
		if !changeKinds[c.Kind] || !fileTypes[c.Type] || c.Bytes < 0 {
			t.Errorf("accepted %+v", c)
		}
	}
}

func TestLocal(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a/b": true, "a b": true, "": false, "/a": false, "..": false, "../a": false,
		"a/../../b": false, "a//b": false, "./a": false, "a/": false, "a\x00b": false, "a/../b": false,
	} {
		if got := isLocalPath(name); got != want {
			t.Errorf("local(%q) = %t, want %t", name, got, want)
		}
	}
}
