// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

const (
	lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n*.evil filter=evil\nsecret.txt export-ignore\nsub.txt export-subst\n*.u16 working-tree-encoding=UTF-16\ncrlf.txt text eol=crlf\nid.txt ident\n"
)

// A hostileTree has one of three outcomes: git's checks or this package's refuse
// all of it (code), some of it is left out (left), or it is written (files).
type hostileTree struct {
	name  string
	tree  func(o *origin, hi string) string
	code  string
	left  []Left
	files map[string]string
}

// canary is a URL that must never be requested.
func hostileTrees(canary string) []hostileTree {
	return []hostileTree{
		{name: "clean",
			tree:  func(o *origin, hi string) string { return o.tree("100644 a.txt", hi, "100755 run.sh", hi) },
			files: map[string]string{"a.txt": "hi\n", "run.sh": "hi\n"}},
		{name: "symlinks outward",
			tree: func(o *origin, hi string) string {
				return o.tree("120000 abs", o.blob("/etc/passwd"), "120000 dotgit", o.blob(".git/config"), "120000 empty", o.blob(""),
					"120000 late", o.blob("a/../../x"), "120000 long", o.blob(strings.Repeat("x/", 3000)), "120000 nul", o.blob("a\x00b"), "120000 up", o.blob("../../outside"))
			},
			left: []Left{{"abs", BadLink, "to /etc/passwd"}, {"dotgit", BadLink, "to .git/config"}, {"empty", BadLink, "to nothing"}, {"late", BadLink, "to a/../../x"},
				{"long", BadLink, "to nothing"}, {"nul", BadLink, "to a\x00b"}, {"up", BadLink, "to ../../outside"}}},
		{name: "symlink chain outward", // d is the root, so d/../secret would be outside
			tree: func(o *origin, hi string) string {
				return o.tree("40000 a", o.tree("40000 b", o.tree("120000 d", o.blob("../.."))), "120000 x", o.blob("a/b/d/../secret"))
			},
			left: []Left{{"x", BadLink, "to a/b/d/../secret"}}, files: map[string]string{"a/b/d": "-> ../.."}},
		{name: "submodule with an ext:: address",
			tree: func(o *origin, hi string) string {
				return o.tree("100644 .gitmodules", o.blob("[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% PWNED\n"), "160000 x", strings.Repeat("1", 40))
			},
			left:  []Left{{"x", Submodule, "at " + strings.Repeat("1", 40)}},
			files: map[string]string{".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% PWNED\n", "x": "/"}},
		{name: "submodule with an option for an address", code: CodeTree,
			tree: func(o *origin, hi string) string {
				return o.tree("100644 .gitmodules", o.blob("[submodule \"-u./payload\"]\n\tpath = x\n\turl = -u./payload\n"), "160000 x", strings.Repeat("1", 40))
			}},
		{name: ".git", code: CodeTree, tree: inFolder(".git")},
		{name: ".GIT", code: CodeTree, tree: inFolder(".GIT")},
		{name: "git~1", code: CodeTree, tree: inFolder("git~1")},
		{name: ".git as a file", code: CodeTree, tree: asFile(".git")},
		{name: ".git for NTFS", code: CodeTree, tree: asFile(".git::$INDEX_ALLOCATION")},
		{name: ".git with a dot and a blank", code: CodeTree, tree: asFile(".git. ")},
		{name: ".git for HFS", code: CodeTree, tree: inFolder(".g\u200cit")},
		{name: "dot dot", code: CodeTree, tree: inFolder("..")},
		{name: "dot", code: CodeTree, tree: inFolder(".")},
		{name: "slash", code: CodeTree, tree: asFile("../../evil")},
		{name: "empty name", code: CodeFetch, tree: asFile("")},
		{name: ".gitmodules as a symlink", code: CodeTree,
			tree: func(o *origin, hi string) string { return o.tree("120000 .gitmodules", o.blob("/etc/passwd")) }},
		{name: "twice the same name", code: CodeTree,
			tree: func(o *origin, hi string) string { return o.tree("100644 a", hi, "40000 a", o.tree("100644 b", hi)) }},
		{name: "link and folder of one name", code: CodeTree,
			tree: func(o *origin, hi string) string {
				return o.tree("120000 a", o.blob("/tmp"), "100644 a.txt", hi, "40000 a", o.tree("100644 b", hi))
			}},
		{name: "out of order", code: CodeTree,
			tree: func(o *origin, hi string) string { return o.tree("100644 b", hi, "100644 a", hi) }},
		{name: "no tree", code: CodeFetch, tree: func(o *origin, hi string) string { return hi }},
		{name: "backslash", tree: asFile(`a\..\b`), left: []Left{{`a\..\b`, BadName, ""}}},
		{name: "control characters", tree: asFile("x\x1b[31m::add-mask::\ny"), left: []Left{{"x\x1b[31m::add-mask::\ny", BadName, ""}}},
		{name: "not UTF-8", tree: asFile("caf\xe9"), left: []Left{{"caf\xe9", BadName, ""}}},
		{name: "right to left", tree: asFile("a\u202etxt.exe"), left: []Left{{"a\u202etxt.exe", BadName, ""}}},
		{name: "a folder of a refused name", tree: inFolder("a\nb"), left: []Left{{"a\nb", BadName, ""}}},
		{name: "300 characters", tree: asFile(strings.Repeat("a", 300)), left: []Left{{strings.Repeat("a", 300), LongName, ""}}},
		{name: "setuid", tree: func(o *origin, hi string) string { return o.tree("104755 s", hi) }, left: []Left{{"s", BadMode, ""}}},
		{name: "case",
			tree: func(o *origin, hi string) string {
				return o.tree("120000 A", o.blob("a"), "40000 a", o.tree("100644 b", hi))
			},
			left: []Left{{"a", Collision, "A"}}, files: map[string]string{"A": "-> a", "a/b": "hi\n"}},
		{name: "Unicode forms",
			tree: func(o *origin, hi string) string {
				return o.tree("100644 Ka", hi, "100644 cafe\u0301", hi, "100644 caf\u00e9", hi, "100644 \u212aA", hi)
			},
			left:  []Left{{"caf\u00e9", Collision, "cafe\u0301"}, {"\u212aA", Collision, "Ka"}},
			files: map[string]string{"Ka": "hi\n", "cafe\u0301": "hi\n", "caf\u00e9": "hi\n", "\u212aA": "hi\n"}},
		deepFolders(150),
		{name: "attributes, filters and LFS",
			tree: func(o *origin, hi string) string {
				return o.tree("100644 .gitattributes", o.blob(attributes), "100644 .lfsconfig", o.blob("[lfs]\n\turl = "+canary+"\n"),
					"100644 a.evil", hi, "100644 big.bin", o.blob(lfsPointer), "100644 crlf.txt", hi, "100644 id.txt", o.blob("$Id$\n"),
					"100644 secret.txt", hi, "100644 sub.txt", o.blob("$Format:%H$\n"), "100644 t.u16", hi)
			},
			left: []Left{{"big.bin", LargeFile, ""}},
			files: map[string]string{".gitattributes": attributes, ".lfsconfig": "[lfs]\n\turl = " + canary + "\n", "a.evil": "hi\n", "big.bin": lfsPointer,
				"crlf.txt": "hi\n", "id.txt": "$Id$\n", "secret.txt": "hi\n", "sub.txt": "$Format:%H$\n", "t.u16": "hi\n"}},
		{name: "hooks and a config, as ordinary files",
			tree: func(o *origin, hi string) string {
				return o.tree("100755 .envrc", hi, "100644 config", hi, "40000 hooks", o.tree("100755 post-checkout", hi))
			},
			files: map[string]string{".envrc": "hi\n", "config": "hi\n", "hooks/post-checkout": "hi\n"}},
	}
}

// deepFolders returns n nested directories. An end-to-end test uses twenty times as many.
func deepFolders(n int) hostileTree {
	return hostileTree{name: "deep folders",
		tree: func(o *origin, hi string) string {
			tree := o.tree("100644 f", hi)
			for range n {
				tree = o.tree("40000 d", tree)
			}
			return tree
		},
		left: []Left{{strings.Repeat("d/", 128) + "d", LongName, ""}}}
}

func asFile(name string) func(*origin, string) string {
	return func(o *origin, hi string) string { return o.tree("100644 "+name, hi) }
}

func inFolder(name string) func(*origin, string) string {
	return func(o *origin, hi string) string { return o.tree("40000 "+name, o.tree("100644 config", hi)) }
}

// TestHostile: THREATS 16. The environment is hostile too: every file and variable
// that git would read names a command that leaves a trace.
func TestHostile(t *testing.T) {
	lanetest.SkipShort(t)
	traces, canary := hostileEnvironment(t)
	writesHostile(t, traces, sample.EveryNth(t, hostileTrees(canary), 4, 20))
}

func writesHostile(t *testing.T, traces string, trees []hostileTree) {
	for _, c := range trees {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, 40)
			head := o.commit("hostile", c.tree(o, o.blob("hi\n")))
			s, _ := o.store(Limits{})
			err := s.Fetch(t.Context(), head)
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			outer := t.TempDir()
			dir := filepath.Join(outer, "in", "tree")
			if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			tree, err := s.Write(t.Context(), head, dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.left, tree.Left); diff != "" {
				t.Error(diff)
			}
			if c.files == nil {
				c.files = map[string]string{".": "/"}
			}
			if diff := cmp.Diff(c.files, files(t, dir)); diff != "" {
				t.Error(diff)
			}
			if err := s.WriteRepository(t.Context(), dir, head, "", Branches{}); err != nil {
				t.Error(err)
			}
			if list, _ := filepath.Glob(outer + "/*"); len(list) != 1 {
				t.Errorf("written outside: %q", list)
			}
		})
	}
	if left, err := os.ReadDir(traces); err != nil || len(left) > 0 {
		t.Errorf("something ran: %v %v", left, err)
	}
}

// hostileEnvironment fills HOME, XDG_CONFIG_HOME and git's variables with traps. It
// returns the directory in which a triggered trap leaves a file, and the URL of a
// server that fails the test when it is requested.
func hostileEnvironment(t *testing.T) (traces, canary string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
			t.Error("the canary was asked")
		}
	}()
	canary = "http://" + listener.Addr().String() + "/evil"
	home := t.TempDir()
	traces = t.TempDir()
	touch := func(name string) string { return "touch " + traces + "/" + name + " #" }
	config := fmt.Sprintf(`[core]
	hooksPath = %[1]s/hooks
	fsmonitor = %[2]q
	sshCommand = %[3]q
	attributesFile = %[1]s/attributes
	pager = %[3]q
	gitProxy = %[3]q
[filter "evil"]
	smudge = %[4]q
	clean = %[4]q
	required = true
[filter "lfs"]
	smudge = %[4]q
	process = %[4]q
	required = true
[credential]
	helper = !%[5]s
[url %[6]q]
	insteadOf = http://127.0.0.1
[http]
	proxy = %[6]s
	extraHeader = "X-Evil: 1"
[diff]
	external = %[4]q
`, home, touch("fsmonitor"), touch("ssh"), touch("filter"), touch("credential"), canary)
	for name, content := range map[string]string{
		".gitconfig": config, "git/config": config, "attributes": "* filter=evil\n",
		".netrc":              "default login evil password evil\n",
		"hooks/post-checkout": "#!/bin/sh\n" + touch("hook") + "\n", "hooks/reference-transaction": "#!/bin/sh\n" + touch("hook") + "\n",
		"hooks/post-index-change": "#!/bin/sh\n" + touch("hook") + "\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testprogram.WriteExecutable(t, path, content)
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": home + "/.gitconfig", "GIT_CONFIG_SYSTEM": home + "/.gitconfig",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": home + "/hooks",
		"GIT_CONFIG_PARAMETERS": "'core.hooksPath=" + home + "/hooks'",
		"GIT_DIR":               home, "GIT_WORK_TREE": home, "GIT_INDEX_FILE": traces + "/index", "GIT_OBJECT_DIRECTORY": traces,
		"GIT_EXEC_PATH": home, "GIT_TEMPLATE_DIR": home, "GIT_TRACE": traces + "/trace", "GIT_TRACE2": traces + "/trace2", "GIT_TRACE_CURL": traces + "/curl",
		"GIT_SSH_COMMAND": touch("ssh"), "GIT_ASKPASS": home + "/hooks/post-checkout", "GIT_EXTERNAL_DIFF": touch("diff"), "GIT_PROXY_COMMAND": touch("proxy"),
		"http_proxy": canary, "https_proxy": canary, "ALL_PROXY": canary, "GIT_SHALLOW_FILE": traces + "/shallow",
	} {
		t.Setenv(name, value)
	}
	return traces, canary
}

// TestTraps shows that the traps above work: plain git triggers them.
func TestTraps(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(home+"/.gitconfig", []byte("[filter \"evil\"]\n\tsmudge = \"touch "+home+"/trace; cat\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := newOrigin(t, 40)
	o.put("refs/heads/main", o.commit("c", o.tree("100644 .gitattributes", o.blob(attributes), "100644 a.evil", o.blob("x")))+"\n")
	clone := exec.Command("git", "clone", "-q", "-b", "main", o.dir, home+"/clone")
	clone.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(home + "/trace"); err != nil {
		t.Error(err)
	}
}

// TestOwnChecks: what git's checks refuse is refused here again, in case a git
// accepts it.
func TestOwnChecks(t *testing.T) {
	t.Parallel()
	for _, c := range sample.EveryNth(t, hostileTrees(""), 2, 10) {
		if c.code == "" || c.name == "no tree" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, 40)
			head := o.commit("hostile", c.tree(o, o.blob("hi\n")))
			s, _ := o.store(Limits{})
			s.bare, s.digits = o.dir, 40 // as if everything had been fetched
			dir := filepath.Join(t.TempDir(), "tree")
			tree, err := s.Write(t.Context(), head, dir)
			if err != nil {
				wantCode(t, err, CodeTree)
				return
			}
			for path := range files(t, dir) {
				if path != "." && path != "x" && path != ".gitmodules" {
					t.Errorf("%q was written", path)
				}
			}
			if len(tree.Left) == 0 {
				t.Error("nothing is said to be left out")
			}
		})
	}
}

// TestBombs: a few objects expand to many files or to much data, which would take
// longer than the time limit of all tests.
func TestBombs(t *testing.T) {
	t.Parallel()
	small := Limits{Files: 1000, Bytes: 1 << 20, File: 1 << 19}
	for _, c := range sample.EveryNth(t, []struct {
		name string
		tree func(o *origin) string
		want string // of the message
	}{
		{"one large blob a hundred times", func(o *origin) string { return wide(o, "100644", o.blob(strings.Repeat("x", 20_000)), 100) }, "more than 1048576 bytes"},
		{"one blob ten thousand times", func(o *origin) string { return wide(o, "100644", o.blob("x"), 10_000) }, "more than 1000 files"},
		{"one huge blob", func(o *origin) string { return wide(o, "100644", o.blob(strings.Repeat("x", 1<<20)), 1) }, "more than the 524288"},
		{"trees of trees", func(o *origin) string {
			tree := o.tree("100644 f", o.blob("x"))
			for range 20 {
				tree = wide(o, "40000", tree, 20)
			}
			return tree
		}, "more than 1000 files"},
		{"trees of trees without a file", func(o *origin) string {
			tree := o.tree()
			for range 20 {
				tree = wide(o, "40000", tree, 20)
			}
			return tree
		}, "more than 1000 files"},
	}, 1, 10) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, 40)
			head := o.commit("bomb", c.tree(o))
			s, _ := o.store(small)
			if err := s.Fetch(t.Context(), head); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "d")
			_, err := s.Write(t.Context(), head, dir)
			wantCode(t, err, CodeLimit)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Error("a part was left")
			}
		})
	}
}

// wide is a tree with n entries of one object.
func wide(o *origin, mode, id string, n int) string {
	pairs := make([]string, 0, 2*n)
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("%s f%06d", mode, i), id)
	}
	return o.tree(pairs...)
}
