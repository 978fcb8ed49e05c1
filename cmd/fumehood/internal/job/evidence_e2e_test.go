// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/evidence"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/audit"
)

// newAuditKey returns a private key of logs and its verifier key.
func newAuditKey(t *testing.T) (private, public string) {
	t.Helper()
	private, err := audit.GenerateKey("acme.example/fumehood")
	if err != nil {
		t.Fatal(err)
	}
	s, err := audit.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return private, s.Key()
}

// wantNoSecret fails if a step shows a secret in a form other than the mask that it asks the runner
// for, or leaves it in a file.
func (w world) wantNoSecret(s jobtest.Step, secret string) {
	w.T.Helper()
	shown := map[string]string{"summary": s.Summary}
	for line := range strings.Lines(s.Log) {
		if !strings.HasPrefix(line, "::add-mask::") {
			shown["log"] += line
		}
	}
	err := filepath.WalkDir(s.Temp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		shown[path] = string(data)
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
	for _, c := range w.GH.Comments(jobtest.PrNumber) {
		shown["comment"] += c.Body
	}
	for where, text := range shown {
		for coding, form := range encodeSecret(secret) {
			if strings.Contains(text, form) {
				w.T.Errorf("%s shows the key (%s)", where, coding)
			}
		}
	}
}

// verifyCosigned verifies a log with a cosigned checkpoint, and returns whether it is the run's.
func verifyCosigned(t *testing.T, log, cosigned, key string) (whole bool, out string) {
	t.Helper()
	found, err := evidence.Check{Trust: audit.Trust{Key: key}, Cosigned: cosigned}.VerifyLog(log)
	if err != nil || found.Unread() {
		t.Fatalf("%v: %v", found, err)
	}
	return found.Whole, found.String()
}

// THREATS 93: the job that reports a fork's run cosigns its log with the organization's key, which
// verifies the log and no other; nothing but that job's process has the key.
func TestE2EActionCosigns(t *testing.T) {
	t.Parallel()
	private, public := newAuditKey(t)
	w := newWorld(t, true, nil, nil)
	w.Process = true
	w.SetPermissions("contents:read", "pull_requests:read")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	log := s.Outputs["audit-log"]
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	end := jobtest.WatchFor(private, func(args string) bool { return args == w.Binary+"\x00action\x00" })
	r := w.RunReport(nil, "INPUT_AUDIT_KEY="+private)
	if seen := end(); len(seen) > 0 {
		t.Errorf("other processes have the key: %q", seen)
	}
	w.wantNoSecret(r, private)
	if r.Code != cli.Refused || r.Outputs["cosigned"] != "1" || r.Outputs["artifact-name"] != "evidence-of-fumehood-fumehood" || r.Outputs["upload"] != "true" {
		t.Fatalf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	cosigned := filepath.Join(r.Outputs["artifact-path"], "audit.cosigned")
	if whole, out := verifyCosigned(t, log, cosigned, public); !whole || !strings.Contains(out, "sealed and complete") || !strings.Contains(out, "cosigned with "+public) {
		t.Error(out)
	}
	if sums := string(jobtest.ReadFile(t, r.Outputs["audit-checksums"])); sums != fmt.Sprintf("%x  audit.jsonl\n", sha256.Sum256(jobtest.ReadFile(t, log))) {
		t.Errorf("checksums %q", sums)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "fumehood verify audit.jsonl --cosigned audit.cosigned --key "+public, "evidence-of-fumehood-fumehood")

	_, stranger := newAuditKey(t)
	if whole, out := verifyCosigned(t, log, cosigned, stranger); whole {
		t.Errorf("another key: %s", out)
	}
	again := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	if whole, out := verifyCosigned(t, again.Outputs["audit-log"], cosigned, public); whole {
		t.Errorf("the log of another run: %s", out)
	}
}

// THREATS 93: an artifact that is refused is not cosigned.
func TestE2EActionCosignsNoForgery(t *testing.T) {
	t.Parallel()
	private, _ := newAuditKey(t)
	w := newWorld(t, true, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	w.UploadArtifact(s, func(f map[string][]byte) {
		f[jobtest.ReportName] = bytes.ReplaceAll(f[jobtest.ReportName], []byte(`"pr": 2`), []byte(`"pr": 3`))
	})
	r := w.RunReport(nil, "INPUT_AUDIT_KEY="+private)
	if r.Outputs["conclusion"] != "error" || r.Outputs["cosigned"] != "" || r.Outputs["audit-checksums"] != "" || r.Outputs["artifact-path"] != "" {
		t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "report.malformed")
	w.wantNoSecret(r, private)
}

// THREATS 93: a job that runs code, or chooses what runs, stops when it is given the key, and so
// does a job with a key that is none.
func TestE2EActionRefusesAuditKey(t *testing.T) {
	t.Parallel()
	private, public := newAuditKey(t)
	w := newWorld(t, false, nil, nil)
	for _, phase := range []string{"auto", "run"} {
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PHASE="+phase, "INPUT_AUDIT_KEY="+private)
		if s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" || s.Outputs["report"] != "" {
			t.Errorf("%s: exit %d, outputs %q\n%s", phase, s.Code, s.Outputs, s.Log)
		}
		jobtest.CheckContains(t, "log", s.Log, "input.audit-key", "phase: report")
		w.wantNoSecret(s, private)
	}
	for _, wrong := range []string{public, private[:len(private)-4]} {
		s := w.RunReport(nil, "INPUT_AUDIT_KEY="+wrong)
		if s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" {
			t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
		}
		jobtest.CheckContains(t, "log", s.Log, "audit-key", "is not a private key")
		w.wantNoSecret(s, wrong)
	}
	if n := len(w.GH.Comments(jobtest.PrNumber)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

// encodeSecret returns the encodings in which a secret might go undetected.
func encodeSecret(secret string) map[string]string {
	rot := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, secret)
	reversed := []byte(secret)
	slices.Reverse(reversed)
	return map[string]string{
		"itself": secret, "base64": strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="), "hex": hex.EncodeToString([]byte(secret)),
		"rot13": rot, "reversed": string(reversed), "without its first letters": secret[4:],
	}
}
