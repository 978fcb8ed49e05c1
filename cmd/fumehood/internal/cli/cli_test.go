// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func invoke(args ...string) (*Invocation, *bytes.Buffer, *bytes.Buffer) {
	var out, diagnostics bytes.Buffer
	return &Invocation{Description: Description{Name: "show", Synopsis: "show a log", Usage: "LOG"}, Args: args, Stdout: &out, Stderr: &diagnostics}, &out, &diagnostics
}

// Flags are read wherever they stand, and an unknown one is an error everywhere.
func TestParseMixed(t *testing.T) {
	for _, args := range [][]string{{"--all", "a", "b"}, {"a", "--all", "b"}, {"a", "b", "--all"}} {
		c, _, _ := invoke(args...)
		f := c.Flags()
		all := f.Bool("all", false, "")
		if got, _, ok := c.ParseArgs(f, 2, "two"); !ok || !*all || !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%q: %q, %t, %t", args, got, *all, ok)
		}
	}
	for _, args := range [][]string{{"a", "--nosuch"}, {"--nosuch", "a"}, {"a", "b"}, nil} {
		c, _, diagnostics := invoke(args...)
		if _, code, ok := c.ParseArgs(c.Flags(), 1, "a log"); ok || code != Usage || !strings.Contains(diagnostics.String(), "hint: fumehood show --help") {
			t.Errorf("%q: %d, %t, %s", args, code, ok, diagnostics)
		}
	}
	c, out, _ := invoke("a", "--help")
	if _, code, ok := c.ParseArgs(c.Flags(), 1, "a log"); ok || code != OK || !strings.Contains(out.String(), "usage: fumehood show LOG") {
		t.Errorf("help: %d, %t, %s", code, ok, out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// An answer that could not be printed is none, whatever the command returns.
func TestWatch(t *testing.T) {
	c, _, diagnostics := invoke()
	c.Stdout = full{}
	code := c.Watch(func() int { fmt.Fprintln(c.Stdout, "x"); return OK })
	if code != Stopped || !strings.HasPrefix(diagnostics.String(), "fumehood: output.not-writable: ") {
		t.Errorf("%d, %s", code, diagnostics)
	}
}
