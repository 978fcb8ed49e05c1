// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var key = strings.Repeat("ab", 32)

func stream(text string) proposal.Stream {
	return proposal.Stream{Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Head: []byte(text), File: "o/x.stdout", FileBytes: int64(len(text))}
}

// record is one that is kept.
func record() proposal.Record {
	r := proposal.Result{Status: proposal.Exited, Stdout: stream("main.go\n"), Stderr: stream(""), WallMS: 7, CacheKey: key, NewSandbox: true,
		Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}, Observations: &proposal.Observations{Complete: true}}
	return proposal.Record{Proposal: proposal.Proposal{ID: "fmt"}, Result: &r}
}

func proved(t testing.TB, r proposal.Record) ProvedEntry {
	t.Helper()
	body, err := json.Marshal(journal.NewResult(r))
	if err != nil {
		t.Fatal(err)
	}
	return ProvedEntry{Origin: "fumehood/r1", Kind: "result", N: 4, Body: body}
}

func entry() Entry { return NewEntry(record(), "r1", "k", []byte("proof")) }

func TestEntry(t *testing.T) {
	c, err := Open(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty cache: %v", err)
	}
	if err := c.Put(entry()); err != nil {
		t.Fatal(err)
	}
	e, err := c.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	p := proved(t, record())
	got, err := e.Result(key, p)
	if err != nil {
		t.Fatal(err)
	}
	want := *record().Result
	want.Observations, want.NewSandbox, want.Stdout.File, want.Stdout.FileBytes, want.Stderr.File, want.Stderr.Head = nil, false, "", 0, "", got.Stderr.Head
	want.Cached = &proposal.Cached{Run: "r1", Log: "fumehood/r1", Key: "k", Entry: 4, Proof: "proof"}
	if diff := cmp.Diff(want, got); diff != "" || len(got.Stderr.Head) > 0 {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	if err := Verify(got, p); err != nil {
		t.Error(err)
	}
	got.WallMS++
	if Verify(got, p) == nil {
		t.Error("an altered result is verified")
	}
	large := entry()
	large.Proof = strings.Repeat("x", MaxEntry)
	if c.Put(large) == nil {
		t.Error("a large entry is kept")
	}
}

// An entry is of one key, one run and one output.
func TestEntryRefused(t *testing.T) {
	other := strings.Repeat("cd", 32)
	for name, change := range map[string]func(*Entry, *ProvedEntry, *string){
		"another key":     func(_ *Entry, _ *ProvedEntry, k *string) { *k = other },
		"a moved entry":   func(e *Entry, _ *ProvedEntry, k *string) { *k, e.Key = other, other },
		"another output":  func(e *Entry, _ *ProvedEntry, _ *string) { e.Stdout = []byte("other.g\n") },
		"a longer output": func(e *Entry, _ *ProvedEntry, _ *string) { e.Stderr = []byte("x") },
		"another run":     func(e *Entry, _ *ProvedEntry, _ *string) { e.Run = "r2" },
		"another kind":    func(_ *Entry, p *ProvedEntry, _ *string) { p.Kind = "cached" },
		"another body":    func(_ *Entry, p *ProvedEntry, _ *string) { p.Body = []byte("[]") },
		"a failure": func(_ *Entry, p *ProvedEntry, _ *string) {
			p.Body = bytes.Replace(p.Body, []byte(`"exit_code":0`), []byte(`"exit_code":1`), 1)
		},
	} {
		e, p, k := entry(), proved(t, record()), key
		change(&e, &p, &k)
		if _, err := e.Result(k, p); err == nil {
			t.Errorf("%s is used", name)
		}
	}
}

// Everything that could make a result doubtful keeps it from being kept.
func TestKeepable(t *testing.T) {
	if !CanKeep(*record().Result) {
		t.Fatal("an ordinary result is not kept")
	}
	for name, change := range map[string]func(*proposal.Result){
		"exit code":    func(r *proposal.Result) { r.ExitCode = 1 },
		"status":       func(r *proposal.Result) { r.Status = proposal.TimedOut },
		"killed":       func(r *proposal.Result) { r.Killed = proposal.KilledIdle },
		"limit":        func(r *proposal.Result) { r.Limit = "wall 1s" },
		"detail":       func(r *proposal.Result) { r.Detail = "x" },
		"leftover":     func(r *proposal.Result) { r.Leftover = 1 },
		"rerun":        func(r *proposal.Result) { r.Retried = &proposal.Attempt{} },
		"cached":       func(r *proposal.Result) { r.Cached = &proposal.Cached{} },
		"outputs":      func(r *proposal.Result) { r.Outputs = []proposal.Output{{}} },
		"changes":      func(r *proposal.Result) { r.Changes.Files = []proposal.Change{{}} },
		"more changes": func(r *proposal.Result) { r.Changes.Omitted = 1 },
		"truncated":    func(r *proposal.Result) { r.Stdout.Truncated = true },
		"withheld":     func(r *proposal.Result) { r.Stderr.Withheld = "x" },
		"redacted":     func(r *proposal.Result) { r.Stderr.Redacted = []proposal.Redaction{{}} },
		"long":         func(r *proposal.Result) { r.Stdout.Bytes = maxOutput + 1 },
		"unobserved":   func(r *proposal.Result) { r.Observations = nil },
		"incomplete":   func(r *proposal.Result) { r.Observations.Complete = false },
		"finding":      func(r *proposal.Result) { r.Observations.Findings = []proposal.Finding{{}} },
		"refused":      func(r *proposal.Result) { r.Observations.Counts.Refused = 1 },
		"watched":      func(r *proposal.Result) { r.Observations.Counts.Watched = 1 },
		"lookup":       func(r *proposal.Result) { r.Observations.Counts.Lookups = 1 },
		"connection":   func(r *proposal.Result) { r.Observations.Counts.Connections = 1 },
		"attempt":      func(r *proposal.Result) { r.Observations.Counts.Attempts = 1 },
		"display":      func(r *proposal.Result) { r.Displays = []proposal.Display{{}} },
		"exception":    func(r *proposal.Result) { r.Exception = &proposal.Exception{} },
	} {
		r := *record().Result
		change(&r)
		if CanKeep(r) {
			t.Errorf("a result with another %s is kept", name)
		}
	}
}

func inputs() Inputs {
	return Inputs{Canonical: "gofmt -l .\n", Policy: "p", Root: "r", Program: "f", Runsc: "s", Arch: "amd64", Workspace: "w", Sandbox: "b"}
}

// Every field of Inputs is part of the key, and there is no key without a required one.
func TestKey(t *testing.T) {
	first := inputs().Key()
	if !KeyGrammar.MatchString(first) || inputs().Key() != first {
		t.Fatalf("key %q", first)
	}
	seen := map[string]string{first: "nothing"}
	for i := range reflect.TypeFor[Inputs]().NumField() {
		in := inputs()
		name, v := reflect.TypeFor[Inputs]().Field(i).Name, reflect.ValueOf(&in).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("other")
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Struct:
			in.Grant.Limits.Pids = 7
		}
		if before, twice := seen[in.Key()]; twice {
			t.Errorf("%s does not change the key of %s", name, before)
		}
		seen[in.Key()] = name
	}
	for _, drop := range []func(*Inputs){func(in *Inputs) { in.Canonical = "" }, func(in *Inputs) { in.Policy = "" }, func(in *Inputs) { in.Root = "" }, func(in *Inputs) { in.Program = "" },
		func(in *Inputs) { in.Runsc = "" }, func(in *Inputs) { in.Arch = "" }, func(in *Inputs) { in.Workspace = "" }, func(in *Inputs) { in.Sandbox = "" }} {
		in := inputs()
		if drop(&in); in.Key() != "" {
			t.Errorf("%+v has a key", in)
		}
	}
}

// A digest changes with a path, a content, a mode, a link and an empty directory, and there is
// none of what is not a file.
func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	seen := map[string]bool{}
	for i, change := range []func() error{
		func() error { return os.WriteFile(at("a"), []byte("1"), 0o644) },
		func() error { return os.WriteFile(at("a"), []byte("2"), 0o644) },
		func() error { return os.Chmod(at("a"), 0o755) },
		func() error { return os.Rename(at("a"), at("b")) },
		func() error { return os.Mkdir(at("d"), 0o755) },
		func() error { return os.Symlink("b", at("l")) },
		func() error { return errors.Join(os.Remove(at("l")), os.Symlink("/etc", at("l"))) },
		func() error { return os.Lchown(at("b"), 12, 34) },
		func() error { return os.WriteFile(at("d/b"), nil, 0o644) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		digest, err := DigestWorkspace(t.Context(), dir)
		if again, _ := DigestWorkspace(t.Context(), dir); err != nil || seen[digest] || again != digest {
			t.Errorf("change %d: %q, then %q, %v", i, digest, again, err)
		}
		seen[digest] = true
	}
	if err := syscall.Mkfifo(at("p"), 0o644); err != nil {
		t.Fatal(err)
	}
	if digest, err := DigestWorkspace(t.Context(), dir); err == nil || digest != "" {
		t.Errorf("a FIFO has the digest %q", digest)
	}
	if err := errors.Join(os.Remove(at("p")), os.WriteFile(at("big"), nil, 0o644), os.Truncate(at("big"), MaxBytes+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := DigestWorkspace(t.Context(), dir); err == nil {
		t.Error("a workspace that is too large has a digest")
	}
}

// A job keeps results on a push to the default branch only.
func TestInJob(t *testing.T) {
	event := []byte(`{"repository":{"default_branch":"main"}}`)
	for _, test := range []struct {
		mode, want Mode
		env        string
		event      []byte
	}{
		{Write, Write, "", nil},
		{Write, Write, "true push refs/heads/main", event},
		{Write, Read, "true push refs/heads/other", event},
		{Write, Read, "true push refs/tags/main", event},
		{Write, Read, "true pull_request refs/pull/1/merge", event},
		{Write, Read, "true pull_request_target refs/heads/main", event},
		{Write, Read, "true issue_comment refs/heads/main", event},
		{Write, Read, "true push refs/heads/main", []byte("{")},
		{Write, Read, "true push refs/heads/", []byte("{}")},
		{Read, Read, "true push refs/heads/main", event},
		{Off, Off, "true push refs/heads/main", event},
	} {
		parts := append(strings.Fields(test.env), "", "", "")
		env := map[string]string{"GITHUB_ACTIONS": parts[0], "GITHUB_EVENT_NAME": parts[1], "GITHUB_REF": parts[2]}
		got := test.mode.InJob(func(name string) string { return env[name] }, func(string) ([]byte, error) { return test.event, nil })
		if got != test.want {
			t.Errorf("%v in %q: %v", test.mode, test.env, got)
		}
	}
	for _, name := range Modes {
		if m, err := ParseMode(name); err != nil || m.String() != name {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if _, err := ParseMode("on"); err == nil {
		t.Error("another mode is accepted")
	}
}

// No entry and no proof makes a result other than that of the log, of that key.
func FuzzEntry(f *testing.F) {
	data, err := json.Marshal(entry())
	if err != nil {
		f.Fatal(err)
	}
	p := proved(f, record())
	f.Add(data, p.Body)
	f.Add([]byte(`{"schema":"fumehood.result/v1"}`), []byte(`{}`))
	f.Add(data[:100], bytes.Replace(p.Body, []byte("true"), []byte("false"), 1))
	f.Fuzz(func(t *testing.T, data, body []byte) {
		e, err := Decode(data)
		if err != nil {
			return
		}
		p := ProvedEntry{Origin: "fumehood/r1", Kind: "result", N: 4, Body: body}
		r, err := e.Result(key, p)
		if err != nil {
			return
		}
		if !r.Succeeded() || r.CacheKey != key || e.Key != key || r.Cached == nil || r.Observations != nil || int64(len(r.Stdout.Head)) != r.Stdout.Bytes {
			t.Errorf("result %+v", r)
		}
		if err := Verify(r, p); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkWorkspace(b *testing.B) {
	dir := b.TempDir()
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), bytes.Repeat([]byte{byte(i)}, 16<<10), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(2000 * 16 << 10)
	for b.Loop() {
		if _, err := DigestWorkspace(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
