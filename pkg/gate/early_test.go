// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ownDirs lists a directory of each sandbox in dir.
func ownDirs(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "fumehood-*", "upper"))
	return list
}

// A run uses the sandbox that was started while the policy compiled, whatever limits its plan
// requests.
func TestEarly(t *testing.T) {
	tests := map[string]struct {
		plan    string
		ceiling proposal.Limits
	}{
		"usual":     {plan: "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo}, {id: b, run: ls -A}]"},
		"requested": {plan: "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo, limits: {pids: 2000}}, {id: b, run: ls -A, limits: {disk: 1GiB}}]"},
		"ceiling":   {plan: "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo}, {id: b, run: ls -A}]", ceiling: proposal.Limits{Pids: 100}},
	}
	for _, name := range sample.EveryNthKey(t, tests, 2, 3) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			p, during := decode(t, test.plan), []string(nil)
			g := newGateAlone(t, gate.Options{Plan: &p, Ceiling: test.ceiling, Progress: func(s gate.Step) {
				if s.Proposal == "a" && s.Result != nil {
					during = ownDirs(os.TempDir())
				}
			}})
			waited := waits(t, os.TempDir())
			report, err := g.Run(t.Context(), p)
			if err != nil || report.Totals.Succeeded != 2 || !report.Records[0].Result.NewSandbox || report.Records[1].Result.NewSandbox {
				t.Errorf("%v, %+v", err, report.Totals)
			}
			if len(during) != 1 || filepath.Dir(during[0]) != waited {
				t.Errorf("%q waited, and during the run there are %q", waited, during)
			}
			checkNothingLeft(t, os.TempDir(), nil)
			if name != "usual" {
				return
			}
			if report, err = g.Run(t.Context(), p); err != nil || report.Totals.Succeeded != 2 {
				t.Errorf("the second run: %v, %+v", err, report.Totals)
			}
		})
	}
}

// THREATS 70: a sandbox that no command needs is gone when the run has ended, and not in its
// report or log.
func TestEarlyUnused(t *testing.T) {
	denied := decode(t, "schema: fumehood.plan/v1\nproposals: [{id: a, run: curl https://example.com}]")
	t.Run("denied", func(t *testing.T) {
		health := &starts{}
		g := newGateAlone(t, gate.Options{Plan: &denied, Health: health})
		waits(t, os.TempDir())
		report, err := g.Run(t.Context(), denied)
		if err != nil || report.Records[0].Result != nil || report.Totals.Denied != 1 || len(health.took) > 0 {
			t.Errorf("%v, %+v, %+v", err, report, health)
		}
		checkNothingLeft(t, os.TempDir(), nil)
		without, err := newGateAlone(t, gate.Options{}).Run(t.Context(), denied)
		if err != nil || len(entries(t, report.Audit.File)) != len(entries(t, without.Audit.File)) {
			t.Error("the log differs from one without the sandbox", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		g := newGateAlone(t, gate.Options{Plan: &denied})
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, os.TempDir(), nil)
	})
	t.Run("invalid policy", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		broken := gate.Policy{Name: "broken", Files: map[string][]byte{"x.rego": []byte("package fumehood.command\nx if")}}
		if _, err := gate.New(t.Context(), gate.Options{Workspace: "testdata/project", Plan: &denied, Policies: []gate.Policy{broken}}); err == nil {
			t.Error("a policy that does not compile is used")
		}
		checkNothingLeft(t, os.TempDir(), nil)
	})
	t.Run("network", func(t *testing.T) {
		p := decode(t, "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo, network: [example.com]}]")
		newGateAlone(t, gate.Options{Plan: &p})
		if started := ownDirs(os.TempDir()); len(started) > 0 {
			t.Errorf("started: %q", started)
		}
	})
}
