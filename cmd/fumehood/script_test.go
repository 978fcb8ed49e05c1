// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
)

// TestScript runs the scripts in testdata/script that start fumehood as a program. Each
// script's first comment states what it tests.
func TestScript(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	runScripts(t, scriptsThat(t, func(script []byte) bool { return !callsMain(script) }), 19)
}

// TestScriptInProcess runs the scripts in testdata/script that call main in this process,
// which saves compiling the shipped policy each time. The working directory and the
// environment belong to the process: so no other test runs at the same time.
func TestScriptInProcess(t *testing.T) {
	p := scriptParams(t)
	p.Files = oneIn(t, 1, 9, scriptsThat(t, callsMain))
	p.Cmds["call"] = callMain
	testscript.RunT(serialT{t}, p)
}

func callsMain(script []byte) bool {
	return bytes.Contains(script, []byte("\ncall ")) || bytes.Contains(script, []byte("\n! call "))
}

// scriptsThat returns the scripts in testdata/script that fit.
func scriptsThat(t *testing.T, fits func([]byte) bool) []string {
	t.Helper()
	names := listScripts(t, "testdata/script/*.txtar")
	return slices.DeleteFunc(names, func(name string) bool { return !fits(jobtest.ReadFile(t, name)) })
}

func listScripts(t *testing.T, pattern string) []string {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(repo, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return names
}

// runScripts runs scripts in parallel, with -short one in so many.
func runScripts(t *testing.T, names []string, short int) {
	t.Helper()
	p := scriptParams(t)
	p.Files = oneIn(t, 1, short, names)
	testscript.Run(t, p)
}

func scriptParams(t *testing.T) testscript.Params {
	t.Helper()
	cache := jobtest.BuildCache(t)
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		RequireExplicitExec: true,
		UpdateScripts:       *golden.Update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FUMEHOOD_CACHE", cache)
			env.Setenv("CI", "true") // a script uses no layers of others
			env.Setenv(testImages, os.Getenv(testImages))
			env.Setenv("GOCACHE", rootfs.UserGoCache())
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("REPO", repo)
			env.Setenv("PATH", env.Getenv("PATH")+":/usr/local/go/bin:/usr/sbin:/sbin")
			for _, variable := range env.Vars {
				name, _, _ := strings.Cut(variable, "=")
				env.Values[scriptEnvironment{}] = append(asNames(env.Values[scriptEnvironment{}]), name)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"treesum": treesum, "lines": lines, "eventlog": eventlog, "query": query},
	}
}

// serialT runs the scripts one after another.
type serialT struct{ *testing.T }

func (serialT) Parallel()     {}
func (serialT) Verbose() bool { return testing.Verbose() }
func (t serialT) Run(name string, run func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { run(serialT{t}) })
}

// scriptEnvironment is the key of the names of the variables that scripts begin with.
type scriptEnvironment struct{}

func asNames(value any) []string { names, _ := value.([]string); return names }

// call fumehood ARGS calls main with the script's directory and the variables that scripts begin
// with. A script that sets others, or uses stdin, starts the program: exec fumehood.
func callMain(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "fumehood" {
		ts.Fatalf("usage: call fumehood ARGS")
	}
	before := os.Environ()
	dir, err := os.Getwd()
	ts.Check(err)
	percent := debug.SetGCPercent(800)
	defer func() {
		debug.SetGCPercent(percent)
		setEnvironment(before)
		ts.Check(os.Chdir(dir))
	}()
	var variables []string
	for _, name := range asNames(ts.Value(scriptEnvironment{})) {
		variables = append(variables, name+"="+ts.Getenv(name))
	}
	setEnvironment(variables)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	if code := runCommandLine(context.Background(), args[1:], strings.NewReader(""), ts.Stdout(), ts.Stderr()); (code != exitOK) != neg {
		ts.Fatalf("fumehood ended with code %d", code)
	}
}

func setEnvironment(variables []string) {
	os.Clearenv()
	for _, variable := range variables {
		if name, value, _ := strings.Cut(variable, "="); name != "" {
			_ = os.Setenv(name, value) // "=" and ":" are no names for programs
		}
	}
}

// query FILE LIST prints the Rego array [LIST], with the JSON in FILE as input: an element a
// line, strings as they are, other values as JSON. LIST may be a comprehension, and nested
// arrays are flattened. The input of a file *.jsonl is the array of its values.
func query(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: query FILE LIST")
	}
	var values []any
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	decoder.UseNumber()
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		values = append(values, value)
	}
	var input any = values
	if !strings.HasSuffix(args[0], ".jsonl") {
		if len(values) != 1 {
			ts.Fatalf("%s has %d values", args[0], len(values))
		}
		input = values[0]
	}
	results, err := opa.New(opa.Query("answer := ["+args[1]+"]"), opa.Input(input)).Eval(context.Background())
	ts.Check(err)
	if len(results) != 1 {
		ts.Fatalf("%d answers", len(results))
	}
	ts.Check(printLeaves(ts.Stdout(), results[0].Bindings["answer"]))
}

func printLeaves(w io.Writer, value any) error {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := printLeaves(w, element); err != nil {
				return err
			}
		}
		return nil
	case string:
		_, err := fmt.Fprintln(w, strings.TrimSuffix(value, "\n"))
		return err
	}
	return json.NewEncoder(w).Encode(value)
}
