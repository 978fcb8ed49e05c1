// SPDX-License-Identifier: Apache-2.0

// Package exporttest writes logs of runs, for tests of packages that read logs.
package exporttest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Start is the time at which every run of this package starts. Entries are 10 ms apart.
var Start = time.Date(2026, 11, 21, 4, 5, 6, 0, time.UTC)

// signingKey is public and for tests only, so that a log is the same each time. Its seed is the
// SHA-256 of "fumehood test key fumehood/test".
const signingKey = "PRIVATE+KEY+fumehood/test+944a20a4+AQjin2poj1yXtokirNGxjUcpTXeOXgzqDl042bMNwsQR"

// A Run describes the run to write.
type Run struct {
	ID    string
	Text  string           // replaces every untrusted text
	Extra []proposal.Event // for the first command, after its own
	Cut   bool             // leave out the seal and the end
}

type object = map[string]any

// Write writes the log of a run with one of each: an allowed command that did
// various things, one that was denied, one that waits for approval, and one that
// fails and was only observed by policy.
func Write(path string, r Run) (*proposal.Audit, error) {
	at := Start
	signer, err := audit.NewSigner(signingKey)
	if err != nil {
		return nil, err
	}
	log, err := audit.Create(path,
		audit.Options{Origin: "fumehood/test", Signer: signer,
			Now: func() time.Time { at = at.Add(10 * time.Millisecond); return at }})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for _, e := range r.logEntries() {
		if _, err := log.Append(e.kind, e.body); err != nil {
			return nil, err
		}
	}
	a := &proposal.Audit{Origin: log.Origin(), Key: log.Key(), Entries: log.Entries(), Checkpoint: log.Checkpoint()}
	if r.Cut {
		return a, nil
	}
	a.Checkpoint, err = log.Seal()
	return a, err
}

// WriteLog returns the log of r. If r has no id, it is given one.
func WriteLog(t testing.TB, r Run) ([]byte, *proposal.Audit) {
	t.Helper()
	if r.ID == "" {
		r.ID = "20261121-040506-7f3a"
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, err := Write(path, r)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, a
}

type entry struct {
	kind string
	body any
}

// Description returns the run as the log describes it.
func (r Run) Description() proposal.Run {
	s := r.Text
	return proposal.Run{ID: r.ID, Proposer: s, PlanDigest: "sha256:11", Workspace: "w", HeadSHA: "aa" + s,
		BaseSHA: "bb", PR: 7, Repository: "acme/api", Fork: s,
		Mode: "enforce", Policy: "sha256:22", Rootfs: "host", Runsc: "v1", Version: "v0.3.0", Start: Start,
		Policies: []proposal.PolicyOrigin{{Kind: "shipped", Digest: "sha256:33"}, {Kind: "bundle", Revision: "r7" + s},
			{Kind: "base", Commit: "cc"}}}
}

func (r Run) logEntries() []entry {
	s := r.Text
	list := []entry{
		{"run", r.Description()},
		{"decision", decisionEntry("unit", "go test ./..."+s, proposal.Decision{Effect: proposal.Allow, Rules: []string{"go.test"},
			Grant: &proposal.Grant{Limits: proposal.Limits{Pids: 9}, Env: map[string]string{"CI": "not exported"},
				Network: []string{"proxy.example"}},
			Reasons: []proposal.Reason{{Rule: "team.slow", Effect: proposal.Deny, Message: "slow" + s, Command: 0,
				Observed: true}}})},
		{"decision", decisionEntry("fetch", "curl https://evil.example"+s, proposal.Decision{Rules: []string{"net.fetch"},
			Reasons: []proposal.Reason{{Rule: "net.fetch", Message: "needs the network" + s, Suggestion: s, Text: s,
				Command: 0, Alternatives: []string{s}}}})},
		{"decision", decisionEntry("ask", "make"+s, proposal.Decision{Effect: proposal.Ask, Rules: []string{"make.ask"}, Reasons: []proposal.Reason{{Rule: "make.ask", Effect: proposal.Ask, Command: -1}}})},
		{"start", object{"id": "unit", "decision": 1}},
		{"events", object{"id": "unit", "decision": 1, "first": 0, "events": append(commandEvents(s), r.Extra...)}},
	}
	if r.Cut {
		return list
	}
	result := proposal.Result{Status: proposal.Exited, ExitCode: 1, WallMS: 20, CPUMS: 3,
		Stdout:  proposal.Stream{Bytes: 5, Redacted: []proposal.Redaction{{Rule: "github-pat", Count: 2}}},
		Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}},
		Observations: &proposal.Observations{Counts: proposal.Counts{Execs: 2, Refused: 1},
			Findings: []proposal.Finding{{Rule: "event.metadata", Message: "spoke to" + s,
				Event: proposal.Event{Kind: proposal.EventConnect, Pid: 4, Program: "/bin/x" + s, Path: s,
					Address: "tcp 169.254.169.254:80", Time: Start.Add(time.Second)}}}}}
	return append(list,
		entry{"result", object{"id": "unit", "decision": 1, "result": result}},
		entry{"later", object{"kind": "that this version does not know"}},
		entry{"end", object{"totals": proposal.Totals{Proposed: 3, Allowed: 1, Denied: 1, Asked: 1, Failed: 1},
			"error": nil}})
}

func decisionEntry(id, text string, d proposal.Decision) object {
	words := []proposal.Word{{Value: "go", Static: true}, {Value: text, Static: true}}
	return object{"id": id, "decision": d,
		"proposal": proposal.Proposal{ID: id, Run: text, Why: text, Cwd: text, Env: map[string]string{"TOKEN": "hunter22"}, Stdin: "hunter23", Network: []string{text}},
		"analysis": proposal.Analysis{Canonical: text, Commands: []proposal.Command{{Program: "go", Args: words}, {Index: 1, Program: "tail", Args: words}}}}
}

func commandEvents(s string) []proposal.Event {
	exec := func(kind string, d proposal.ExecDecision) proposal.Event {
		return proposal.Event{Command: "unit", Kind: kind, Time: Start.Add(50 * time.Millisecond), Pid: 8, Parent: 7,
			Program: "/usr/bin/curl", Decision: &d,
			Exec: &proposal.Exec{Command: "unit", Path: "/usr/bin/curl" + s, Argv: []string{"curl", s}, Pid: 8,
				Parent: 7, Layer: proposal.LayerRootfs, Digest: "sha256:44"}}
	}
	why := &proposal.Reason{Rule: "exec.network-client", Message: "starts curl" + s, Command: -1}
	return []proposal.Event{
		exec(proposal.EventExec, proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.rootfs"}}),
		exec(proposal.EventExec, proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"team.exec"},
			Observed: true, Reason: why}),
		exec(proposal.EventRefused, proposal.ExecDecision{Rules: []string{"exec.network-client"}, Reason: why}),
		{Command: "unit", Kind: proposal.EventWrite, Path: "/etc/x" + s},
		FlowEvent(proposal.EventLookup, proposal.Egress{Kind: points.EgressLookup, Name: "evil.example" + s, Type: "A"},
			proposal.EgressDecision{Rules: []string{"egress.none"}}, "policy"),
		FlowEvent(proposal.EventConnection,
			proposal.Egress{Kind: points.EgressConnect, Name: "proxy.example", Address: "192.0.2.1", Port: 443,
				Protocol: "tcp"}, proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.host"}}, ""),
		FlowEvent(proposal.EventConnection,
			proposal.Egress{Kind: points.EgressConnect, Address: "10.0.0.1", Port: 22, Protocol: "tcp"},
			proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.host"}}, "address"),
		FlowEvent(proposal.EventRequest,
			proposal.Egress{Kind: points.EgressRequest, Name: "proxy.example", Port: 443, Protocol: "https",
				Method: "GET", Path: "/a" + s, Secrets: []proposal.EgressSecret{{Rule: "aws", Where: "url"}}},
			proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.host"}}, ""),
	}
}

// FlowEvent returns an event of the gateway.
func FlowEvent(kind string, x proposal.Egress, d proposal.EgressDecision, code string) proposal.Event {
	return proposal.Event{Command: "unit", Kind: kind, Time: Start.Add(60 * time.Millisecond),
		Flow: &proposal.Flow{Egress: x, Decision: d, Code: code, Sent: 1, Received: 2, WallMS: 3}}
}

// ManyFlows returns n allowed connections and a refused one among them.
func ManyFlows(n int) []proposal.Event {
	var list []proposal.Event
	for i := range n {
		list = append(list, FlowEvent(proposal.EventConnection,
			proposal.Egress{Kind: points.EgressConnect, Name: fmt.Sprintf("h%d.example", i), Port: 443},
			proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.host"}}, ""))
	}
	return append(list, FlowEvent(proposal.EventConnection,
		proposal.Egress{Kind: points.EgressConnect, Name: "last.example", Port: 22},
		proposal.EgressDecision{Rules: []string{"egress.none"}}, "policy"))
}
