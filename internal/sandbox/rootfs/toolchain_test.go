// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

const program = "\x7fELF"

// tree makes files in a new directory below /opt, whose programs policy starts. A text
// that begins with "-> " is the target of a link, "#!" or ELF means a program.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := os.MkdirTemp("/opt", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	must(t, os.Chmod(root, 0o755))
	for _, name := range sortedKeys(files) {
		path, text := filepath.Join(root, name), strings.ReplaceAll(files[name], "ROOT", root)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		target, link := strings.CutPrefix(text, "-> ")
		switch {
		case link:
			must(t, os.Symlink(target, path))
		case strings.HasPrefix(text, "#!") || strings.HasPrefix(text, program):
			testprogram.WriteExecutable(t, path, text)
		default:
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// search opens a host root; "ROOT" in path is replaced.
func search(t *testing.T, root, path string) Root {
	t.Helper()
	r, err := Search{Path: strings.ReplaceAll(path, "ROOT", root), Workspace: root + "/workspace"}.Open("host")
	must(t, err)
	return r
}

// added returns the binds below root, relative to it.
func added(r Root, root string) (list []string) {
	for _, at := range sortedKeys(r.Binds) {
		if rest, ok := strings.CutPrefix(at, root+"/"); ok {
			list = append(list, rest)
		}
	}
	return list
}

const script = "#!/bin/sh\n"

// Every layout of a toolchain that is shown: what of it, and where tool is found.
func TestShown(t *testing.T) {
	lanetest.SkipShort(t)
	for name, c := range map[string]struct {
		files      map[string]string
		path       string
		tool, want string
		binds      []string
	}{
		"hosted tool cache": {map[string]string{"cache/Python/3.11.7/x64/bin/python3": program, "cache/Python/3.11.7/x64/lib/x": ""},
			"ROOT/cache/Python/3.11.7/x64/bin", "python3", "cache/Python/3.11.7/x64/bin/python3", []string{"cache/Python/3.11.7/x64"}},
		"nvm": {map[string]string{"h/.nvm/versions/node/v20/bin/node": program, "h/.nvm/versions/node/v20/include/x": "", "h/.nvm/.env": "T=1"},
			"ROOT/h/.nvm/versions/node/v20/bin", "node", "h/.nvm/versions/node/v20/bin/node", []string{"h/.nvm/versions/node/v20"}},
		"GOROOT": {map[string]string{"go1.26/bin/go": program, "go1.26/VERSION": "go1.26.0\n", "go1.26/src/runtime/x": ""},
			"ROOT/go1.26/bin", "go", "go1.26/bin/go", []string{"go1.26"}},
		"GOPATH": {map[string]string{"h/go/bin/gofumpt": program, "h/go/pkg/mod/x": "", "h/go/src/secret": ""},
			"ROOT/h/go/bin", "gofumpt", "h/go/bin/gofumpt", []string{"h/go/bin"}},
		"pyenv": {map[string]string{"h/.pyenv/shims/python3": script, "h/.pyenv/version": "3.11.7\nsystem\n", "h/.pyenv/versions/3.11.7/bin/python3": program,
			"h/.pyenv/versions/3.11.7/lib/x": "", "h/.pyenv/versions/3.12.0/bin/python3": program},
			"ROOT/h/.pyenv/shims:/usr/bin", "python3", "h/.pyenv/versions/3.11.7/bin/python3", []string{"h/.pyenv/versions/3.11.7"}},
		"asdf": {map[string]string{"h/.asdf/shims/node": script, "h/.tool-versions": "nodejs 20.1.0\n", "h/.asdf/installs/nodejs/20.1.0/bin/node": program,
			"h/.asdf/installs/nodejs/20.1.0/lib/x": "", "h/.asdf/installs/nodejs/18.0.0/bin/node": program},
			"ROOT/h/.asdf/shims", "node", "h/.asdf/installs/nodejs/20.1.0/bin/node", []string{"h/.asdf/installs/nodejs/20.1.0"}},
		"mise": {map[string]string{"h/.local/share/mise/shims/python3": script, "h/.config/mise/config.toml": "[tools]\npython = \"3.12\"\n",
			"h/.local/share/mise/installs/python/3.12.1/bin/python3": program, "h/.local/share/mise/installs/python/3.12.1/lib/x": "",
			"h/.local/share/mise/installs/python/3.12": "-> 3.12.1", "h/.local/share/mise/installs/python/3.9.0/bin/python3": program},
			"ROOT/h/.local/share/mise/shims", "python3", "h/.local/share/mise/installs/python/3.12/bin/python3",
			[]string{"h/.local/share/mise/installs/python/3.12", "h/.local/share/mise/installs/python/3.12.1"}},
		"volta": {map[string]string{"h/.volta/bin/volta": program, "h/.volta/bin/node": "-> volta", "h/.volta/tools/user/platform.json": `{"node":{"runtime":"20.1.0","npm":null},"yarn":null}`,
			"h/.volta/tools/image/node/20.1.0/bin/node": program, "h/.volta/tools/image/node/20.1.0/lib/x": ""},
			"ROOT/h/.volta/bin", "node", "h/.volta/tools/image/node/20.1.0/bin/node", []string{"h/.volta/tools/image/node/20.1.0"}},
		"rustup": {map[string]string{"h/.cargo/bin/rustup": program, "h/.cargo/bin/cargo": "-> rustup", "h/.cargo/credentials.toml": "x", "h/.rustup/settings.toml": "default_toolchain = \"stable\"\n",
			"h/.rustup/toolchains/stable-x86_64/bin/cargo": program, "h/.rustup/toolchains/stable-x86_64/lib/x": ""},
			"ROOT/h/.cargo/bin", "cargo", "h/.rustup/toolchains/stable-x86_64/bin/cargo", []string{"h/.rustup/toolchains/stable-x86_64"}},
		"sdkman": {map[string]string{"h/.sdkman/candidates/java/17.0.9-tem/bin/java": program, "h/.sdkman/candidates/java/17.0.9-tem/lib/x": "", "h/.sdkman/candidates/java/current": "-> 17.0.9-tem"},
			"ROOT/h/.sdkman/candidates/java/current/bin", "java", "h/.sdkman/candidates/java/current/bin/java",
			[]string{"h/.sdkman/candidates/java/17.0.9-tem", "h/.sdkman/candidates/java/current"}},
		"uv": {map[string]string{"h/.local/bin/python3": "-> ROOT/h/.local/share/uv/python/cpython-3.12/bin/python3", "h/.local/bin/notes": script, "h/.local/share/keys": "",
			"h/.local/share/uv/python/cpython-3.12/bin/python3": "-> python3.12", "h/.local/share/uv/python/cpython-3.12/bin/python3.12": program, "h/.local/share/uv/python/cpython-3.12/lib/x": ""},
			"ROOT/h/.local/bin", "python3", "h/.local/share/uv/python/cpython-3.12/bin/python3", []string{"h/.local/share/uv/python/cpython-3.12"}},
		"virtual environment": {map[string]string{"venv/bin/python3": "-> ROOT/py/bin/python3", "venv/lib/x": "", "py/bin/python3": program, "py/lib/x": ""},
			"ROOT/venv/bin", "python3", "venv/bin/python3", []string{"py", "venv"}},
		"deno": {map[string]string{"h/.deno/bin/deno": program}, "ROOT/h/.deno/bin", "deno", "h/.deno/bin/deno", []string{"h/.deno/bin"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			r := search(t, root, c.path)
			if got := added(r, root); !slices.Equal(got, c.binds) {
				t.Errorf("shows %q, want %q", got, c.binds)
			}
			if got := r.Lookup(c.tool); got != root+"/"+c.want {
				t.Errorf("%s is %s, want %s; PATH %s; %v", c.tool, got, c.want, r.Path, r.Warnings(nil))
			}
			if warnings := r.Warnings(nil); len(warnings) > 0 {
				t.Errorf("%q", warnings)
			}
		})
	}
}

// What is not shown is named with its reason, if the sandbox has another of the name.
func TestNotShown(t *testing.T) {
	lanetest.SkipShort(t)
	whole := map[string]string{"x/bin/python3": program, "x/lib/x": ""}
	with := func(more ...string) map[string]string {
		files := map[string]string{}
		for name, text := range whole {
			files[name] = text
		}
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		edit  func(t *testing.T, root string)
		path  string
		want  string
	}{
		"everyone can write": {whole, func(t *testing.T, root string) { must(t, os.Chmod(root+"/x/bin", 0o777)) }, "ROOT/x/bin", "every user can write to ROOT/x/bin. Fix: chmod o-w ROOT/x/bin"},
		"a parent is open":   {whole, func(t *testing.T, root string) { must(t, os.Chmod(root, 0o777)) }, "ROOT/x/bin", "every user can write to ROOT. Fix: chmod o-w ROOT"},
		"a group can write": {whole, func(t *testing.T, root string) {
			must(t, os.Chown(root+"/x", 0, 1))
			must(t, os.Chmod(root+"/x", 0o775))
		}, "ROOT/x/bin", "a group can write to ROOT/x"},
		"another user's":      {whole, func(t *testing.T, root string) { must(t, os.Chown(root+"/x", 4242, 4242)) }, "ROOT/x/bin", "ROOT/x belongs to another user. Fix: chown root ROOT/x"},
		"not readable":        {whole, func(t *testing.T, root string) { must(t, os.Chmod(root+"/x", 0o700)) }, "ROOT/x/bin", "cannot read ROOT/x. Fix: chmod"},
		"npm token":           {with("x/etc/npmrc", "//r/:_authToken=1"), nil, "ROOT/x/bin", "ROOT/x/etc/npmrc may hold credentials. Fix: move"},
		"index password":      {with("x/pip.conf", "index-url = https://u:p@h/"), nil, "ROOT/x/bin", "ROOT/x/pip.conf may hold credentials"},
		"key":                 {with("x/share/k/id_ed25519", ""), nil, "ROOT/x/bin", "ROOT/x/share/k/id_ed25519 may hold credentials"},
		"pypirc":              {with("x/.pypirc", ""), nil, "ROOT/x/bin", "ROOT/x/.pypirc may hold credentials"},
		"working copy":        {with("x/.git/config", "", "x/bin/notes", script), nil, "ROOT/x/bin", "is not the bin directory of a toolchain"},
		"workspace":           {map[string]string{"workspace/.venv/bin/python3": program, "workspace/.venv/lib/x": ""}, nil, "ROOT/workspace/.venv/bin", "it is in the workspace"},
		"around workspace":    {map[string]string{"workspace/x": "", "bin/python3": program, "lib/x": ""}, nil, "ROOT/bin", "ROOT contains the workspace"},
		"scripts of a home":   {map[string]string{"h/bin/python3": script}, nil, "ROOT/h/bin", "is not the bin directory of a toolchain"},
		".local":              {map[string]string{"h/.local/bin/python3": script, "h/.local/share/keyrings/x": "", "h/.local/lib/x": ""}, nil, "ROOT/h/.local/bin", "is not the bin directory of a toolchain"},
		".config":             {map[string]string{"h/.config/x/bin/python3": program}, nil, "ROOT/h/.config/x/bin", "may hold credentials"},
		"pyenv without files": {map[string]string{"h/.pyenv/shims/python3": script, "h/.pyenv/version": "3.9.1\n", "h/.pyenv/versions/3.8.1/bin/python3": program}, nil, "ROOT/h/.pyenv/shims", "selects no version for all projects. Fix: select a version that is installed, for example: pyenv global VERSION"},
		"pyenv out of place":  {map[string]string{"h/.pyenv/shims/python3": script, "h/.pyenv/version": "../../secret\n", "h/.pyenv/versions/x": "", "h/secret/bin/python3": program, "h/secret/lib/x": ""}, nil, "ROOT/h/.pyenv/shims", "selects no version"},
		"asdf, two versions":  {map[string]string{"h/.asdf/shims/python3": script, "h/.asdf/installs/python/3.8.1/bin/python3": program, "h/.asdf/installs/python/3.9.1/bin/python3": program}, nil, "ROOT/h/.asdf/shims", "selects no version"},
		"dangling venv":       {map[string]string{"venv/bin/python3": "-> ROOT/h/.config/py/bin/python3", "venv/lib/x": "", "h/.config/py/bin/python3": program, "h/.config/py/lib/x": ""}, nil, "ROOT/venv/bin", "it is a link to ROOT/h/.config/py/bin/python3, which is not shown (ROOT/h/.config/py/bin may hold credentials)"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			if c.edit != nil {
				c.edit(t, root)
			}
			inside := tree(t, whole) + "/x/bin" // the python3 that is shown instead
			r := search(t, root, c.path+":"+inside+":/usr/bin")
			if got := added(r, root); len(got) > 0 && name != "dangling venv" {
				t.Errorf("shows %q", got)
			}
			warnings := strings.Join(r.Warnings(nil), "\n")
			if want := strings.ReplaceAll(c.want, "ROOT", root); !strings.HasPrefix(warnings, "python3 is "+inside+"/python3 inside, not "+root) || !strings.Contains(warnings, want) {
				t.Errorf("%q, want %q", warnings, want)
			}
		})
	}
}

// Tools that the sandbox lacks, or that PATH finds elsewhere first, are not reported: they
// fail by themselves, or are the same.
func TestNoShadow(t *testing.T) {
	root := tree(t, map[string]string{"a/bin/python3": script, "a/bin/no-such-tool": script, "b/bin/gcc": "-> /usr/bin/gcc", "b/bin/x": script})
	for _, path := range []string{"/usr/bin:ROOT/a/bin", "ROOT/b/bin:/usr/bin"} {
		if r := search(t, root, path); len(r.Shadows) > 0 || len(added(r, root)) > 0 {
			t.Errorf("%s: %+v", path, r.Shadows)
		}
	}
}

// A sticky directory in the path does not matter: other users cannot replace what is in it.
func TestPrivateGroupAndSticky(t *testing.T) {
	root := tree(t, map[string]string{"x/bin/python3": program, "x/lib/x": ""})
	must(t, os.Chmod(root, 0o777|os.ModeSticky))
	must(t, os.Chmod(root+"/x", 0o775)) // root's group has no other member
	if r := search(t, root, "ROOT/x/bin"); len(r.Shadows) > 0 || len(added(r, root)) != 1 {
		t.Errorf("%v", r.Warnings(nil))
	}
}

// Owners may own a toolchain.
func TestOwners(t *testing.T) {
	root := tree(t, map[string]string{"x/bin/python3": program, "x/lib/x": ""})
	for _, name := range []string{"x", "x/bin", "x/bin/python3"} {
		must(t, os.Chown(filepath.Join(root, name), 4242, 4242))
	}
	r, err := Search{Path: root + "/x/bin", Owners: []int{4242}}.Open("host")
	if err != nil || len(r.Shadows) > 0 || len(added(r, root)) != 1 {
		t.Errorf("%v %v", err, r.Warnings(nil))
	}
}

// Versions come from files, or from the tool if only its owners can replace it, and are kept
// while the tool is the same.
func TestToolchains(t *testing.T) {
	lanetest.SkipShort(t)
	root := tree(t, map[string]string{
		"go/bin/go": script + "exit 1", "go/VERSION": "go1.99.1 X:y\ntime", "go/src/runtime/x": "",
		"node/bin/node": script + "exit 1", "node/include/node/node_version.h": "#define NODE_MAJOR_VERSION 98\n#define NODE_MINOR_VERSION 7\n#define NODE_PATCH_VERSION 6\n",
		"py/bin/python3": script + "echo Python 3.99.$(id -u)${SECRET}; echo x >> ROOT/count", "py/lib/x": "", "py/bin/ruby": script + "echo ruby 9.9.9",
		"deno/bin/deno": script + "echo deno 1.2.3", "deno/lib/x": "",
		"php/bin/php": script + "sleep 60", "php/lib/x": "",
	})
	t.Setenv("SECRET", "7")
	must(t, os.Chmod(root+"/py/bin/ruby", 0o757))
	s := Search{Path: strings.ReplaceAll("ROOT/go/bin:ROOT/node/bin:ROOT/py/bin:ROOT/deno/bin:ROOT/php/bin", "ROOT", root)}
	r, err := s.Open("host")
	must(t, err)
	versions := func() string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var list []string
		for _, tool := range r.Toolchains(ctx, s, root+"/cache/versions.json") {
			if strings.HasPrefix(tool.Path, root) {
				list = append(list, tool.Name+" "+tool.Version)
			}
		}
		return fmt.Sprint(list)
	}
	for range 2 {
		if got := versions(); got != "[go 1.99.1 node 98.7.6 python3 3.99.0 ruby  php  deno 1.2.3]" {
			t.Error(got)
		}
	}
	if count, err := os.ReadFile(root + "/count"); err != nil || string(count) != "x\n" {
		t.Errorf("python3 ran more or less than once: %q %v", count, err)
	}
	testprogram.WriteExecutable(t, root+"/py/bin/python3", script+"echo Python 4.0.1")
	if got := versions(); !strings.Contains(got, "python3 4.0.1") {
		t.Error(got)
	}
}

// Python's version is in its headers, even if the tool is not run.
func TestPythonHeader(t *testing.T) {
	root := tree(t, map[string]string{"py/bin/python3": "-> python3.99", "py/bin/python3.99": script + "echo Python 1.1.1", "py/include/python3.99/patchlevel.h": "/* x */\n#define PY_VERSION      \"3.99.4\"\n"})
	r := search(t, root, "ROOT/py/bin")
	for _, tool := range r.Toolchains(t.Context(), Search{}, "") {
		if tool.Name == "python3" {
			if tool.Version != "3.99.4" {
				t.Error(tool)
			}
			return
		}
	}
	t.Error("no python3")
}

// A prepared root's own tools are listed, and none of them is run.
func TestToolchainsOfDirectory(t *testing.T) {
	root := tree(t, map[string]string{"r/usr/local/go/bin/go": script + "touch ROOT/ran", "r/usr/local/go/VERSION": "go1.98.1\n", "r/usr/bin/python3": script + "touch ROOT/ran", "r/bin": "-> usr/bin"})
	s := Search{Path: root + "/other/bin"}
	r, err := s.Open("dir:" + root + "/r")
	must(t, err)
	if got := fmt.Sprint(r.Toolchains(t.Context(), s, "")); got != "[{go 1.98.1 /usr/local/go/bin/go} {python3  /usr/bin/python3}]" || len(r.Shadows) > 0 {
		t.Error(got, r.Shadows)
	}
	if _, err := os.Stat(root + "/ran"); err == nil {
		t.Error("a tool of the directory ran on the host")
	}
}

// A directory whose /etc is a link shows nothing of what that leads to on this host.
func TestDirectoryEtcLink(t *testing.T) {
	root := tree(t, map[string]string{"host/secret": "secret", "r/usr/bin/bash": script, "r/etc": "-> ROOT/host", "absolute/usr/bin/bash": script, "absolute/etc": "-> /etc"})
	for _, name := range []string{"r", "absolute"} {
		r, err := Search{}.Open("dir:" + root + "/" + name)
		must(t, err)
		for at, source := range r.Binds {
			if strings.HasPrefix(at, "/etc") {
				t.Errorf("%s shows %s at %s", name, source, at)
			}
		}
		if _, ours := r.Files["/etc/passwd"]; !ours {
			t.Errorf("%s has no users", name)
		}
	}
}
