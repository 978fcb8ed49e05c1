// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A step's begin and end are printed on a terminal, and its end on a pipe, where only set-up also has its begin. Nothing in its id
// reaches the terminal as an escape sequence.
func TestProgress(t *testing.T) {
	end := gate.Step{Proposal: "unit\x1b", Number: 2, Of: 3, Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, WallMS: 1500}}
	begin := end
	begin.Result = nil
	for name, c := range map[string]struct {
		p    Progress
		want string
	}{
		"pipe":                    {Progress{}, "fumehood: [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal":                {Progress{on: true, color: true}, "\x1b[2m…  [2/3] unit\\u001b\x1b[0m\x1b[K\r\x1b[K\x1b[31m✗\x1b[0m  [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal without colors": {Progress{on: true}, "…  [2/3] unit\\u001b\x1b[K\r\x1b[K✗  [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
	} {
		if got := printed(c.p, begin, end); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	begin.Setup, begin.Of = true, 0
	if got, want := printed(Progress{}, begin), "fumehood: unit\\u001b: started\n"; got != want {
		t.Errorf("set-up of a session begins: %q, want %q", got, want)
	}
}

// Each outcome has its own mark and words; what does not begin has no time.
func TestOutcomes(t *testing.T) {
	denied := proposal.Decision{Effect: proposal.Deny, Reasons: []proposal.Reason{{Effect: proposal.Deny, Rule: "git.push\x1b"}}}
	asked := proposal.Decision{Effect: proposal.Ask, Reasons: []proposal.Reason{{Effect: proposal.Ask, Rule: "org.review"}}}
	for want, s := range map[string]gate.Step{
		"✓  [1/2] a: succeeded in 20ms\n":           {Result: &proposal.Result{Status: proposal.Exited, WallMS: 20}},
		"✗  [1/2] a: timed out in 2m0s\n":           {Result: &proposal.Result{Status: proposal.TimedOut, WallMS: 120000}},
		"–  [1/2] a: not run\n":                     {Result: &proposal.Result{Status: proposal.NotRun}},
		"⛔ [1/2] a: denied by git.push\\u001b\n":    {Refused: true, Decision: denied},
		"✋ [1/2] a: needs approval by org.review\n": {Refused: true, Decision: asked},
	} {
		s.Proposal, s.Number, s.Of = "a", 1, 2
		if got := printed(Progress{on: true}, s); got != "\x1b[K"+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What runs is shown with its time, its limit, and the last line that it printed, cut.
func TestShownWhileItRuns(t *testing.T) {
	var out strings.Builder
	clock := time.Unix(0, 0)
	p := Progress{w: &out, on: true, now: func() time.Time { return clock }, run: &runningStep{}}
	p.PrintStep(gate.Step{Proposal: "unit", Number: 1, Of: 2, Decision: proposal.Decision{Grant: &proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(2 * time.Minute)}}}})
	p.endStep() // the ticker, which reads the clock
	p.run.name, p.run.stop = "[1/2] unit", make(chan struct{})
	p.OutputPrinter()(proposal.Chunk{Data: []byte("ok a\nok b \x1b[2J\n")})
	clock = clock.Add(83*time.Second + 200*time.Millisecond)
	out.Reset()
	p.showStep()
	if want := "…  [1/2] unit 1m23s of 2m0s: ok b \\u001b[2J\x1b[K\r"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	p.OutputPrinter()(proposal.Chunk{Data: []byte(strings.Repeat("x", 500) + "\n\n")})
	out.Reset()
	p.showStep()
	if got := strings.TrimSuffix(out.String(), "\x1b[K\r"); utf8.RuneCountInString(got) != maxShown+1 || strings.Contains(got, "ok b") {
		t.Errorf("%q", got)
	}
	p.endStep()
	out.Reset()
	p.showStep()
	if out.Len() > 0 || (Progress{}).OutputPrinter() != nil {
		t.Errorf("shown after it ended: %q", out.String())
	}
}

// Layers are mentioned once, after set-up of more than 20 s that no layer keeps.
func TestLayersAreMentioned(t *testing.T) {
	setup := func(ms int64, layer *proposal.Layer) gate.Step {
		return gate.Step{Proposal: "s", Number: 1, Of: 3, Setup: true, Result: &proposal.Result{Status: proposal.Exited, WallMS: ms, Layer: layer}}
	}
	command := gate.Step{Proposal: "c", Number: 3, Of: 3, Result: &proposal.Result{Status: proposal.Exited}}
	for name, c := range map[string]struct {
		steps []gate.Step
		want  int
	}{
		"short":         {[]gate.Step{setup(20000, nil), command}, 0},
		"long":          {[]gate.Step{setup(15000, nil), setup(6000, nil), command, command}, 1},
		"kept":          {[]gate.Step{setup(30000, &proposal.Layer{Kept: true}), command}, 0},
		"private layer": {[]gate.Step{setup(30000, &proposal.Layer{Kept: true, Private: true}), command}, 1},
		"command":       {[]gate.Step{{Proposal: "c", Number: 1, Of: 1, Result: &proposal.Result{Status: proposal.Exited, WallMS: 90000}}}, 0},
	} {
		got := printed(Progress{}, c.steps...)
		if n := strings.Count(got, "docs/CACHE.md"); n != c.want {
			t.Errorf("%s: mentioned %d times, want %d:\n%s", name, n, c.want, got)
		}
	}
}

func printed(p Progress, steps ...gate.Step) string {
	var out strings.Builder
	p.w, p.run, p.now = &out, &runningStep{}, func() time.Time { return time.Time{} }
	for _, s := range steps {
		p.PrintStep(s)
	}
	return out.String()
}
