// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	voice "github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An errand is one proposal and its expected result.
type errand struct {
	id, run, code, cwd, phase string
	network                   []string

	fails  bool          // it runs, and its exit code is not 0
	denied string        // it does not run: the rule that denies it
	within time.Duration // it ends in that time
	says   []string      // in its output
	hides  []string      // never in its output
	// refused are pairs of a code or rule and a recorded destination, such as
	// "egress.publish registry.example:443".
	refused []string
}

// planOf writes errands as the desk's plan.
func (d desk) planOf(t *testing.T, errands []errand) {
	t.Helper()
	type item struct {
		ID       string   `json:"id"`
		Run      string   `json:"run,omitempty"`
		Code     string   `json:"code,omitempty"`
		Language string   `json:"language,omitempty"`
		Cwd      string   `json:"cwd,omitempty"`
		Phase    string   `json:"phase,omitempty"`
		Network  []string `json:"network,omitempty"`
		Timeout  string   `json:"timeout"`
	}
	p := struct {
		Schema    string `json:"schema"`
		Proposals []item `json:"proposals"`
	}{Schema: proposal.PlanSchema}
	for _, s := range errands {
		i := item{ID: s.id, Run: s.run, Code: s.code, Cwd: s.cwd, Phase: s.phase, Network: s.network, Timeout: "2m"}
		if s.code != "" {
			i.Language = "python"
		}
		p.Proposals = append(p.Proposals, i)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "plan.yaml", string(data))
}

// take runs errands with the hosts that they request granted, checks each, and
// checks that no processes or files remain.
func (n *internet) take(t *testing.T, d desk, errands []errand, more ...string) proposal.Report {
	t.Helper()
	d.planOf(t, errands)
	var hosts []string
	for _, s := range errands {
		hosts = append(hosts, s.network...)
	}
	slices.Sort(hosts)
	before := traces()
	report := n.run(t, d, "it", slices.Compact(hosts), more...)
	for i, s := range errands {
		t.Run(s.id, func(t *testing.T) { s.check(t, report.Records[i]) })
	}
	n.untouched(t)
	d.checkSealed(t, "it")
	d.checkNothingLeft(t, before)
	return report
}

func (s errand) check(t *testing.T, r proposal.Record) {
	t.Helper()
	if s.denied != "" {
		s.checkDenied(t, r)
		return
	}
	if r.Result == nil || r.Result.Status != proposal.Exited {
		t.Fatalf("did not run: %+v %+v", r.Decision.Reasons, r.Result)
	}
	out := string(r.Result.Stdout.Head) + string(r.Result.Stdout.Tail) + string(r.Result.Stderr.Head) + string(r.Result.Stderr.Tail)
	if (r.Result.ExitCode != 0) != s.fails {
		t.Errorf("exit code %d", r.Result.ExitCode)
	}
	took := time.Duration(r.Result.WallMS) * time.Millisecond
	t.Logf("%s, exit code %d", took, r.Result.ExitCode)
	if s.within > 0 && took > s.within {
		t.Errorf("took %s, want less than %s", took, s.within)
	}
	for _, want := range s.says {
		if !strings.Contains(out, want) {
			t.Errorf("does not say %q", want)
		}
	}
	for _, secret := range s.hides {
		if strings.Contains(out, secret) {
			t.Errorf("shows %q", secret)
		}
	}
	s.checkRecord(t, r)
	if t.Failed() {
		t.Logf("output:\n%s", out)
		for _, reach := range r.Result.Observations.Network {
			t.Logf("%+v", reach)
		}
	}
}

func (s errand) checkDenied(t *testing.T, r proposal.Record) {
	t.Helper()
	for _, reason := range r.Decision.Reasons {
		if reason.Rule == s.denied && r.Result == nil {
			return
		}
	}
	t.Errorf("not denied by %s: %+v %+v", s.denied, r.Decision.Reasons, r.Result)
}

// checkRecord checks that the recorded refusals are exactly the expected ones.
func (s errand) checkRecord(t *testing.T, r proposal.Record) {
	t.Helper()
	o := r.Result.Observations
	if o == nil || !o.Complete {
		t.Error("the record is not complete")
		return
	}
	var refused []string
	for _, reach := range o.Network {
		if reach.Refused {
			code := reach.Code
			if code == "policy" {
				code = reach.Rule
			}
			refused = append(refused, code+" "+reach.Destination())
		}
	}
	for _, want := range s.refused {
		if !slices.Contains(refused, want) {
			t.Errorf("no %q on record; there are %q", want, refused)
		}
	}
	if s.refused == nil && len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// checkComment checks that the report's comment has the texts, as a reader sees them.
func checkComment(t *testing.T, r proposal.Report, want ...string) {
	t.Helper()
	comment := voice.Markdown(r)
	for _, text := range want {
		if !strings.Contains(comment, text) {
			t.Errorf("the comment does not say %q", text)
		}
	}
	if t.Failed() {
		t.Log(comment)
	}
}

// operated gives the desk a separate operator: a home without anything of this
// machine's, and tools that are also visible in the sandbox.
func (d desk) operated(t *testing.T) desk {
	t.Helper()
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if tool, err := exec.LookPath("go"); err == nil {
		path = filepath.Dir(tool) + ":" + path
	}
	d.environ = []string{"PATH=" + path, "HOME=" + d.path("home"), "LANG=C.UTF-8"}
	return d
}

// file writes a file below the desk's directory, with its parents.
func (d desk) file(t *testing.T, name, format string, args ...any) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	d.write(t, name, format)
}

// grep returns a file at or below path that contains text, or "".
func grep(t *testing.T, path, text string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(path, func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if strings.Contains(string(data), text) {
			found = name
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
