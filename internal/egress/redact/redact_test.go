// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/lease/leasetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const canary = "hunter2-canary"

// token is assembled here, so that this file contains none.
var token = "gh" + "p_" + "aZ3kQ9rT7mW1xY5vB8nC2dF6gH4jL0pS3uEq"

type asked struct {
	list   []points.Outgoing
	answer func(points.Outgoing) (points.OutputDecision, error)
}

func (a *asked) decide(ctx context.Context, x points.Outgoing) (points.OutputDecision, error) {
	a.list = append(a.list, x)
	if a.answer != nil {
		return a.answer(x)
	}
	return replaceAll(ctx, x)
}

func redactor(t *testing.T, a *asked) *Redactor {
	t.Helper()
	u, err := New(Options{Masks: []Mask{{Name: "CANARY", Value: canary}}, Decide: a.decide, Artifacts: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// stream returns a sandbox's description of text; if cut, its file keeps half.
func stream(t *testing.T, u *Redactor, name, text string, cut bool) proposal.Stream {
	t.Helper()
	raw, err := u.CreateRawDir()
	if err != nil {
		t.Fatal(err)
	}
	inFile := text
	if cut {
		inFile = text[:len(text)/2]
	}
	file := filepath.Join(raw, name)
	if err := os.WriteFile(file, []byte(inFile), 0o600); err != nil {
		t.Fatal(err)
	}
	s := proposal.Stream{Bytes: int64(len(text)), SHA256: sumOf([]byte(text)), File: file, FileBytes: int64(len(inFile))}
	n := min(kept, len(text))
	s.Head, s.Tail = []byte(text[:n]), []byte(text[max(n, len(text)-kept):])
	s.Truncated = len(text) > 2*kept
	return s
}

func left(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func result(stdout proposal.Stream) proposal.Result {
	return proposal.Result{Status: proposal.Exited, Stdout: stdout, Outputs: []proposal.Output{}}
}

// What is reported of a stream must be true of what is left of it, wherever the secrets
// are and however long it is.
func TestStream(t *testing.T) {
	filler := strings.Repeat("an ordinary line of a test\n", 12000) // 324 KiB
	for name, text := range map[string]string{
		"clean": "nothing of note\n", "short": "a " + canary + " b\n", "token": token,
		"at the head's end": filler[:kept-7] + canary + filler, "in what is cut": filler[:2*kept] + canary + filler, "at the end": filler + canary,
		"clean and long": filler,
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{}
			u := redactor(t, a)
			r, err := u.Result(t.Context(), "unit", result(stream(t, u, "unit.stdout", text, false)))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(strings.ReplaceAll(text, canary, "[redacted CANARY]"), token, "[redacted github-pat]")
			if got := left(t, u.o.Artifacts); !cmp.Equal(got, map[string]string{"unit.stdout": want}) {
				t.Errorf("left other files than %q", slices.Sorted(keys(got)))
			}
			s := r.Stdout
			if s.SHA256 != sumOf([]byte(want)) || s.Bytes != int64(len(want)) || s.FileBytes != s.Bytes || s.Truncated != (len(want) > 2*kept) {
				t.Errorf("told %d bytes, %s, truncated %v", s.Bytes, s.SHA256, s.Truncated)
			}
			if !strings.HasPrefix(want, string(s.Head)) || !strings.HasSuffix(want, string(s.Tail)) || !s.Truncated && string(s.Head)+string(s.Tail) != want {
				t.Error("head and tail are not its ends")
			}
			if (len(s.Redacted) > 0) != (want != text) {
				t.Errorf("counted %v", s.Redacted)
			}
			if len(a.list) != 1 || a.list[0].Size != int64(len(want)) || a.list[0].Kind != "stdout" || a.list[0].Command != "unit" {
				t.Errorf("asked %+v", a.list)
			}
			if raw, _ := u.CreateRawDir(); len(left(t, raw)) > 0 {
				t.Error("the original is left")
			}
		})
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A stream that is not available in full reveals no part of a secret where it breaks off.
func TestStreamCutOff(t *testing.T) {
	filler := strings.Repeat("an ordinary line of a test\n", 12000)
	half := len(filler) / 2
	for at, text := range map[string]string{
		"head": filler[:kept-7] + canary + filler, "tail": filler + canary + filler[:kept-7], "file": filler[:half-7] + canary + filler[half-len(canary)+7:],
	} {
		u := redactor(t, &asked{})
		r, err := u.Result(t.Context(), "unit", result(stream(t, u, "unit.stdout", text, true)))
		if err != nil {
			t.Fatal(err)
		}
		all := string(r.Stdout.Head) + "\n" + string(r.Stdout.Tail) + "\n" + left(t, u.o.Artifacts)["unit.stdout"]
		for n := 5; n < len(canary); n++ {
			if strings.Contains(all, canary[:n]) || strings.Contains(all, canary[n:]) && len(canary[n:]) > 4 {
				t.Errorf("%s: a part of the value is left", at)
			}
		}
		if !r.Stdout.Truncated || len(r.Stdout.Redacted) > 0 && r.Stdout.SHA256 != "" {
			t.Errorf("%s: %v %v %q", at, r.Stdout.Truncated, r.Stdout.Redacted, r.Stdout.SHA256)
		}
	}
}

// A stream reveals no part of a secret where the omitted part begins or ends.
func TestStreamCutAtMargin(t *testing.T) {
	lanetest.SkipShort(t)
	filler := strings.Repeat("an ordinary line of a test\n", 12000)
	at := func(place int) string { return filler[:place] + " " + token + " " + canary + " " + filler[place:] }
	for name, text := range map[string]string{
		"head": at(kept - margin - 30), "tail": at(len(filler) - kept + margin - 30 + len(token) + len(canary) + 3), "file": at(len(filler)/2 - margin - 10), "file's break": at(len(filler)/2 - 10),
	} {
		for shift := 0; shift < len(token)+len(canary); shift += 7 {
			text := strings.Repeat("x", shift) + text[:len(text)-shift]
			if name == "tail" {
				text = text[shift:] + strings.Repeat("x", shift)
			}
			u := redactor(t, &asked{})
			r, err := u.Result(t.Context(), "unit", result(stream(t, u, "unit.stdout", text, true)))
			if err != nil {
				t.Fatal(err)
			}
			all := string(r.Stdout.Head) + "\n" + string(r.Stdout.Tail) + "\n" + left(t, u.o.Artifacts)["unit.stdout"]
			for _, secret := range []string{token, canary} {
				if strings.Contains(all, secret[:6]) || strings.Contains(all, secret[len(secret)-6:]) {
					t.Fatalf("%s, %d further: a part of a secret is left", name, shift)
				}
			}
		}
	}
}

// Declared text files are redacted; others are copied unchanged or not at all.
func TestFiles(t *testing.T) {
	u := redactor(t, &asked{})
	raw, _ := u.CreateRawDir()
	files := map[string][]byte{"a.txt": []byte("x " + canary + "\n"), "clean.png": []byte("\x89PNG\x00 fine"), "leak.png": []byte("\x89PNG\x00" + token),
		"masked.bin": []byte("\x00" + hex.EncodeToString([]byte(canary))), canary + ".txt": []byte("named"), "empty": {}, "sub/late.txt": []byte("x" + strings.Repeat("é", sample) + canary)}
	var r proposal.Result
	for name, content := range files {
		path := filepath.Join(raw, "unit.outputs", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		r.Outputs = append(r.Outputs, proposal.Output{Path: name, Bytes: int64(len(content)), SHA256: sumOf(content), File: "unit.outputs/" + name})
	}
	r.Outputs = append(r.Outputs, proposal.Output{Path: "none", Refused: "no such file"})
	r, err := u.Result(t.Context(), "unit", r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"unit.outputs/a.txt": "x [redacted CANARY]\n", "unit.outputs/clean.png": "\x89PNG\x00 fine", "unit.outputs/empty": "",
		"unit.outputs/sub/late.txt": "x" + strings.Repeat("é", sample) + "[redacted CANARY]"}
	if diff := cmp.Diff(want, left(t, u.o.Artifacts)); diff != "" {
		t.Error(diff)
	}
	for _, o := range r.Outputs {
		content, copied := want[o.File]
		if copied && (o.SHA256 != sumOf([]byte(content)) || o.Bytes != int64(len(content)) || o.Refused != "") {
			t.Errorf("%+v is not true of %q", o, content)
		}
		if !copied && (o.SHA256 != "" || o.File != "" || o.Refused == "") || strings.Contains(o.Path, canary) {
			t.Errorf("%+v", o)
		}
	}
}

// A deny withholds everything; finds that policy allows stay, but never a masked value.
func TestPolicyDecides(t *testing.T) {
	a := &asked{answer: func(x points.Outgoing) (points.OutputDecision, error) {
		if x.Kind == "stdout" {
			return points.OutputDecision{Effect: proposal.Deny, Reason: &proposal.Reason{Rule: "org.no", Message: "not this"}}, nil
		}
		return points.OutputDecision{Effect: proposal.Allow, Redact: []string{}}, nil
	}}
	u := redactor(t, a)
	r := result(stream(t, u, "unit.stdout", "printed "+canary, false))
	r.Stderr = stream(t, u, "unit.stderr", "e "+canary+" "+token, false)
	raw, _ := u.CreateRawDir()
	text := token + "\n[redacted x] " + canary
	if err := errors.Join(os.Mkdir(filepath.Join(raw, "unit.outputs"), 0o700), os.WriteFile(filepath.Join(raw, "unit.outputs/a"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.Outputs = []proposal.Output{{Path: "a", Bytes: int64(len(text)), File: "unit.outputs/a"}}
	r, err := u.Result(t.Context(), "unit", r)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Stdout; s.Withheld != "org.no: not this" || s.Head != nil || s.SHA256 != "" || s.File != "" {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]string{"unit.stderr": "e [redacted CANARY] " + token, "unit.outputs/a": token + "\n(redacted x] [redacted CANARY]"}, left(t, u.o.Artifacts)); diff != "" {
		t.Error(diff)
	}
	for rule, stays := range map[string]bool{"github-pat": true, secrets.ForgedMarker: false, secrets.Unscanned: false, redaction.MaskPrefix + "CANARY": false} {
		if keepFindFunc(points.OutputDecision{Effect: proposal.Allow})(rule) != stays {
			t.Errorf("%s: stays %v", rule, !stays)
		}
	}
}

// If policy withholds the whole report, everything that was printed is removed: from the
// report, in a first run too, and from the comment even if the report keeps it.
func TestWhole(t *testing.T) {
	printed := proposal.Stream{Head: []byte("head"), Tail: []byte("tail"), Bytes: 8, Redacted: []proposal.Redaction{{Rule: "github-pat", Count: 1}}}
	r := proposal.Report{Records: []proposal.Record{{}, {Result: &proposal.Result{Stdout: printed, Stderr: printed, Retried: &proposal.Attempt{Stdout: printed, Stderr: printed}}}}}
	for name, c := range map[string]struct {
		denied string
		err    error
		bare   bool
		rule   string
	}{
		"allowed": {}, "report": {denied: points.OutgoingReport, bare: true, rule: "output.withheld"}, "comment": {denied: points.OutgoingComment, rule: "output.withheld"},
		"no answer": {err: &proposal.StopError{Code: "policy.eval"}, bare: true, rule: "policy.eval"},
	} {
		a := &asked{answer: func(x points.Outgoing) (points.OutputDecision, error) {
			if x.Kind == c.denied {
				return points.OutputDecision{}, nil
			}
			return points.OutputDecision{Effect: proposal.Allow}, c.err
		}}
		got, err := redactor(t, a).DecideReport(t.Context(), r)
		if (err != nil) != (c.err != nil) || (got.Withheld != nil) != (c.rule != "") || got.Withheld != nil && got.Withheld.Rule != c.rule {
			t.Errorf("%s: %v, %+v", name, err, got.Withheld)
		}
		result := got.Records[1].Result
		for _, s := range []proposal.Stream{result.Stdout, result.Stderr, result.Retried.Stdout, result.Retried.Stderr} {
			if (len(s.Head)+len(s.Tail) == 0) != c.bare {
				t.Errorf("%s: left %q %q", name, s.Head, s.Tail)
			}
		}
		if len(a.list[0].Secrets) != 1 || a.list[0].Secrets[0].Count != 2 || string(r.Records[1].Result.Retried.Stdout.Head) != "head" {
			t.Errorf("%s: asked %+v, or what it was given was changed", name, a.list[0])
		}
	}
}

// The output of an interrupted command leaves, too.
func TestInterruptedLeaves(t *testing.T) {
	u := redactor(t, &asked{})
	u.o.Decide = func(ctx context.Context, x points.Outgoing) (points.OutputDecision, error) {
		if err := ctx.Err(); err != nil {
			return points.OutputDecision{}, err
		}
		return replaceAll(ctx, x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := u.Result(ctx, "unit", result(stream(t, u, "unit.stdout", "printed "+canary, false)))
	if err != nil || string(r.Stdout.Head) != "printed [redacted CANARY]" {
		t.Errorf("%v: %q", err, r.Stdout.Head)
	}
}

// If policy cannot answer, nothing leaves.
func TestFailsClosed(t *testing.T) {
	stop := &proposal.StopError{Code: "policy.eval", Message: "no answer"}
	u := redactor(t, &asked{answer: func(points.Outgoing) (points.OutputDecision, error) { return points.OutputDecision{}, stop }})
	r, err := u.Result(t.Context(), "unit", result(stream(t, u, "unit.stdout", "printed "+canary, false)))
	if proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "policy.eval" {
		t.Errorf("got %v", err)
	}
	if r.Stdout.Head != nil || r.Stdout.Withheld == "" || len(left(t, u.o.Artifacts)) > 0 {
		t.Errorf("%+v and %v left", r.Stdout, left(t, u.o.Artifacts))
	}
	u.o.Decide = replaceAll
	if _, err := u.Result(t.Context(), "unit", result(proposal.Stream{Bytes: 3, File: "/nowhere/unit.stdout", FileBytes: 3})); proposal.FailureOf(err).Code != "output.unreadable" {
		t.Errorf("got %v", err)
	}
}

func TestRecordAndEvent(t *testing.T) {
	u := redactor(t, &asked{})
	r := proposal.Record{Proposal: proposal.Proposal{ID: "unit", Run: "echo " + canary, Env: map[string]string{"A": canary}}, Analysis: proposal.Analysis{Canonical: "echo " + canary}}
	told := u.Record(r)
	if told.Proposal.Run != "echo [redacted CANARY]" || told.Proposal.Env["A"] != "[redacted CANARY]" || told.Analysis.Canonical != "echo [redacted CANARY]" || len(told.Redacted) != 1 || told.Redacted[0].Count != 3 {
		t.Errorf("got %+v", told)
	}
	if r.Proposal.Run != "echo "+canary {
		t.Error("what runs was changed")
	}
	e := u.Event(proposal.Event{Command: "unit", Exec: &proposal.Exec{Argv: []string{"login", canary}, ArgvDigest: "sha256:x"}})
	if e.Exec.Argv[1] != "[redacted CANARY]" || e.Exec.ArgvDigest != "" {
		t.Errorf("got %+v", e.Exec)
	}
	long := strings.Repeat("ordinary words ", 100)
	for _, secret := range []string{canary, hex.EncodeToString([]byte(canary)), token} {
		for n := 8; n < len(secret); n++ {
			word := long[:cutWord-n-1] + " " + secret[:n]
			argv := []string{"say", word, secret[:n]}
			e := u.Event(proposal.Event{Command: "unit", Exec: &proposal.Exec{Argv: argv, ArgvCut: true, ArgvDigest: "sha256:x"}})
			if got := strings.Join(e.Exec.Argv, "|"); strings.Contains(got, secret[:n]) && (secret != token || n >= 16) {
				t.Errorf("%d letters are left: %q", n, got[len(got)-80:])
			} else if !strings.HasPrefix(got, "say|ordinary words ordinary") {
				t.Errorf("more went: %q", got)
			}
			if argv[1] != word {
				t.Error("what it was given was changed")
			}
		}
	}
	whole := []string{"say", long[:cutWord], "x"}
	if e := u.Event(proposal.Event{Exec: &proposal.Exec{Argv: whole, ArgvCut: true, ArgvDigest: "sha256:x"}}); !slices.Equal(e.Exec.Argv, whole) || e.Exec.ArgvDigest == "" {
		t.Errorf("got %+v", e.Exec)
	}
	if e := u.Event(proposal.Event{Command: canary, Path: canary}); e.Command != canary || e.Path != "[redacted CANARY]" {
		t.Errorf("an id is what the log is read by: %+v", e)
	}
	if err := u.RefuseSecretIDs(proposal.Plan{Proposals: []proposal.Proposal{{ID: "ok"}, {ID: canary}}}); proposal.FailureOf(err).Code != "output.id" {
		t.Errorf("got %v", err)
	}
}

// A report made elsewhere is searched again, and its markers stay.
func TestReportOfOthers(t *testing.T) {
	u := redactor(t, &asked{})
	r := proposal.Report{Records: []proposal.Record{{Proposal: proposal.Proposal{Run: "[redacted CANARY] " + canary},
		Result: &proposal.Result{Stdout: proposal.Stream{Head: []byte("[redacted CANARY] " + token), Tail: []byte("x")}}}}}
	out := u.Report(r)
	if got := out.Records[0].Proposal.Run; got != "[redacted CANARY] [redacted CANARY]" {
		t.Errorf("got %q", got)
	}
	if got := out.Records[0].Result.Stdout.Head; !bytes.Equal(got, []byte("[redacted CANARY] [redacted github-pat]")) {
		t.Errorf("got %q", got)
	}
	if again := u.Report(out); !cmp.Equal(again, out) {
		t.Error("twice is not once")
	}
}

// A mask that is part of a digest or a key, as any short one may be, must not break the
// link between a run and its log and plan.
func TestRunStaysBound(t *testing.T) {
	u, err := New(Options{Masks: []Mask{{Name: "WEAK", Value: "sha256"}, {Name: "HEX", Value: "abcdef"}}})
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0abcdef0", 8)
	run := proposal.Run{ID: "20261121-abcdef", PlanDigest: digest, Policy: digest, HeadSHA: "abcdef01", BaseSHA: "10abcdef", Proposer: "an abcdef"}
	want := run
	want.Proposer = "an [redacted HEX]"
	for name, got := range map[string]proposal.Run{"run": u.Run(run), "report": u.Report(proposal.Report{Run: run}).Run} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	text := strings.Repeat("--- PASS: TestParse/heredoc_with_tabs (0.00s)\n", 1<<20/46)
	u, err := New(Options{Masks: []Mask{{Name: "CANARY", Value: canary}}})
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "x")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		if _, err := u.Result(context.Background(), "unit", result(proposal.Stream{Bytes: int64(len(text)), File: file, FileBytes: int64(len(text))})); err != nil {
			b.Fatal(err)
		}
	}
}

// Runs that start and end at the same time do not remove each other's directories.
func TestRawTogether(t *testing.T) {
	dir := t.TempDir()
	leasetest.RunTogether(t, dir, func(turn leasetest.Turn) error {
		os.Setenv("TMPDIR", turn.Dir)
		u, err := New(Options{})
		if err != nil {
			return err
		}
		raw, err := u.CreateRawDir()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(raw, "stdout"), []byte("x"), 0o600); err != nil {
			return err
		}
		if turn.ShouldAbandon() {
			return u.raw.Close()
		}
		return u.Close()
	})
	t.Setenv("TMPDIR", dir)
	lease.Sweep(dir, unread, (*lease.Dir).Remove)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The directories of a killed run are removed by the next. Those of a running one, those
// of another user, and others that only have the name are not.
func TestForsakenFolders(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "a[b]*"))
	if err := os.Mkdir(os.TempDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	living, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, err := living.CreateRawDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := func(name string) string {
		dir := filepath.Join(os.TempDir(), name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "stdout"), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	forsaken, foreign, other := folder("fumehood-unread-1"), folder("fumehood-unread-2"), folder("other")
	if err := errors.Join(os.Lchown(foreign, 65534, 65534), os.Symlink(other, filepath.Join(os.TempDir(), "fumehood-unread-3"))); err != nil {
		t.Fatal(err)
	}
	next, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.CreateRawDir(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{held: true, forsaken: false, foreign: true, filepath.Join(other, "stdout"): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: is there %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
	for _, u := range []*Redactor{living, next} {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(held); err == nil {
		t.Error("what was closed is still there")
	}
}

// Only the masked values are removed, in all forms; what else looks like a secret stays.
func TestMasksOnly(t *testing.T) {
	value, other := "canary-of-a-key-8c1f02", token
	clean, err := MasksOnly([]Mask{{Name: "KEY", Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{value, strings.ToUpper(value), base64.StdEncoding.EncodeToString([]byte("x" + value)), hex.EncodeToString([]byte(value)), strings.ReplaceAll(value, "-", `\u002d`)} {
		if got := clean("key=" + form + " " + other); strings.Contains(got, form) || !strings.HasSuffix(got, other) {
			t.Errorf("%q becomes %q", form, got)
		}
	}
	if same := `{"done":true,"commands":[{"run":"grep ` + other + ` a"}]}`; clean(same) != same {
		t.Errorf("%q becomes %q", same, clean(same))
	}
}

// What test runners wrote to files is searched, decided, withheld and removed like output, and for
// policy it is a part of stdout.
func TestResultsAreOutput(t *testing.T) {
	results := func(text string) proposal.Result {
		r := result(proposal.Stream{})
		r.ExitCode, r.TestResults = 1, proposal.Stream{Head: []byte(text), Bytes: int64(len(text)), SHA256: sumOf([]byte(text))}
		return r
	}
	a := &asked{}
	u := redactor(t, a)
	r, err := u.Result(t.Context(), "unit", results("test "+token+" & "+canary+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "test [redacted github-pat] & [redacted CANARY]\n"
	if s := r.TestResults; string(s.Head)+string(s.Tail) != want || s.SHA256 != sumOf([]byte(want)) || s.Bytes != int64(len(want)) || len(s.Redacted) != 2 {
		t.Errorf("%+v, %q", s, s.Head)
	}
	if len(a.list) != 1 || a.list[0].Kind != points.OutgoingStdout || len(a.list[0].Secrets) != 1 || a.list[0].Masked != 1 {
		t.Errorf("policy was asked %+v", a.list)
	}
	if n, masked := redaction.CountFinds(redaction.FindsIn(r)); n != 2 || masked != 1 {
		t.Errorf("%d redactions, %d masked", n, masked)
	}
	report := proposal.Report{Records: []proposal.Record{{Result: &r}}}
	a.answer = func(x points.Outgoing) (points.OutputDecision, error) {
		if x.Kind == points.OutgoingReport && x.Size != int64(len(want)) {
			t.Errorf("the report has %d bytes of output", x.Size)
		}
		return points.OutputDecision{Effect: proposal.Deny}, nil
	}
	whole, err := u.DecideReport(t.Context(), report)
	if err != nil || len(whole.Records[0].Result.TestResults.Head) != 0 || string(r.TestResults.Head) != want {
		t.Errorf("%v, withheld: %q, argument: %q", err, whole.Records[0].Result.TestResults.Head, r.TestResults.Head)
	}
	if r, err = u.Result(t.Context(), "unit", results("a test\n")); err != nil || r.TestResults.Withheld == "" || len(r.TestResults.Head) != 0 {
		t.Errorf("denied: %v, %+v", err, r.TestResults)
	}
	// With stdout withheld, they are, too, whatever policy says about them.
	a.answer = func(x points.Outgoing) (points.OutputDecision, error) {
		if x.Size == 4 {
			return points.OutputDecision{Effect: proposal.Deny}, nil
		}
		return points.OutputDecision{Effect: proposal.Allow}, nil
	}
	both := results("a test that failed\n")
	both.Stdout = proposal.Stream{Head: []byte("out\n"), Bytes: 4, SHA256: sumOf([]byte("out\n"))}
	if r, err = u.Result(t.Context(), "unit", both); err != nil || r.Stdout.Withheld == "" || r.TestResults.Withheld != r.Stdout.Withheld {
		t.Errorf("stdout is withheld: %v, %+v", err, r.TestResults)
	}
	a.answer = func(points.Outgoing) (points.OutputDecision, error) {
		return points.OutputDecision{}, errors.New("policy fails")
	}
	if r, err = u.Result(t.Context(), "unit", results("a test\n")); err == nil || len(r.TestResults.Head) != 0 || r.TestResults.Withheld == "" {
		t.Errorf("policy fails: %v, %+v", err, r.TestResults)
	}
	other := u.Report(proposal.Report{Records: []proposal.Record{{Result: &proposal.Result{TestResults: proposal.Stream{Head: []byte(canary)}}}}})
	if got := string(other.Records[0].Result.TestResults.Head); got != "[redacted CANARY]" {
		t.Errorf("a report of others: %q", got)
	}
}
