// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
		"too many":         strings.Repeat("change added file 1 \"x\"\n", maxChanges+1) + "ok 0\n",
		"negative omitted": "ok -1\n",
		"no number":        "ok\n",
		"error":            "error \"no\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			if list, err := answering(t, text).changes(); err == nil {
				t.Errorf("believed: %+v", list)
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
			if version, err := answering(t, text).ready(t.Context(), startGrace); err == nil {
				t.Errorf("believed: %q", version)
			}
		})
	}
}

func TestCopyFileBounds(t *testing.T) {
	for name, text := range map[string]string{
		"larger than asked": "data 11\n12345678901",
		"negative":          "data -1\n",
		"short":             "data 5\n123",
		"error":             "error \"not a regular file\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if _, err := answering(t, text).copyFile("x", 10, &out); err == nil {
				t.Errorf("believed: %q", out.String())
			}
		})
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("change added file 1 \"a\"\nok 0\n")
	f.Add("ok 3\n")
	f.Add("error \"x\"\n")
	f.Add("match file 3 \"a/b\"\nok 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := answering(t, text).changes(); err == nil {
			checkChanges(t, list)
		}
		_, _ = answering(t, text).glob("*", 10)
		_, _ = answering(t, text).sweep(startGrace)
	})
}

func checkChanges(t *testing.T, list proposal.Changes) {
	t.Helper()
	if len(list.Files) > maxChanges || list.Omitted < 0 {
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
		if got := local(name); got != want {
			t.Errorf("local(%q) = %t, want %t", name, got, want)
		}
	}
}
