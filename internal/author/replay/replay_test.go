// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A scene is a sandbox in which the commands of each proposal do what the test specifies.
type scene struct {
	order.Runner
	see    func(proposal.Event)
	events map[string][]proposal.Event
}

func (s *scene) Prepare(sandbox.Execution, bool) {}

func (s *scene) Run(_ context.Context, x sandbox.Execution) (proposal.Result, error) {
	for _, e := range s.events[x.ID] {
		e.Command = x.ID
		s.see(e)
	}
	empty := proposal.Stream{SHA256: fmt.Sprintf("%x", sha256.Sum256(nil)), Head: []byte{}, Tail: []byte{}}
	return proposal.Result{Status: proposal.Exited, Stdout: empty, Stderr: empty, Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}},
		Observations: &proposal.Observations{Complete: true}}, nil
}

func (s *scene) Close() error { return nil }

// closed is a network that reaches nothing.
type closed struct{}

func (closed) Open(context.Context, []string, sandbox.Options) (order.Link, error) {
	return order.Link{}, nil
}
func (closed) Begin(context.Context, sandbox.Execution, context.CancelCauseFunc) error { return nil }
func (closed) End() error                                                              { return nil }

var digest = "sha256:" + strings.Repeat("0", 64)

// played runs proposals through the real stages under the policy and returns the log
// and the report.
func played(t testing.TB, id string, o policy.Options, events map[string][]proposal.Event, proposals ...proposal.Proposal) (log string, r proposal.Report) {
	t.Helper()
	engine, err := policy.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "audit.jsonl")
	written, err := audit.Create(log, audit.Options{Origin: "test/" + id})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{events: events}
	observer, err := observe.New(written, func(context.Context, proposal.Event) ([]proposal.Finding, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	s.see = observer.AddEvent
	u, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stages := order.Stages{Checker: order.Checker{Policy: engine}, Log: written, Redactor: u, Lineage: &lineage.ProgramDecider{Confine: policy.Confine}, Observer: observer, Network: closed{}, Now: time.Now,
		Start: func(sandbox.Options) (order.Runner, error) { return s, nil }}
	mode := "enforce"
	if o.Observe {
		mode = "observe"
	}
	about := engine.Context()
	r, err = stages.Run(t.Context(), proposal.Plan{Proposals: proposals, Digest: digest},
		proposal.Run{ID: id, Mode: mode, Context: &about, Proposer: "tester", PlanDigest: digest, Workspace: "w", Policy: engine.Digest(), Rootfs: "host " + digest, Runsc: "x", Version: "x", Enforced: []string{}, Unenforced: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := written.Seal(); err != nil {
		t.Fatal(err)
	}
	return log, r
}

func exec(path, layer string, effect proposal.Effect, rule string) proposal.Event {
	e := proposal.Event{Kind: proposal.EventExec, Pid: 7, Program: path, Exec: &proposal.Exec{Path: path, Layer: layer, Argv: []string{path}}}
	e.Decision = &proposal.ExecDecision{Effect: effect, Rules: []string{rule}}
	if effect == proposal.Deny {
		e.Kind, e.Decision.Reason = proposal.EventRefused, &proposal.Reason{Rule: rule, Message: "no", Command: -1}
	}
	return e
}

func lookup(name string, effect proposal.Effect, rule string) proposal.Event {
	d := proposal.EgressDecision{Effect: effect, Rules: []string{rule}}
	return proposal.Event{Kind: proposal.EventLookup, Flow: &proposal.Flow{Decision: d,
		Egress: proposal.Egress{Kind: points.EgressLookup, Phase: proposal.PhaseRun, Name: name, Type: "A", Protocol: "udp"}}}
}

func layer(role policy.Role, rego string) policy.Layer {
	return policy.Layer{Name: "candidate", Role: role, Files: []policy.File{{Name: "x.rego", Content: []byte(rego)}}}
}

func again(t testing.TB, o policy.Options, paths ...string) replay.Outcome {
	t.Helper()
	engine, err := policy.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	past, err := replay.Read(paths, replay.Options{Parse: parse.Analyze})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := replay.Redecide(t.Context(), past, engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

const hosts = "package fumehood.proposal\n\nnetwork contains {\"rule\": \"x.host\", \"host\": \"go.example\"} if true\n"

// spoken returns o's changes as text.
func spoken(o replay.Outcome) []string {
	var all []string
	for _, c := range o.Changes {
		all = append(all, fmt.Sprintf("%s %s %q ×%d: %s by %s, now %s by %s", c.Kind, c.ID, strings.TrimSpace(c.Text), c.Times, c.From.Effect, c.From.Rule, c.To.Effect, c.To.Rule))
	}
	return all
}

// TestAgain checks that every kind of decision is made again, under the grant of
// the new policy, and that nothing is decided for commands that would not run.
func TestAgain(t *testing.T) {
	under := policy.Options{Layers: []policy.Layer{layer(policy.Opens, hosts)}}
	log, r := played(t, "r1", under, map[string][]proposal.Event{
		"unit": {exec("/usr/bin/git", "rootfs", proposal.Allow, "exec.rootfs"), exec("/usr/bin/git", "rootfs", proposal.Allow, "exec.rootfs"), exec("/tmp/x.test", "written", proposal.Allow, "exec.built"),
			exec("/usr/bin/sudo", "rootfs", proposal.Deny, "exec.privilege"), lookup("go.example", proposal.Allow, "egress.granted")},
		"list": {exec("/usr/bin/ls", "rootfs", proposal.Allow, "exec.rootfs"), exec("/usr/bin/"+strings.Repeat("x", 5000), "rootfs", proposal.Allow, "exec.rootfs")},
	}, proposal.Proposal{ID: "unit", Run: "go test ./...", Network: []string{"go.example"}}, proposal.Proposal{ID: "list", Run: "ls"}, proposal.Proposal{ID: "bad", Run: "sudo id"})
	for name, c := range map[string]struct {
		under policy.Options
		want  []string
		moot  int
	}{
		"the same": {under, nil, 0},
		"no host":  {policy.Options{}, []string{`proposal unit "go test ./..." ×1: allow by code.run, now deny by network.none`}, 4},
		"programs": {policy.Options{Layers: []policy.Layer{under.Layers[0], layer(policy.Restricts, "package fumehood.exec\n\ndeny contains {\"rule\": \"x.git\", \"message\": \"m\", \"suggestion\": \"s\"} if input.name == \"git\"\n")}},
			[]string{`exec unit "/usr/bin/git" ×2: allow by exec.rootfs, now deny by x.git`}, 0},
		"names": {policy.Options{Layers: []policy.Layer{under.Layers[0], layer(policy.Restricts, "package fumehood.egress\n\ndeny contains {\"rule\": \"x.name\", \"message\": \"m\", \"suggestion\": \"s\"} if input.name == \"go.example\"\n")}},
			[]string{`egress unit "go.example" ×1: allow by egress.granted, now deny by x.name`}, 0},
		"an error": {policy.Options{Layers: []policy.Layer{under.Layers[0], layer(policy.Restricts, "package fumehood.command\n\ndeny contains {\"rule\": \"x.n\", \"message\": \"m\", \"suggestion\": \"s\"} if to_number(input.command.sub) > 3\n")}},
			[]string{
				`proposal unit "go test ./..." ×1: allow by code.run, now stop by policy.eval`,
				`proposal list "ls" ×1: allow by text.read, now stop by policy.eval`,
				`proposal bad "sudo id" ×1: deny by default.no-rule, now stop by policy.eval`,
			}, 5},
	} {
		o := again(t, c.under, log)
		got := spoken(o)
		for i := range got { // this test does not check which rule refuses sudo
			got[i] = strings.ReplaceAll(got[i], "privilege.none", "default.no-rule")
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if o.Runs != 1 || o.Proposals != 3 || o.Moot != c.moot || o.Omitted != 1 {
			t.Errorf("%s: %+v", name, o)
		}
	}
	data, err := report.JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := again(t, policy.Options{}, path); len(o.Changes) != 1 || o.Proposals != 3 {
		t.Errorf("of the report: %+v", o)
	}
	if o := again(t, policy.Options{}, path, log); o.Runs != 1 || o.Egress+o.Moot != 4 {
		t.Errorf("of both: %+v", o)
	}
}

// byText is a program that a text's process started or was refused.
func byText(effect proposal.Effect, start, rule string, argv ...string) proposal.Event {
	e := exec("/usr/bin/"+argv[0], "rootfs", effect, rule)
	e.Decision.Start = start
	x := e.Exec
	x.Text, x.Named, x.Argv, x.Cwd = true, x.Path, argv, "/workspace"
	return e
}

// TestStarts checks that programs started by a text's shell are decided again by
// the text and by fumehood.command on the real argv.
func TestStarts(t *testing.T) {
	const bytes = "package fumehood.command\n\ndeny contains {\"rule\": \"x.bytes\", \"message\": \"m\", \"suggestion\": \"s\"} if {\n\tinput.command.program == \"wc\"\n\t\"-c\" in input.command.argv\n}\n"
	steered := byText(proposal.Allow, lineage.StartDecided, "text.read", "wc", "-c", "y")
	steered.Exec.Variables = []string{"X"}
	log, _ := played(t, "r1", policy.Options{}, map[string][]proposal.Event{"count": {
		byText(proposal.Allow, lineage.StartPredicted, "text.read", "cat", "o"),
		byText(proposal.Allow, lineage.StartDecided, "text.read", "wc", "-l", "x"),
		byText(proposal.Allow, lineage.StartDecided, "text.read", "wc", "-c", "x"),
		byText(proposal.Deny, lineage.StartRefused, "x.bytes", "wc", "-c", "z"),
		steered,
	}}, proposal.Proposal{ID: "count", Run: "wc $(cat o) x"})
	denies := policy.Options{Layers: []policy.Layer{layer(policy.Restricts, bytes)}}
	for name, c := range map[string]struct {
		under policy.Options
		want  []string
	}{
		"as then": {policy.Options{}, []string{`exec count "/usr/bin/wc" ×1: deny by x.bytes, now allow by exec.rootfs`}},
		"denied":  {denies, []string{`exec count "/usr/bin/wc" ×1: allow by text.read, now deny by x.bytes`}},
	} {
		o := again(t, c.under, log)
		if diff := cmp.Diff(c.want, spoken(o)); diff != "" || o.Omitted != 1 || o.Execs != 4 {
			t.Errorf("%s: %+v %s", name, o, diff)
		}
	}
}

// TestGrants checks that a proposal that stays allowed with other limits or
// programs is a change, and that less and more are distinguished.
func TestGrants(t *testing.T) {
	lowered := policy.Options{Layers: []policy.Layer{layer(policy.Restricts, "package fumehood.proposal\n\nlimits contains {\"rule\": \"x.low\", \"wall_ms\": 1000, \"pids\": 9} if true\n")}}
	kind := policy.Options{Layers: []policy.Layer{layer(policy.Allows, "package fumehood.command\n\nexec contains {\"rule\": \"x.built\", \"kind\": \"built\"} if input.command.program == \"ls\"\n")}}
	for name, c := range map[string]struct {
		was, is policy.Options
		want    []string
		less    bool
	}{
		"the same": {lowered, lowered, nil, false},
		"less":     {policy.Options{}, lowered, []string{"wall 2h0m0s, pids 1024", "wall 1s, pids 9"}, true},
		"more":     {lowered, policy.Options{}, []string{"wall 1s, pids 9", "wall 2h0m0s, pids 1024"}, false},
		"programs": {policy.Options{}, kind, []string{"programs none", "programs built"}, false},
		"without":  {kind, policy.Options{}, []string{"programs built", "programs none"}, true},
	} {
		log, _ := played(t, "r1", c.was, nil, proposal.Proposal{ID: "list", Run: "ls"}, proposal.Proposal{ID: "bad", Run: "sudo id"})
		var got []string
		for _, change := range again(t, c.is, log).Changes {
			if got = append(got, change.From.Message, change.To.Message); change.Kind != replay.KindGrant || change.IsStricter() != c.less {
				t.Errorf("%s: %+v", name, change)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAgainInContext checks that each run is decided under its own context, and that runs of
// different ones share no answer.
func TestAgainInContext(t *testing.T) {
	var logs []string
	for i, repository := range []string{"acme/shop", "acme/other", ""} {
		log, _ := played(t, fmt.Sprint(i), policy.Options{Context: proposal.Context{Repository: repository}}, nil, proposal.Proposal{ID: fmt.Sprintf("run-%d", i), Run: "ls"})
		logs = append(logs, log)
	}
	home := layer(policy.Restricts, `package fumehood.command

deny contains {"rule": "x.home", "message": "m", "suggestion": "s"} if input.context.repository != "acme/shop"
`)
	var got []string
	for _, change := range again(t, policy.Options{Layers: []policy.Layer{home}}, logs...).Changes {
		got = append(got, change.ID)
	}
	if diff := cmp.Diff([]string{"run-1", "run-2"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAgainGuessesNothing checks that facts which the past does not have in full
// are counted, and decided only if the missing part does not matter.
func TestAgainGuessesNothing(t *testing.T) {
	changed := func(change func(*proposal.Exec)) []proposal.Event {
		e := exec("/usr/bin/git", "rootfs", proposal.Allow, "exec.rootfs")
		e.Exec.Argv = []string{"git", "status"}
		change(e.Exec)
		return []proposal.Event{e}
	}
	argv := []string{"git", "status", strings.Repeat("x", 3000), "--secret"}
	for name, c := range map[string]struct {
		event          []proposal.Event
		rule           string
		execs, omitted int
	}{
		"whole":           {changed(func(*proposal.Exec) {}), `"--secret" in input.argv`, 1, 0},
		"argv, looked at": {changed(func(x *proposal.Exec) { x.Argv = argv }), `"--secret" in input.argv`, 0, 1},
		"argv, not":       {changed(func(x *proposal.Exec) { x.Argv = argv }), `input.name == "x"`, 1, 0},
		"env":             {changed(func(x *proposal.Exec) { x.Env = []string{strings.Repeat("GIT_X", 70), "GIT_EXEC_PATH"} }), `"GIT_EXEC_PATH" in input.env`, 0, 1},
		"same":            {changed(func(x *proposal.Exec) { x.Same = []string{"/" + strings.Repeat("x", 5000), "/usr/bin/curl"} }), `"curl" in input.names`, 0, 1},
		"no decision":     {[]proposal.Event{{Kind: proposal.EventExec, Pid: 7, Exec: &proposal.Exec{Path: "/usr/bin/git", Layer: "rootfs"}}}, `input.name == "x"`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log, _ := played(t, "r1", policy.Options{}, map[string][]proposal.Event{"list": c.event}, proposal.Proposal{ID: "list", Run: "ls"})
			rego := "package fumehood.exec\n\ndeny contains {\"rule\": \"x.x\", \"message\": \"m\", \"suggestion\": \"s\"} if " + c.rule + "\n"
			o := again(t, policy.Options{Layers: []policy.Layer{layer(policy.Restricts, rego)}}, log)
			if o.Execs != c.execs || o.Omitted != c.omitted || len(o.Changes) != 0 {
				t.Errorf("%d decided, %d omitted, want %d, %d; changes %v", o.Execs, o.Omitted, c.execs, c.omitted, spoken(o))
			}
		})
	}
}

// TestRunsOfOneID checks that a copy of a run counts once, and that no run hides
// another with the same id.
func TestRunsOfOneID(t *testing.T) {
	ls := proposal.Proposal{ID: "list", Run: "ls"}
	first, _ := played(t, "r1", policy.Options{}, nil, ls)
	for name, c := range map[string]struct {
		events    map[string][]proposal.Event
		proposals []proposal.Proposal
		runs      int
	}{
		"as much":          {nil, []proposal.Proposal{ls}, 1},
		"another proposal": {nil, []proposal.Proposal{{ID: "list", Run: "ls -l"}}, 2},
		"one more":         {nil, []proposal.Proposal{ls, {ID: "b", Run: "ls"}}, 2},
		"a program":        {map[string][]proposal.Event{"list": {exec("/usr/bin/git", "rootfs", proposal.Allow, "exec.rootfs")}}, []proposal.Proposal{ls}, 2},
		"a connection":     {map[string][]proposal.Event{"list": {lookup("go.example", proposal.Deny, "egress.host")}}, []proposal.Proposal{ls}, 2},
	} {
		other, _ := played(t, "r1", policy.Options{}, c.events, c.proposals...)
		if o := again(t, policy.Options{}, first, other); o.Runs != c.runs {
			t.Errorf("%s: %d runs, want %d", name, o.Runs, c.runs)
		}
	}
}

// TestDirection checks that stricter and looser changes are distinguished.
func TestDirection(t *testing.T) {
	for _, c := range []struct {
		from, to string
		stricter bool
	}{{"allow", "deny", true}, {"allow", "ask", true}, {"ask", "deny", true}, {"deny", "stop", true}, {"deny", "allow", false}, {"ask", "allow", false}, {"deny", "ask", false}} {
		if got := (replay.Change{From: replay.Answer{Effect: c.from}, To: replay.Answer{Effect: c.to}}).IsStricter(); got != c.stricter {
			t.Errorf("%s to %s: stricter %v", c.from, c.to, got)
		}
	}
}

func codeOf(err error) string {
	var s *proposal.StopError
	if errors.As(err, &s) {
		return s.Code
	}
	return fmt.Sprint(err)
}

// TestOnlyWhatVerifies checks that nothing is used from a log that was altered anywhere.
func TestOnlyWhatVerifies(t *testing.T) {
	log, _ := played(t, "r1", policy.Options{}, nil, proposal.Proposal{ID: "unit", Run: "go test ./..."})
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	read := func(content []byte, o replay.Options) (replay.Past, error) {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		o.Parse = parse.Analyze
		return replay.Read([]string{path}, o)
	}
	for _, at := range []string{"go test", `"allow"`, "sealed"} {
		changed := []byte(strings.Replace(string(content), at, strings.ToUpper(at), 1))
		if _, err := read(changed, replay.Options{}); codeOf(err) != "replay.unverified" {
			t.Errorf("%s changed: %v", at, err)
		}
	}
	lines := strings.SplitAfter(string(content), "\n")
	for i := 1; i < len(lines)-1; i++ { // a run that was killed
		past, err := read([]byte(strings.Join(lines[:i], "")), replay.Options{})
		if err != nil && codeOf(err) != "replay.empty" || len(past.Runs) > 0 && past.Runs[0].Sealed {
			t.Errorf("%d lines: %v, %+v", i, err, past)
		}
	}
	if past, err := read(content, replay.Options{}); err != nil || !past.Runs[0].Verified || !past.Runs[0].Sealed {
		t.Errorf("as written: %v, %+v", err, past)
	}
	changed := []byte(strings.Replace(string(content), `"kind":"end"`, `"kind":"dne"`, 1))
	if past, err := read(changed, replay.Options{Unverified: true}); err != nil || past.Runs[0].Verified || len(past.UnverifiedFiles()) != 1 {
		t.Errorf("unverified: %v, %+v", err, past)
	}
}

// TestOddFiles checks that all files that are not a past are refused.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "replay.unreadable",
		"/dev/zero":                "replay.unreadable",
		write("empty.jsonl", ""):   "replay.malformed",
		write("x.json", "{}"):      "replay.malformed",
		write("r.json", `{"schema":"fumehood.report/v1","records":7}`):                 "replay.malformed",
		write("h.jsonl", `{"key":"x","origin":"o","schema":"fumehood.audit/v1"}`+"\n"): "replay.unverified",
	} {
		if _, err := replay.Read([]string{path}, replay.Options{Parse: parse.Analyze}); codeOf(err) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func writeFile(t testing.TB, dir string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, "x.jsonl")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
