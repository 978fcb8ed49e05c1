// SPDX-License-Identifier: Apache-2.0

// Package conformance tests what every session promises, whether its gate is in this process, on
// another machine or in a pod. Only tests import it.
//
// A gate under test must have the layers of Policy, and a root with bash and coreutils; for
// RunLanguages with python3 and node, too. Its workspace may be empty.
package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// rules deny shuf, ask about tac, and refuse factor where a command starts it.
const rules = `package fumehood.command

deny contains {"rule": "conformance.shuf", "message": "shuf is not used here", "suggestion": "use sort"} if input.command.program == "shuf"

ask contains {"rule": "conformance.tac", "message": "tac needs approval", "suggestion": "use cat"} if input.command.program == "tac"
`

const programs = `package fumehood.exec

deny contains {"rule": "conformance.factor", "message": "factor is not used here", "suggestion": "divide"} if input.name == "factor"
`

// RequiredPolicy returns the policy that the gate must have in addition to the shipped one.
func RequiredPolicy() gate.Policy {
	return gate.Policy{Name: "conformance",
		Files: map[string][]byte{"command.rego": []byte(rules), "exec.rego": []byte(programs)}}
}

// Main is the TestMain of packages that run the suite. Their gates, which run at the same time, keep
// files in directories of the test program.
func Main(m *testing.M) {
	if code, is := gate.Helper(); is {
		os.Exit(code)
	}
	roottest.Check()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Setenv("TMPDIR", dir)
	}
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Opener returns a new gate, which the suite closes. It calls t.Parallel if gates can run at the same
// time.
type Opener func(t *testing.T) gate.Opener

type subtest struct {
	name string
	test func(*testing.T, gate.Opener)
}

// Run runs the suite, except for RunLanguages.
func Run(t *testing.T, open Opener) {
	runSubtests(t, open, []subtest{
		{"session", testSession}, {"closed", testClosed}, {"idle", testIdle}, {"lifetime", testLifetime}, {"cancelled", testCancelled},
		{"commands", testCommands}, {"interrupt", testInterrupt}, {"output", testOutput},
		{"files", testFiles}, {"escapes", testEscapes}, {"diff", testDiff},
		{"shells", testShells}, {"processes", testProcesses}, {"pause", testPause}, {"approvals", testApprovals}, {"decisions", testDecisions}, {"log", testLog},
	})
}

// RunTransport runs the part of the suite that depends most on how requests and answers travel.
func RunTransport(t *testing.T, open Opener) {
	runSubtests(t, open, []subtest{{"commands", testCommands}, {"interrupt", testInterrupt}, {"output", testOutput},
		{"files", testFiles}, {"processes", testProcesses}, {"pause", testPause}, {"approvals", testApprovals}})
}

// RunLanguages checks code in Python and JavaScript.
func RunLanguages(t *testing.T, open Opener) {
	runSubtests(t, open, []subtest{{"languages", testLanguages}})
}

func runSubtests(t *testing.T, open Opener, tests []subtest) {
	lanetest.SkipShort(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t)
			defer func() {
				if err := g.Close(); err != nil {
					t.Errorf("the gate does not close: %v", err)
				}
			}()
			test.test(t, g)
		})
	}
}

// openSession opens a session without special options.
func openSession(t *testing.T, g gate.Opener) gate.Session {
	t.Helper()
	s, err := g.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closeSession closes a session that must not have stopped early.
func closeSession(t *testing.T, s gate.Session) proposal.Report {
	t.Helper()
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func shellProposal(id, text string) proposal.Proposal { return proposal.Proposal{ID: id, Run: text} }

func doProposal(t *testing.T, s gate.Session, p proposal.Proposal) proposal.Record {
	t.Helper()
	r, err := s.Do(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	return r
}

// doSuccessfully is doProposal for what must run.
func doSuccessfully(t *testing.T, s gate.Session, p proposal.Proposal) *proposal.Result {
	t.Helper()
	r := doProposal(t, s, p)
	if r.Result == nil {
		t.Fatalf("%s did not run: %+v", p.ID, r.Decision)
	}
	return r.Result
}

// errorCode returns the code of an error, "" for none.
func errorCode(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}

// firstRule returns the rule of the first reason of a decision.
func firstRule(r proposal.Record) string {
	if len(r.Decision.Reasons) == 0 {
		return ""
	}
	return r.Decision.Reasons[0].Rule
}
