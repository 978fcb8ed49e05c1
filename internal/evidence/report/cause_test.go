// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// unready is a command that failed for a reason that is not the pull request's. programs
// are those that it started, seen what else the kernel saw.
func unready(id, cmd string, exit int, stdout, stderr, programs string, seen ...proposal.Event) proposal.Record {
	r := calling(ran(id, cmd, proposal.Exited, exit, stdout, stderr), strings.Fields(cmd)[0])
	o := &proposal.Observations{
		Programs: []proposal.Program{{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: proposal.LayerRootfs, Runs: 1}},
		Execs:    []proposal.Event{}, Notable: append([]proposal.Event{}, seen...), Network: []proposal.Reach{}, Findings: []proposal.Finding{},
		Counts: proposal.Counts{Execs: 1, Predicted: 1, Exits: 1, Connects: len(seen)}, Complete: true,
	}
	for i, name := range strings.Fields(programs) {
		o.Programs = append(o.Programs, proposal.Program{Parent: i, Path: "/usr/bin/" + name, Name: name, Layer: proposal.LayerRootfs, Runs: 1})
	}
	o.Counts.Execs, o.Counts.Exits = len(o.Programs), len(o.Programs)
	r.Result.Observations = o
	return r
}

func failingCall(id, program, kind, address, errno string) proposal.Event {
	e := noticed(id, kind, program)
	e.Address, e.Errno = address, errno
	return e
}

func diagnosed(records ...proposal.Record) proposal.Report {
	return finish(proposal.Report{Records: diagnose.DiagnoseRecords(records, nil)})
}

func missingDependencies() proposal.Report {
	test := unready("test", "npm test", 127, "\n> demo@1.0.0 test\n> mocha --exit\n\n", "sh: 1: mocha: not found\n", "npm node dash")
	test.Proposal.Why, test.Proposal.Expect = "the pull request changes the router", "all tests pass"
	return diagnosed(test)
}

func missingTool() proposal.Report {
	return diagnosed(
		unready("lint", "shellcheck scripts/build.sh", 127, "", "bash: line 1: shellcheck: command not found\n", ""),
		unready("unit", "go test ./...", 1, "", "go: go.mod requires go >= 1.99 (running go 1.26; GOTOOLCHAIN=local)\n", "go"))
}

// missingToolchain has commands that started a Node that is too old, whatever they printed, and one
// that failed and names a difference of gVisor.
func missingToolchain() proposal.Report {
	unmet := []proposal.Unmet{{Tool: "node", Version: "20.20.2", File: "package.json", Wants: ">=22 <25", Least: "22", Base: true}}
	records := diagnose.DiagnoseRecords([]proposal.Record{
		unready("test", "npm test", 1, "1 failing\n", "AssertionError [ERR_ASSERTION]: 1 == 2\n", "npm node"),
		unready("types", "node check.js", 1, "", "SyntaxError: Unexpected token\n", "node"),
		unready("watch", "go test ./watch", 1, "--- FAIL: TestReplace (0.10s)\n    watch_test.go:31: no IN_ATTRIB for the old file\nFAIL\n", "", "go"),
	}, unmet)
	r := finish(proposal.Report{Records: records})
	r.Run.Unmet = unmet
	return r
}

func missingNetwork() proposal.Report {
	ok := ran("unit", "go test ./...", proposal.Exited, 0, "ok  \texample.org/demo\t0.1s\n", "")
	return diagnosed(ok, unready("api", "curl -sS https://api.example.com/v1/status", 6, "", "curl: (6) Could not resolve host: api.example.com\n", "curl",
		failingCall("api", "/usr/bin/curl", proposal.EventSend, "udp 127.0.0.1:53", "ECONNREFUSED")))
}

func missingService() proposal.Report {
	return diagnosed(unready("db", "python3 -m pytest tests/test_db.py", 1,
		"E   psycopg2.OperationalError: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused\n1 failed in 0.2s\n", "", "python3",
		failingCall("db", "/usr/bin/python3", proposal.EventConnect, "tcp 127.0.0.1:5432", "ECONNREFUSED")))
}

// missingMixed has seven commands with one reason, one that needs one of them, and one that
// really failed.
func missingMixed() proposal.Report {
	var list []proposal.Record
	for _, c := range []struct{ id, cmd, module string }{
		{"build", "go build ./...", "github.com/spf13/pflag"}, {"vet", "go vet ./...", "github.com/spf13/pflag"},
		{"unit", "go test ./...", "github.com/spf13/pflag"}, {"race", "go test -race ./...", "github.com/spf13/pflag"},
		{"docs", "go test ./doc", "github.com/cpuguy83/go-md2man/v2"}, {"bench", "go test -bench . ./...", "github.com/spf13/pflag"},
		{"list", "go list -deps -test ./...", "github.com/inconshreveable/mousetrap"},
	} {
		list = append(list, unready(c.id, c.cmd, 1, "", "go: downloading "+c.module+" v1.0.5\ncommand.go:21:2: "+c.module+"@v1.0.5: module lookup disabled by GOPROXY=off\n", "go"))
	}
	after := ran("cover", "go tool cover -func cover.out", proposal.NotRun, -1, "", "")
	after.Proposal.Needs = []string{"unit"}
	after.Result = &proposal.Result{Status: proposal.NotRun, ExitCode: -1, Detail: `it needs "unit", which did not succeed`, Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	format := ran("format", "gofmt -d .", proposal.Exited, 1, "--- a.go.orig\n+++ a.go\n", "")
	format.Proposal.Expect = "no errors, exit 0"
	return diagnosed(append(list, after, format)...)
}

// missingWithheld is a run of which the comment must not show what commands printed.
func missingWithheld() proposal.Report {
	r := missingDependencies()
	r.Withheld = &proposal.Reason{Rule: "output.withheld", Effect: proposal.Deny, Message: "policy withholds it", Command: -1}
	return r
}

// ofSetup makes a record that of the maintainer's set-up.
func ofSetup(r proposal.Record, why string, needs ...string) proposal.Record {
	r.Proposal.Origin, r.Proposal.Phase, r.Proposal.Why, r.Proposal.Needs = proposal.OriginSetup, proposal.PhaseSetup, why, needs
	r.Proposal.Network = []string{"registry:npm"}
	return r
}

// missingSetup is a run whose set-up failed: a pinned manager was installed, and the
// packages of the lock file were not.
func missingSetup() proposal.Report {
	pnpm := ofSetup(ran("setup-get-pnpm", "npm install --prefix .fumehood/npm pnpm@9.15.9", proposal.Exited, 0, "added 1 package in 1s\n", ""), "pnpm-lock.yaml: install pnpm@9.15.9")
	install := ofSetup(unready("setup-pnpm", "pnpm install --frozen-lockfile", 1, " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with \"frozen-lockfile\" because pnpm-lock.yaml is not up to date with package.json\n\n    Failure reason:\n    specifiers in the lockfile don't match specs in package.json\n", "", "node"), "pnpm-lock.yaml: install packages with pnpm")
	return diagnosed(pnpm, install,
		unready("test", "pnpm test", 127, "\n> demo@1.0.0 test\n> mocha --exit\n\n", "sh: 1: mocha: not found\n", "pnpm node dash"),
		unready("lint", "pnpm lint", 127, "\n> demo@1.0.0 lint\n> eslint .\n\n", "sh: 1: eslint: not found\n", "pnpm node dash"))
}

func TestMissingIsNeutral(t *testing.T) {
	lanetest.SkipShort(t)
	for name, want := range map[string]string{
		"missing_dependencies": "neutral", "missing_tool": "neutral", "missing_network": "neutral", "missing_service": "neutral",
		"missing_withheld": "neutral", "missing_setup": "neutral", "missing_mixed": "failure", "missing_toolchain": "failure",
	} {
		r := cases()[name]
		check := Page{Parts: []Part{{Report: r}}}.Check()
		if check.Conclusion != want || !strings.Contains(check.Title, "could not run") {
			t.Errorf("%s: %s, %q", name, check.Conclusion, check.Title)
		}
		md := Markdown(r)
		if want == "neutral" && strings.Contains(md, "❌") || !strings.Contains(md, "➖ <b>") {
			t.Errorf("%s:\n%s", name, md)
		}
		if r.Totals.CouldNotRun == 0 || r.Totals.Failed > 0 && want == "neutral" {
			t.Errorf("%s: %+v", name, r.Totals)
		}
	}
	if md := Markdown(missingWithheld()); strings.Contains(md, "mocha") {
		t.Errorf("the comment quotes output that is withheld:\n%s", md)
	}
}

// A stranger's report cannot add a cause, or give its own words for one.
func TestForeignCauses(t *testing.T) {
	r := mixed()
	r.Records[0].Cause = missingDependencies().Records[0].Cause
	r.Totals = proposal.Total(r.Records)
	if _, err := Read(document(t, r), maxRead); err == nil || !strings.Contains(err.Error(), "cause") {
		t.Errorf("a cause that the record does not give: %v", err)
	}
	r = missingDependencies()
	c := *r.Records[0].Cause
	c.Reason, c.Advice, c.Config = "approved by the maintainers", "merge it", []string{"policy: none"}
	r.Records[0].Cause = &c
	if _, err := Read(document(t, r), maxRead); err != nil {
		t.Fatal(err)
	}
	md := Page{Parts: []Part{{Report: r, Foreign: true}}}.Markdown()
	for _, words := range []string{"approved by the", "merge it", "policy: none"} {
		if strings.Contains(md, words) {
			t.Errorf("the comment has %q:\n%s", words, md)
		}
	}
	if !strings.Contains(md, "dependencies are not installed") {
		t.Errorf("no cause:\n%s", md)
	}
}

func TestMergeConfig(t *testing.T) {
	var got []string
	for _, lines := range [][]string{{"setup: auto", "registries: [npm]"}, {"setup: auto", "registries: [go]"}, {"registries: [npm]"}, {"tools: [a]"}, {"tools: [b]"}, {"tools: [a]"}, nil, {"x"}} {
		got = mergeConfig(got, slices.Clone(lines))
	}
	if want := []string{"setup: auto", "registries: [npm, go]", "tools: [a, b]", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnmet(t *testing.T) {
	ok, bad := ran("a", "a", proposal.Exited, 0, "", ""), ran("a", "a", proposal.Exited, 1, "", "")
	for expect, want := range map[string][2]bool{ // of a success, of a failure
		"all tests pass": {false, true}, "exit 0": {false, true}, "exits with code 0": {false, true}, "no errors": {false, true}, "succeeds": {false, true},
		"TestX fails": {true, false}, "a non-zero exit code": {true, false}, "it panics": {true, false},
		"one row of three fields": {}, "the test fails before and passes after": {}, "prints the failure as JSON and passes": {}, "": {},
		"exit 1": {}, "fails: index out of range": {}, // an outcome: see proposal.Record.AsExpected
		"no test fails": {}, "does not pass": {}, "runs without errors": {false, true},
	} {
		ok.Proposal.Expect, bad.Proposal.Expect = expect, expect
		if got := [2]bool{isUnmet(ok), isUnmet(bad)}; got != want {
			t.Errorf("%q: %v, want %v", expect, got, want)
		}
	}
}
