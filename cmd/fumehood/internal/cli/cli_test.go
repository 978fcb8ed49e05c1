// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A called is what a command of the test's tree got.
type called struct {
	args   []string
	all    bool
	policy string
	list   List
	format Format
}

// tree returns a program with the commands show, run and policy eval.
func tree(c *Invocation, got *called) *cobra.Command {
	root := &cobra.Command{Use: "fumehood", Short: "Test"}
	take := c.Run(func(args []string) int { got.args = args; return OK })
	show := &cobra.Command{Use: "show LOG [flags]", Short: "List what happened", Args: RequireArgs(1, "a log"), RunE: take}
	show.Flags().BoolVar(&got.all, "all", false, "show every event")
	DefineGroup(show, "Policy flags", func(f *pflag.FlagSet) {
		f.StringVar(&got.policy, "policy", "", "`DIR` policy")
		f.Var(&got.list, "hosts", "`DIR` hosts")
	})
	got.format.Define(show, Text, JSON, Markdown)
	policy := &cobra.Command{Use: "policy", Short: "Policy"}
	eval := &cobra.Command{Use: "eval COMMAND", Short: "Decide", RunE: take}
	eval.Flags().BoolVar(&got.all, "all", false, "")
	TextFirst(eval)
	policy.AddCommand(eval)
	root.AddCommand(show, policy)
	return root
}

// execute runs the command line and returns its exit code, output and diagnostics.
func execute(args ...string) (got called, code int, out, diagnostics string) {
	var stdout, stderr bytes.Buffer
	c := &Invocation{Ctx: context.Background(), Stdout: &stdout, Stderr: &stderr}
	code = c.Execute(tree(c, &got), args)
	return got, code, stdout.String(), stderr.String()
}

// Flags are read before, between and after arguments.
func TestMixed(t *testing.T) {
	for _, args := range [][]string{{"show", "--all", "a"}, {"show", "a", "--all"}, {"show", "--policy", "p", "a", "--all=true"}} {
		if got, code, _, _ := execute(args...); code != OK || !got.all || !slices.Equal(got.args, []string{"a"}) {
			t.Errorf("%q: %d, %+v", args, code, got)
		}
	}
	if got, code, _, _ := execute("policy", "eval", "--all", "ls", "-l", "--", "--help"); code != OK || !slices.Equal(got.args, []string{"ls", "-l", "--", "--help"}) {
		t.Errorf("a command's own flags: %d, %q", code, got.args)
	}
}

// Every misuse is exit code 2, names the mistake and the help, and what was probably meant.
func TestMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag --polcy\nfumehood: hint: did you mean --policy? See fumehood show --help":                    {"show", "--polcy", "x"},
		"unknown flag --xyzzy\nfumehood: hint: see fumehood show --help":                                           {"show", "a", "--xyzzy"},
		"unknown flag -policy\nfumehood: hint: did you mean --policy? See fumehood show --help":                    {"show", "-policy", "x"},
		"unknown flag -x\nfumehood: hint: see fumehood show --help":                                                {"show", "a", "-x"},
		"unknown command \"shwo\"\nfumehood: hint: did you mean show? See fumehood --help":                         {"shwo", "--policy", "x"},
		"unknown command \"policy evla\"\nfumehood: hint: did you mean eval? See fumehood policy --help":           {"policy", "evla"},
		"unknown command \"shwo\"\nfumehood: hint: did you mean show? See fumehood --help ":                        {"help", "shwo"},
		"unknown flag --hlep\nfumehood: hint: did you mean --help? See fumehood --help":                            {"--hlep"},
		"show needs a log\nfumehood: hint: see fumehood show --help":                                               {"show"},
		"--policy needs a value\nfumehood: hint: see fumehood show --help":                                         {"show", "a", "--policy"},
		"invalid value \"jsn\" for --output: use text, json or markdown\nfumehood: hint: see fumehood show --help": {"show", "a", "-o", "jsn"},
		"invalid value \"maybe\" for --json: use true or false\nfumehood: hint: see fumehood show --help":          {"show", "a", "--json=maybe"},
		"unknown command \"\\u001b[31m\"\nfumehood: hint: see fumehood --help":                                     {"\x1b[31m"},
	} {
		_, code, out, diagnostics := execute(args...)
		if code != Usage || out != "" || diagnostics != "fumehood: "+strings.TrimSpace(want)+"\n" {
			t.Errorf("%q: %d, %q, %q", args, code, out, diagnostics)
		}
	}
}

// Help is an answer if it was asked for, and a diagnostic if a command is missing.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"show", "--help"}, {"show", "a", "-h"}, {"help", "show"}} {
		_, code, out, diagnostics := execute(args...)
		if code != OK || diagnostics != "" || !strings.Contains(out, "Usage:\n  fumehood show LOG [flags]\n") || !strings.Contains(out, "\nPolicy flags:\n      --policy DIR   policy\n      --hosts DIR    hosts\n") {
			t.Errorf("%q: %d, %s%s", args, code, out, diagnostics)
		}
	}
	for _, args := range [][]string{nil, {"policy"}} {
		if _, code, out, diagnostics := execute(args...); code != Usage || out != "" || !strings.Contains(diagnostics, "\nCommands:\n") {
			t.Errorf("%q: %d, %s%s", args, code, out, diagnostics)
		}
	}
}

// --json is --output json. Markdown is the text in a fence that the text cannot end.
func TestFormats(t *testing.T) {
	for want, args := range map[string][]string{Text: {"show", "a"}, JSON: {"show", "a", "--json"}, Markdown: {"show", "a", "-omarkdown"}} {
		if got, code, _, _ := execute(args...); code != OK || !got.format.Is(want) {
			t.Errorf("%q: %d, %v", args, code, got.format)
		}
	}
	var out bytes.Buffer
	c := &Invocation{Stdout: &out}
	err := c.PrintAnswer(Format{value: Markdown}, nil, func(w io.Writer) error { _, err := io.WriteString(w, "a\n```\nb\n"); return err })
	if want := "````text\na\n```\nb\n````\n"; err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out.String(), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// An answer that could not be written is a failure, whatever the command returns.
func TestWatch(t *testing.T) {
	var diagnostics bytes.Buffer
	c := &Invocation{Stdout: full{}, Stderr: &diagnostics}
	code := c.RunWatched(func() int { fmt.Fprintln(c.Stdout, "x"); return OK })
	if code != Stopped || !strings.HasPrefix(diagnostics.String(), "fumehood: output.not-writable: ") {
		t.Errorf("%d, %s", code, diagnostics.String())
	}
}
