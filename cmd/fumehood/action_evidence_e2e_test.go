// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// watchFor looks for a secret in the arguments of all processes, and in the environment of those
// that it is not given to. The returned function ends that and returns what was found.
func watchFor(secret string, given func(args string) bool) (end func() []string) {
	stop, found := make(chan struct{}), make(chan []string)
	go func() {
		var list []string
		for {
			select {
			case <-stop:
				found <- list
				return
			case <-time.After(2 * time.Millisecond):
			}
			all, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range all {
				args, env := sightingOf(dir)
				if bytes.Contains(args, []byte(secret)) || bytes.Contains(env, []byte(secret)) && !given(string(args)) {
					list = append(list, string(args))
				}
			}
		}
	}()
	return func() []string { close(stop); return <-found }
}

// sightingOf returns the arguments and the environment of a process, given its directory. A process that
// is becoming another program has no arguments for a moment, and one that has ended has neither.
func sightingOf(dir string) (args, env []byte) {
	for range 20 {
		args, _ = os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ = os.ReadFile(filepath.Join(dir, "environ"))
		if len(args) > 0 || len(env) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return args, env
}

// wantNoSecret fails if a step shows a secret in a form other than the mask that it asks the runner
// for, or leaves it in a file.
func (w *world) wantNoSecret(s step, secret string) {
	w.t.Helper()
	shown := map[string]string{"summary": s.summary}
	for line := range strings.Lines(s.log) {
		if !strings.HasPrefix(line, "::add-mask::") {
			shown["log"] += line
		}
	}
	err := filepath.WalkDir(s.temp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		shown[path] = string(data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range w.gh.Comments(prNumber) {
		shown["comment"] += c.Body
	}
	for where, text := range shown {
		for coding, form := range codings(secret) {
			if strings.Contains(text, form) {
				w.t.Errorf("%s shows the key (%s)", where, coding)
			}
		}
	}
}

// verifyCosigned runs fumehood verify --cosigned.
func verifyCosigned(t *testing.T, log, cosigned, key string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = run(t.Context(), []string{"verify", log, "--cosigned", cosigned, "--key", key}, nil, &b, &b)
	return code, b.String()
}

// THREATS 93: the job that reports a fork's run cosigns its log with the organization's key, which
// verifies the log and no other; nothing but that job's process has the key.
func TestE2EActionCosigns(t *testing.T) {
	t.Parallel()
	private, public := newAuditKey(t)
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	log := s.outputs["audit-log"]
	w.upload(s, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	end := watchFor(private, func(args string) bool { return args == w.binary+"\x00action\x00" })
	r := w.report(nil, "INPUT_AUDIT_KEY="+private)
	if seen := end(); len(seen) > 0 {
		t.Errorf("other processes have the key: %q", seen)
	}
	w.wantNoSecret(r, private)
	if r.code != exitRefused || r.outputs["cosigned"] != "1" || r.outputs["artifact-name"] != "evidence-of-fumehood-fumehood" || r.outputs["upload"] != "true" {
		t.Fatalf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	cosigned := filepath.Join(r.outputs["artifact-path"], "audit.cosigned")
	if code, out := verifyCosigned(t, log, cosigned, public); code != exitOK || !strings.Contains(out, "sealed and complete") || !strings.Contains(out, "cosigned with "+public) {
		t.Errorf("exit %d: %s", code, out)
	}
	if sums := string(readFile(t, r.outputs["audit-checksums"])); sums != sum(readFile(t, log))+"  audit.jsonl\n" {
		t.Errorf("checksums %q", sums)
	}
	want(t, "comment", w.comment().Body, "fumehood verify audit.jsonl --cosigned audit.cosigned --key "+public, "evidence-of-fumehood-fumehood")

	_, stranger := newAuditKey(t)
	if code, out := verifyCosigned(t, log, cosigned, stranger); code != exitRefused {
		t.Errorf("another key: exit %d: %s", code, out)
	}
	again := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	if code, out := verifyCosigned(t, again.outputs["audit-log"], cosigned, public); code != exitRefused {
		t.Errorf("the log of another run: exit %d: %s", code, out)
	}
}

// THREATS 93: the programs that the action's script starts do not have the key; fumehood has it.
func TestE2EInstallKeys(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	end := watchFor("PRIVATE+KEY+of-the-test", func(args string) bool {
		return strings.HasPrefix(args, "bash\x00") || strings.HasPrefix(args, "/bin/bash\x00-p\x00")
	})
	stdout, stderr, code := i.run(t, "INPUT_AUDIT_KEY=PRIVATE+KEY+of-the-test")
	if seen := end(); len(seen) > 0 {
		t.Errorf("programs have the key: %q", seen)
	}
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if !strings.Contains(stdout, "\nkey: PRIVATE+KEY+of-the-test\n") {
		t.Errorf("fumehood has no key:\n%s", stdout)
	}
}

// THREATS 93: an artifact that is refused is not cosigned.
func TestE2EActionCosignsNoForgery(t *testing.T) {
	t.Parallel()
	private, _ := newAuditKey(t)
	w := newWorld(t, true, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	w.upload(s, func(f map[string][]byte) {
		f[reportName] = bytes.ReplaceAll(f[reportName], []byte(`"pr": 2`), []byte(`"pr": 3`))
	})
	r := w.report(nil, "INPUT_AUDIT_KEY="+private)
	if r.outputs["conclusion"] != "error" || r.outputs["cosigned"] != "" || r.outputs["audit-checksums"] != "" || r.outputs["artifact-path"] != "" {
		t.Errorf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	want(t, "comment", w.comment().Body, "report.malformed")
	w.wantNoSecret(r, private)
}

// THREATS 93: a job that runs code, or chooses what runs, stops when it is given the key, and so
// does a job with a key that is none.
func TestE2EActionRefusesAuditKey(t *testing.T) {
	t.Parallel()
	private, public := newAuditKey(t)
	w := newWorld(t, false, nil, nil)
	for _, phase := range []string{"auto", "run"} {
		s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PHASE="+phase, "INPUT_AUDIT_KEY="+private)
		if s.code != exitStopped || s.outputs["conclusion"] != "error" || s.outputs["report"] != "" {
			t.Errorf("%s: exit %d, outputs %q\n%s", phase, s.code, s.outputs, s.log)
		}
		want(t, "log", s.log, "input.audit-key", "phase: report")
		w.wantNoSecret(s, private)
	}
	for _, wrong := range []string{public, private[:len(private)-4]} {
		s := w.report(nil, "INPUT_AUDIT_KEY="+wrong)
		if s.code != exitStopped || s.outputs["conclusion"] != "error" {
			t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
		}
		want(t, "log", s.log, "audit-key", "is not a private key")
		w.wantNoSecret(s, wrong)
	}
	if n := len(w.gh.Comments(prNumber)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

// codings returns the encodings in which a secret might go undetected.
func codings(secret string) map[string]string {
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
