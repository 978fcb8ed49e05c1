// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registry

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withTools is a host with the machine's own tools and a new home.
func withTools(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PATH")
	kept := map[string]string{} // the tools' own locations, if below HOME
	for name, folder := range map[string]string{"PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup"} {
		if kept[name] = os.Getenv(name); kept[name] == "" {
			kept[name] = filepath.Join(homeDir(), folder)
		}
	}
	folder := lone(t, nil)
	t.Setenv("PATH", path)
	for name, value := range kept {
		t.Setenv(name, value)
	}
	return folder
}

// The real npm, pip, cargo and apt-get, each configured with a mirror by its own file in
// the operator's home, print what the golden files of the other tests contain.
func TestE2ERealTools(t *testing.T) {
	t.Setenv("CANARY", "canary")
	folder := withTools(t)
	for path, text := range map[string]string{
		".npmrc": "registry=https://ada:canary@npm.example/all/\n@ours:registry=https://ours.example/npm/\n" +
			"//ours.example/npm/:_authToken=${CANARY}\n",
		".config/pip/pip.conf": "[global]\nindex-url = https://ada:canary@pip.example/all/simple/\n[install]\nextra-index-url =\n" +
			"    https://more.example/simple/\n    http://plain.example:8080/simple/\n",
		".cargo/config.toml": "[source.crates-io]\nreplace-with = \"ours\"\n[source.ours]\nregistry = \"sparse+https://crates.example/x/index/\"\n",
		".m2/settings.xml":   mavenSays,
		"sources.list":       "deb [signed-by=/usr/share/keyrings/ours.gpg] https://apt.example/debian trixie main contrib\ndeb-src http://src.example/debian trixie main\n",
		"apt.conf":           `Dir::Etc::SourceList "` + folder + "/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n",
	} {
		write(t, filepath.Join(folder, path), text, 0o600)
	}
	t.Setenv("APT_CONFIG", filepath.Join(folder, "apt.conf"))
	t.Chdir(t.TempDir())
	write(t, ".npmrc", "registry=https://evil.example/\n", 0o600)
	write(t, ".cargo/config.toml", "[source.crates-io]\nreplace-with = \"evil\"\n", 0o600)
	list, err := Discover(t.Context(), []string{"npm", "pypi", "crates", "maven", "apt"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list { // where Node.js's headers are, and the option's name, are the host's
		maps.DeleteFunc(r.Env, func(name, _ string) bool { return strings.HasSuffix(name, "nodedir") })
	}
	golden(t, "real.json", list)
	leavesNoCanary(t, list)
	goesInside(t, list)
}

// goesInside checks that tools configured only as in the sandbox report the same
// origins.
func goesInside(t *testing.T, list []Registry) {
	t.Helper()
	folder := withTools(t)
	for _, r := range list {
		for name, value := range r.Env {
			t.Setenv(name, value)
		}
		for _, f := range r.Files {
			write(t, filepath.Join(folder, strings.TrimPrefix(f.Path, "~")), f.Content, 0o600)
		}
	}
	conf := filepath.Join(folder, "etc/apt/apt.conf.d/90fumehood")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, conf, string(text)+`Dir::Etc "`+folder+"/etc/apt\";\n", 0o600)
	t.Setenv("APT_CONFIG", conf)
	os.Unsetenv("PIP_CONFIG_FILE")
	again, err := Discover(t.Context(), []string{"npm", "pypi", "crates", "maven", "apt"})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		if diff := cmp.Diff(r.Origins, again[i].Origins); diff != "" {
			t.Errorf("%s: %s", r.Name, diff)
		}
		if len(again[i].Credentials) != 0 {
			t.Errorf("%s: a credential came back from inside: %v", r.Name, again[i].Credentials)
		}
	}
}
