// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// hostilePlan has code that hides what it does, a program that make starts, a key that is
// printed encoded, and files and variables of the host.
const hostilePlan = `
schema: fumehood.plan/v1
proposals:
  - {id: hidden, run: python3 -c 'exec(__import__("base64").b64decode("cHJpbnQoMSk="))'}
  - {id: native, run: python3 -c 'import ctypes; ctypes.CDLL("libc.so.6").system(b"id")'}
  - {id: fetch, run: make -s fetch}
  - {id: leak, run: make -s leak}
  - {id: environment, run: make -s stolen}
  - {id: host, run: cat /etc/shadow}
`

// TestE2ESameEveryWay: a hostile plan has the same decisions, refusals and redactions through
// the command, gate.Run and a session.
func TestE2ESameEveryWay(t *testing.T) {
	t.Setenv("FUMEHOOD_CACHE", jobtest.BuildCache(t))
	t.Setenv("CANARY", "canary-0b5e77aa")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	project, err := filepath.Abs("../../pkg/gate/testdata/project")
	if err != nil {
		t.Fatal(err)
	}
	p, problems := plan.Decode([]byte(hostilePlan), "plan.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := outcomes(throughCommand(t, project))
	g, err := gate.New(t.Context(), gate.Options{Workspace: project})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r, err := g.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("-command +gate.Run:\n%s", diff)
	}
	s, err := g.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range p.Proposals {
		if _, err := s.Do(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if r, err = s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("-command +session:\n%s", diff)
	}
}

// throughCommand runs hostilePlan through the real main.
func throughCommand(t *testing.T, workspace string) proposal.Report {
	t.Helper()
	dir := t.TempDir()
	planFile, reportFile := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(planFile, []byte(hostilePlan), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "run", "--setup", "none", "--plan", planFile, "--workspace", workspace, "--report", reportFile)
	cmd.Env = append(os.Environ(), asFumehood+"=1")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitRefused {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := report.Read(jobtest.ReadFile(t, reportFile), report.MaxDocument)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outcomes is what each record of r says, without times and texts.
func outcomes(r proposal.Report) (list []string) {
	for _, record := range r.Records {
		text := record.Proposal.ID + " " + record.Decision.Effect.String()
		for _, reason := range record.Decision.Reasons {
			text += " " + reason.Rule
		}
		if result := record.Result; result != nil {
			text += fmt.Sprintf(" exit %d, %d refused, %s %v", result.ExitCode, result.Observations.Counts.Refused, result.Stdout.SHA256, result.Stdout.Redacted)
		}
		list = append(list, text)
	}
	return list
}
