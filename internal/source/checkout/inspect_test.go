// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// A workspace is the result of actions/checkout: a shallow fetch of one commit.
type workspace struct {
	t    *testing.T
	dir  string
	temp string
	head string
}

// newWorkspace makes one with git for all tests; each test gets a copy.
func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	skipShort(t)
	original.once.Do(func() { original.dir, original.head = fetchWorkspace(t) })
	w := &workspace{t: t, dir: filepath.Join(t.TempDir(), "work"), temp: t.TempDir(), head: original.head}
	if err := os.CopyFS(w.dir, os.DirFS(original.dir)); err != nil {
		t.Fatal(err)
	}
	return w
}

var original struct {
	once      sync.Once
	dir, head string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if original.dir != "" {
		os.RemoveAll(original.dir)
	}
	os.Exit(code)
}

func fetchWorkspace(t *testing.T) (dir, head string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	o := newOrigin(t, 40)
	head = o.commit("head", o.tree("100644 a.txt", o.blob("hi\n"), "120000 link", o.blob("a.txt"), "100644 model.bin", o.blob(lfsPointer), "160000 module", strings.Repeat("1", 40),
		"100755 run.sh", o.blob("#!/bin/sh\n"), "40000 sub", o.tree("100644 b.txt", o.blob("b\n"))))
	w := &workspace{t: t, dir: dir}
	w.git("init", "-q", "--template=", w.dir)
	w.git("-C", w.dir, "remote", "add", "origin", "https://github.com/octocat/hello")
	server := serve(t, o.root)
	w.git("-C", w.dir, "fetch", "-q", "--no-tags", "--depth=1", server.url, "+"+head+":refs/remotes/pull/7/merge")
	w.git("-C", w.dir, "checkout", "-q", "--force", "refs/remotes/pull/7/merge")
	return dir, head
}

func (w *workspace) git(arguments ...string) {
	w.t.Helper()
	c := exec.Command("git", arguments...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("git %q: %v: %s", arguments, err, out)
	}
}

func (w *workspace) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	os.Remove(path)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) add(name, more string) {
	w.t.Helper()
	old, _ := os.ReadFile(filepath.Join(w.dir, name))
	w.write(name, string(old)+more)
}

func (w *workspace) getenv(name string) string {
	return map[string]string{"RUNNER_TEMP": w.temp, "HOME": w.temp}[name]
}

func (w *workspace) inspect(want ...string) (Existing, error) {
	return InspectWorkTree(w.t.Context(), w.dir, append(want, w.head), w.getenv)
}

func TestInspect(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w := newWorkspace(t)
	got, err := w.inspect()
	if err != nil {
		t.Fatal(err)
	}
	left := []Left{{"model.bin", LargeFile, ""}, {"module", Submodule, "at " + strings.Repeat("1", 40)}}
	if diff := cmp.Diff(Existing{Dir: w.dir, HEAD: w.head, Tracked: 5, Left: left}, got); diff != "" {
		t.Error(diff)
	}
	if lines := got.Describe(); len(lines) != 2 {
		t.Error(lines)
	}
	if left, _ := os.ReadDir(w.temp); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestInspectDifferences(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.write("a.txt", "hi\r\n")
	w.write("node_modules/x/y\n.js", "x")
	if err := os.Chmod(filepath.Join(w.dir, "run.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	w.write("link", "a.txt") // a file where a link was
	got, err := w.inspect()
	if err != nil {
		t.Fatal(err)
	}
	want := Existing{Dir: w.dir, HEAD: w.head, Tracked: 5, Changed: 3, Missing: 1, Untracked: 1, Examples: []string{"a.txt", "link", "run.sh", "sub/b.txt", "node_modules/x/y\n.js"}}
	got.Left = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	line := "the checkout differs from its commit in 3 changed, 1 missing and 1 additional files: a.txt, link, run.sh, sub/b.txt, node_modules/x/y↵.js"
	if diff := cmp.Diff([]string{line}, got.Describe()); diff != "" {
		t.Error(diff)
	}
}

// TestInspectHead: HEAD detached, on a loose branch and on a packed one.
func TestInspectHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ref string }{{"loose", "refs/heads/topic"}, {"packed", "refs/heads/topic"}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkspace(t)
			w.git("-C", w.dir, "checkout", "-q", "-b", "topic")
			if c.name == "packed" {
				w.git("-C", w.dir, "pack-refs", "--all")
			}
			got, err := w.inspect()
			if err != nil || got.Ref != c.ref || got.HEAD != w.head {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	w := newWorkspace(t)
	_, err := InspectWorkTree(t.Context(), w.dir, []string{strings.Repeat("1", 40)}, w.getenv)
	wantCode(t, err, CodeHead)
	_, err = InspectWorkTree(t.Context(), w.dir, nil, w.getenv)
	wantCode(t, err, CodeHead)
}

const header = "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA==\n"

// TestInspectRefuses: THREATS 14, for the layouts of actions/checkout before and
// since v6, and for every other place where git keeps a credential.
func TestInspectRefuses(t *testing.T) {
	t.Parallel()
	const config = ".git/config"
	for _, c := range sample.EveryNth(t, []struct {
		name string
		harm func(w *workspace)
		want string
	}{
		{"persisted credential", func(w *workspace) { w.add(config, header) }, CodeCredentials},
		{"persisted credential, an include of v6", func(w *workspace) {
			if err := os.WriteFile(w.temp+"/git-credentials-1.config", []byte(header), 0o600); err != nil {
				t.Fatal(err)
			}
			w.add(config, "[includeIf \"gitdir:"+w.dir+"/.git\"]\n\tpath = "+w.temp+"/git-credentials-1.config\n")
		}, CodeCredentials},
		{"persisted credential, the include of a container", func(w *workspace) {
			if err := os.WriteFile(w.temp+"/git-credentials-1.config", []byte(header), 0o600); err != nil {
				t.Fatal(err)
			}
			w.add(config, "[includeIf \"gitdir:/github/workspace/.git\"]\n\tpath = /github/runner_temp/git-credentials-1.config\n")
		}, CodeCredentials},
		{"an include that is gone", func(w *workspace) { w.add(config, "[include]\n\tpath = /nonexistent/x\n") }, ""},
		{"a relative include", func(w *workspace) { w.add(config, "[include]\n\tpath = more\n"); w.write(".git/more", header) }, CodeCredentials},
		{"an include of an include", func(w *workspace) {
			w.add(config, "[include]\n\tpath = a\n")
			w.write(".git/a", "[include]\n\tpath = ~/b\n")
			if err := os.WriteFile(w.temp+"/b", []byte(header), 0o600); err != nil {
				t.Fatal(err)
			}
		}, CodeCredentials},
		{"an include of itself", func(w *workspace) { w.add(config, "[include]\n\tpath = config\n") }, CodeNoCheckout},
		{"an include of a folder", func(w *workspace) { w.add(config, "[include]\n\tpath = /etc\n") }, CodeNoCheckout},
		{"an include of another's home", func(w *workspace) { w.add(config, "[include]\n\tpath = ~root/x\n") }, CodeNoCheckout},
		{"header in odd spelling", func(w *workspace) { w.add(config, "[HTTP]ExtraHeader=\\\n \"AUTH\"\n") }, CodeCredentials},
		{"header of the old section syntax", func(w *workspace) { w.add(config, "[http.https://github.com]extraheader=x\n") }, CodeNoCheckout},
		{"user information in an address", func(w *workspace) {
			w.add(config, "[remote \"origin\"]\n\turl = https://x:ghs_secret@github.com/o/r\n")
		}, CodeCredentials},
		{"user information in a push address", func(w *workspace) { w.add(config, "[remote \"o\"]\n\tpushurl = https://ghs_secret@github.com/o/r\n") }, CodeCredentials},
		{"user information in insteadOf", func(w *workspace) {
			w.add(config, "[url \"https://x:ghs_secret@github.com/\"]\n\tinsteadOf = https://github.com/\n")
		}, CodeCredentials},
		{"an ssh address", func(w *workspace) { w.add(config, "[remote \"s\"]\n\turl = ssh://git@github.com/o/r\n") }, ""},
		{"an ssh address with a password", func(w *workspace) { w.add(config, "[remote \"s\"]\n\turl = ssh://git:pw@github.com/o/r\n") }, CodeCredentials},
		{"a credential program", func(w *workspace) { w.add(config, "[credential]\n\thelper = store\n") }, CodeCredentials},
		{"no credential program", func(w *workspace) { w.add(config, "[credential]\n\thelper =\n") }, ""},
		{"an ssh key", func(w *workspace) { w.add(config, "[core]\n\tsshCommand = ssh -i /tmp/key\n") }, CodeCredentials},
		{"a cookie file", func(w *workspace) { w.add(config, "[http]\n\tcookieFile = c\n") }, CodeCredentials},
		{"a proxy's password", func(w *workspace) { w.add(config, "[http]\n\tproxy = http://u:p@proxy:8080\n") }, CodeCredentials},
		{"another tool's password", func(w *workspace) { w.add(config, "[sendemail]\n\tsmtpPass = x\n") }, CodeCredentials},
		{"a config that git would refuse", func(w *workspace) { w.add(config, "[core\n") }, CodeNoCheckout},
		{"a config that is a link", func(w *workspace) {
			os.Remove(filepath.Join(w.dir, config))
			os.Symlink("/etc/hostname", filepath.Join(w.dir, config))
		}, CodeNoCheckout},
		{"a huge config", func(w *workspace) { w.add(config, strings.Repeat("#\n", 1<<20)) }, CodeNoCheckout},
		{"a worktree's config", func(w *workspace) { w.write(".git/config.worktree", header) }, CodeCredentials},
		{"another worktree's config", func(w *workspace) { w.write(".git/worktrees/x/config.worktree", header) }, CodeCredentials},
		{"a submodule's config", func(w *workspace) { w.write(".git/modules/x/config", header) }, CodeCredentials},
		{"a submodule's submodule's config", func(w *workspace) { w.write(".git/modules/x/modules/hooks/config", header) }, CodeCredentials},
		{"a submodule named objects", func(w *workspace) { w.write(".git/modules/objects/config", header) }, CodeCredentials},
		{"a store of passwords", func(w *workspace) { w.write(".git/credentials", "https://x:y@github.com\n") }, CodeCredentials},
		{"FETCH_HEAD", func(w *workspace) { w.write(".git/FETCH_HEAD", w.head+"\t\t'x' of https://u:p@github.com/o/r\n") }, CodeCredentials},
		{"a second checkout", func(w *workspace) { w.write("other/.git/config", header) }, CodeCredentials},
		{"another action's credential", func(w *workspace) { w.write("gha-creds-0123456789abcdef.json", "{}") }, CodeCredentials},
		{".netrc", func(w *workspace) { w.write("sub/.netrc", "machine x") }, CodeCredentials},
		{"reftable, by config", func(w *workspace) { w.add(config, "[extensions]\n\trefStorage = reftable\n") }, CodeNoCheckout},
		{"reftable, by folder", func(w *workspace) { w.write(".git/reftable/tables.list", "") }, CodeNoCheckout},
		{"a worktree", func(w *workspace) { w.write(".git/commondir", "../../x\n") }, CodeNoCheckout},
		{"no .git", func(w *workspace) { os.RemoveAll(w.dir + "/.git") }, CodeNoCheckout},
		{".git is a file", func(w *workspace) { os.RemoveAll(w.dir + "/.git"); w.write(".git", "gitdir: /etc\n") }, CodeNoCheckout},
		{".git is a link", func(w *workspace) {
			os.Rename(w.dir+"/.git", w.dir+"/.g")
			os.Symlink(".g", w.dir+"/.git")
		}, CodeNoCheckout},
		{"no folder", func(w *workspace) { os.RemoveAll(w.dir) }, CodeNoCheckout},
		{"HEAD outside", func(w *workspace) { w.write(".git/HEAD", "ref: ../../../etc/hostname\n") }, CodeNoCheckout},
		{"HEAD of a branch outside", func(w *workspace) { w.write(".git/HEAD", "ref: refs/../../../etc/hostname\n") }, CodeNoCheckout},
		{"HEAD of no branch", func(w *workspace) { w.write(".git/HEAD", "ref: refs/heads/none\n") }, CodeNoCheckout},
		{"HEAD of a ref of a ref", func(w *workspace) {
			w.write(".git/HEAD", "ref: refs/heads/a\n")
			w.write(".git/refs/heads/a", "ref: refs/heads/b\n")
			w.write(".git/refs/heads/b", w.head+"\n")
		}, CodeNoCheckout},
		{"HEAD elsewhere", func(w *workspace) { w.write(".git/HEAD", strings.Repeat("2", 40)+"\n") }, CodeHead},
	}, 4, 10) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			c.harm(w)
			_, err := w.inspect()
			wantCode(t, err, c.want)
			if err != nil && (strings.Contains(err.Error(), "ghs_secret") || strings.Contains(err.Error(), "eC1h")) {
				t.Errorf("the credential is in %v", err)
			}
		})
	}
}

// TestInspectRunsNothing: the checkout's own hooks and config have no effect.
func TestInspectRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	trace := filepath.Join(w.temp, "trace")
	for _, name := range []string{"reference-transaction", "post-checkout", "post-index-change", "pre-auto-gc"} {
		w.write(".git/hooks/"+name, "#!/bin/sh\ntouch "+trace+"\n")
		if err := os.Chmod(filepath.Join(w.dir, ".git/hooks", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.add(".git/config", "[core]\n\tfsmonitor = \"touch "+trace+"\"\n\tpager = \"touch "+trace+"\"\n[alias]\n\tcat-file = \"!touch "+trace+"\"\n")
	if _, err := w.inspect(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("something ran")
	}
}

// TestInspectPartial: objects are missing, so nothing can be compared. Describe
// must say so.
func TestInspectPartial(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	if err := os.RemoveAll(filepath.Join(w.dir, ".git/objects")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, ".git/objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := w.inspect()
	if err != nil || got.Partial == "" || got.Untracked != 0 || len(got.Describe()) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
