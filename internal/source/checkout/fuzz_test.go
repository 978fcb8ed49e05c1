// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

var configSeeds = []string{
	"", "[core]\n\tbare = false\n", header,
	"[a]b=c", "[a]b", "[a]b ; c\n[d]e # f", "[a]\nb = \" c \" d  ; e\n", "[a]\nb = c\\\nd\n", "[a]\nb = \\\"x\\\\\\n\\t\\b\n",
	"[a \"x\\\"y\\z\"]\nb=1\n", "[a.B.c]\nd=1\n", "[A.B \"c\"]\nd=1\n", "\ufeff[a]\r\nb = c\r\n", "[a]\nb=c\rd\n", "[a]\nb = \"c\n", "[a", "[a \"b\n\"]", "[]\na=1", "a=1",
	"[a]\n1b=1\n", "[a]\nb-1=x y  \n", "[a]\nb = \\x\n", "[a]\nb==\n", "[a]\nb = # c\n", "[a]\nb \\\n= 1\n", "[a]b=1 [c]d=2\n", "[a] [b] c = 1\n", "[a]\nb=\"\" \"\"\n",
	"[include]\n\tpath = x\n[includeIf \"gitdir:/a/**\"]\n\tpath = ~/y\n", "[a]\nb=\x00\n", "[a]\x00b=1\n", "[a \"\"]\nb=1\n", "[a]\nb\x00", "[a]\nb=1\\", "[a]\n\vb=1\n", "[a]\nb=\f1\f2\f\n",
}

// list writes settings as git config --list -z does.
func list(settings []setting) string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%s\n%s\x00", s.name(), s.value)
	}
	return b.String()
}

// TestConfigLikeGit compares parseConfig with git: whatever parseConfig accepts,
// git must read the same way. parseConfig may refuse more than git, but never less.
func TestConfigLikeGit(t *testing.T) {
	lanetest.SkipShort(t)
	texts := append([]string{}, configSeeds...)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\nb = c d", "\nC=\"x y\"", "\nd\n", "\n[e]f=", "[", "]", "\"", "\\", "\n", "\r\n", " ", "\t", "=", "#", ";", "a", "B", "-", ".", "1", "[a]\n", "b = c\n", "é", "[a \"b\"]"}
	for range sample.Rounds(t, 2000, 300, 30) {
		var b strings.Builder
		b.WriteString("[a]\n")
		for range random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		texts = append(texts, b.String())
	}
	read := 0
	for _, text := range texts {
		settings, err := parseConfig(text)
		if err != nil {
			continue
		}
		c := exec.Command("git", "config", "--file", "-", "--no-includes", "--list", "-z")
		c.Stdin = strings.NewReader(text)
		out, gitErr := c.Output()
		if gitErr != nil {
			t.Errorf("%q is %q to us, and refused by git", text, list(settings))
			continue
		}
		// git lists a key without a value as such; parseConfig returns "true".
		want := ""
		for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if line == "" {
				continue
			}
			if !strings.Contains(line, "\n") {
				line += "\ntrue"
			}
			want += line + "\x00"
			read++
		}
		// Whether a tab within a value is kept depends on git's version.
		if diff := cmp.Diff(strings.ReplaceAll(want, "\t", " "), strings.ReplaceAll(list(settings), "\t", " ")); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if 4*read < len(texts) {
		t.Errorf("only %d settings were compared", read)
	}
}

func FuzzConfig(f *testing.F) {
	for _, seed := range configSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := parseConfig(text)
		if err != nil {
			return
		}
		for _, s := range settings {
			if s.section == "" || s.key == "" || s.key != strings.ToLower(s.key) {
				t.Errorf("%+v", s)
			}
			secretIn(s)
		}
	})
}

func FuzzTree(f *testing.F) {
	raw := strings.Repeat("\x01", 20)
	for _, seed := range []string{"", "100644 a\x00" + raw, "100644 a\x00" + raw + "40000 b\x00" + raw, "40000 .git\x00" + raw, "100644 a/b\x00" + raw, "100644 \x00" + raw, "1 a\x00", "120000 ..\x00" + raw, "100644 b\x00" + raw + "100644 a\x00" + raw} {
		f.Add(seed)
	}
	limits := Limits{}.withDefaults()
	f.Fuzz(func(t *testing.T, data string) {
		entries, err := parseTree([]byte(data), 20)
		if err != nil {
			return
		}
		for _, n := range classifyEntries("in/", entries, limits) {
			if !idRE.MatchString(n.id) || !strings.HasPrefix(n.path, "in/") || path.Clean(n.path) != n.path || strings.Count(n.path, "/") != 1 {
				t.Errorf("%+v", n)
			}
			if !n.left.isAbsent() && (badName(n.name) || strings.EqualFold(n.name, ".git")) {
				t.Errorf("%+v would be written", n)
			}
		}
	})
}

func FuzzLink(f *testing.F) {
	for _, seed := range []string{"a", "../a", "../../a", "a/../b", "/a", ".git/x", "./..", "a//b", "..", ""} {
		f.Add("d/l", seed)
	}
	f.Fuzz(func(t *testing.T, at, target string) {
		if path.Clean(at) != at || path.IsAbs(at) || strings.HasPrefix(at, "..") || badLink(at, target) {
			return
		}
		if to := path.Join(path.Dir(at), target); path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
			t.Errorf("%q at %q leads to %q", target, at, to)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	id := strings.Repeat("a", 40)
	for _, seed := range []string{id + " blob 3\n", id + " missing\n", id + " blob 03\n", id + " blob -1\n", id + " x 1\n", id, "", id + " blob 99999999999999999999\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		kind, size, err := parseHeader(line, id)
		if err != nil || kind == "" && line == id+" missing\n" {
			return
		}
		if line != fmt.Sprintf("%s %s %d\n", id, kind, size) {
			t.Errorf("%q reads as %s %d", line, kind, size)
		}
	})
}

func FuzzCommit(f *testing.F) {
	id := strings.Repeat("a", 40)
	for _, seed := range []string{"tree " + id + "\nparent " + id + "\nauthor x\n\ntree", "tree x\n", "", "parent " + id + "\n", "tree " + id + "\nparent x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		tree, parents, err := parseCommit(data, 40)
		if err != nil {
			return
		}
		want := "tree " + tree + "\n"
		for _, parent := range parents {
			want += "parent " + parent + "\n"
		}
		if !strings.HasPrefix(data+"\n", want) {
			t.Errorf("%q reads as %q", data, want)
		}
	})
}

func FuzzPackedRefs(f *testing.F) {
	id := strings.Repeat("a", 40)
	for _, seed := range []string{"", "# pack-refs with: peeled\n" + id + " refs/heads/x\n^" + id + "\n", id + " refs/../x\n", id + "\n", id + " refs/heads/a.lock\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		refs, err := parsePackedRefs(data)
		if err != nil {
			return
		}
		for name, sha := range refs {
			if !idRE.MatchString(sha) || path.Clean(name) != name || !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") {
				t.Errorf("%q %q", name, sha)
			}
		}
	})
}

// Whatever a .gitmodules says, a submodule comes from the repository's own server or from
// nowhere, and its path is below the workspace.
func FuzzModules(f *testing.F) {
	for _, seed := range []string{"../x", "https://git.example/o/x", "https://git.example:444/o/x", "https://git.example@evil.example/x", "//evil.example/x", "./../../..", "ext::sh", "https:/\\evil.example", "-u"} {
		f.Add(modulesFile("m", "m", seed))
	}
	f.Add("[submodule \"a\"]\npath=../a\nurl=../b\n[include]\npath=/etc/passwd\n")
	r := remote{url: "https://git.example/octocat/hello"}
	f.Fuzz(func(t *testing.T, data string) {
		for at, p := range r.parseModules(data).by {
			if p.why != "" {
				continue
			}
			u, err := url.Parse(p.url)
			if err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, "git.example") || u.User != nil || strings.HasPrefix(p.url, "-") || checkPath(at) != nil {
				t.Errorf("%q: %q from %q", data, at, p.url)
			}
		}
	})
}
