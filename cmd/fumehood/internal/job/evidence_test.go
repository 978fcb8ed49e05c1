// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reporting returns a job that reports, with a key for logs or without.
func reporting(t *testing.T, key *audit.Signer, log *bytes.Buffer) *Job {
	t.Helper()
	j := &Job{console: action.NewConsole(log, func() string { return "token" }), dir: t.TempDir()}
	j.in.AuditKey, j.in.Artifact, j.in.Upload, j.runner.Attempt = key, "fumehood", action.UploadTrue, 2
	j.runner.Job = "report"
	return j
}

func auditKey(t *testing.T) *audit.Signer {
	t.Helper()
	text, err := audit.GenerateKey("acme.example/fumehood")
	if err != nil {
		t.Fatal(err)
	}
	s, err := audit.NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gathered returns a run whose log was in an artifact, and the log.
func gathered(t *testing.T, seal bool) (PlanRun, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, err := audit.Create(path, audit.Options{Origin: "fumehood/test"})
	if err != nil {
		t.Fatal(err)
	}
	if seal {
		if _, err := l.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	run := PlanRun{Report: proposal.Report{Audit: &proposal.Audit{Key: l.Key(), Checkpoint: l.Checkpoint()}}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path)
	if err == nil {
		// The log and the report do not match, which is found after the log was read.
		_ = run.checkLog(log)
	}
	if err != nil || run.audit == "" {
		t.Fatalf("%v, %+v", err, run)
	}
	return run, log
}

// Each sealed log is cosigned in a place of its own, and none that is refused or not sealed.
func TestKeepEvidence(t *testing.T) {
	key := auditKey(t)
	var said bytes.Buffer
	j := reporting(t, key, &said)
	first, log := gathered(t, true)
	unsealed, _ := gathered(t, false)
	last, lastLog := gathered(t, true)
	refused := first
	refused.substitute = true
	runs := []PlanRun{first, refused, unsealed, last}
	if err := j.keepEvidence(runs); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, o := range j.evidenceOutputs(runs) {
		outputs[o[0]] = o[1]
	}
	if outputs["cosigned"] != "2" || outputs["artifact-name"] != "evidence-of-fumehood-report@2" || outputs["upload"] != "true" || outputs["artifact-path"] != j.artifactDir() {
		t.Errorf("outputs %q", outputs)
	}
	for dir, log := range map[string][]byte{"0": log, "3": lastLog} {
		cosigned, err := audit.ReadCosigned(filepath.Join(j.artifactDir(), dir, cosignedName))
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := audit.Verify(bytes.NewReader(log), audit.Trust{Key: key.Key(), Cosigned: cosigned}); err != nil || !sum.Complete() {
			t.Errorf("%s: %v, %v", dir, sum, err)
		}
	}
	if left, _ := os.ReadDir(j.artifactDir()); len(left) != 2 || runs[1].cosigned != nil || runs[2].cosigned != nil {
		t.Errorf("cosigned: %v", left)
	}
	sums, err := os.ReadFile(outputs["audit-checksums"])
	if want := fmt.Sprintf("%s  0/audit.jsonl\n%s  3/audit.jsonl\n", first.digest, last.digest); err != nil || string(sums) != want {
		t.Errorf("%v, %q, want %q", err, sums, want)
	}
	if !strings.Contains(said.String(), "not sealed") {
		t.Errorf("nothing is said of a log that is not sealed: %s", &said)
	}
}

// Without a key there are only the digests, and without a log there is nothing.
func TestKeepEvidenceWithoutKey(t *testing.T) {
	var said bytes.Buffer
	j := reporting(t, nil, &said)
	run, _ := gathered(t, true)
	runs := []PlanRun{run}
	if err := j.keepEvidence(runs); err != nil {
		t.Fatal(err)
	}
	if got := j.evidenceOutputs(runs); len(got) != 1 || got[0][0] != "audit-checksums" || isThere(j.artifactDir()) {
		t.Errorf("outputs %q", got)
	}
	j = reporting(t, auditKey(t), &said)
	runs = []PlanRun{{substitute: true}, {}}
	if err := j.keepEvidence(runs); err != nil || len(j.evidenceOutputs(runs)) != 0 {
		t.Errorf("%v, %q", err, j.evidenceOutputs(runs))
	}
	if err := os.WriteFile(j.artifactDir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.keepEvidence([]PlanRun{run}); codeOf(err) != "audit.cosign" {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// THREATS 93: only a job that reports may have the key.
func TestCheckAuditKey(t *testing.T) {
	var said bytes.Buffer
	with, without := reporting(t, auditKey(t), &said), reporting(t, nil, &said)
	for _, phase := range []action.Phase{action.Trigger, action.Run, action.RunAndReport, action.Review, action.ReviewAndReport, action.Find, action.Phase(99)} {
		if err := with.checkAuditKey(phase); codeOf(err) != "input.audit-key" {
			t.Errorf("%v: %v", phase, err)
		}
		if err := without.checkAuditKey(phase); err != nil {
			t.Errorf("%v, without a key: %v", phase, err)
		}
	}
	if err := with.checkAuditKey(action.Report); err != nil {
		t.Error(err)
	}
}
