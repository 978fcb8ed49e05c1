// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// testdata is absolute, so that it is found from any directory that a test changes to.
var testdata, _ = filepath.Abs("testdata")

var update = flag.Bool("update", false, "write the golden files anew")

func containsCanary(s string) bool {
	// canary, and the base64 of ada:canary and canary: at any alignment.
	for _, form := range []string{"canary", "Y2FuYXJ5", "NhbmFye", "jYW5hcn"} {
		if strings.Contains(s, form) {
			return true
		}
	}
	return false
}

// lone makes a host with its own home and only the given tools: name → script.
func lone(t *testing.T, tools map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	bin := filepath.Join(folder, "bin")
	for _, entry := range os.Environ() { // this machine's mirrors must not affect the tests
		name, _, _ := strings.Cut(entry, "=")
		for _, h := range append(handed, "NETRC=", "GOTOOLCHAIN=", "GITHUB_", "MAVEN_HOME", "M2_HOME") {
			if strings.HasPrefix(entry, h) && name != "PATH" {
				t.Setenv(name, "")
				os.Unsetenv(name)
			}
		}
	}
	t.Setenv("HOME", folder)
	t.Setenv("PATH", bin)
	for name, script := range tools {
		write(t, filepath.Join(bin, name), "#!/bin/sh\n"+script, 0o700)
	}
	return folder
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// send returns a tool that prints text, as the real tool was observed to.
func say(text string) string { return "/bin/cat <<'END'\n" + text + "\nEND\n" }

const (
	// npm does not print a URL that has a password.
	npmSays = `{"userconfig":"HOME/.npmrc","globalconfig":"/nonexistent/npmrc",
"@ours:registry":"https://ours.example/npm","cache":"/x","@bad name:registry":"https://bad.example/"}`
	npmrc = "registry=https://ada:canary@npm.example/all/\n//ours.example/npm/:_authToken=${NPM_CANARY}\n" +
		"//elsewhere.example/:_authToken=canary\n//npm.example/all/:username=bob\n//npm.example/all/:_password=Y2FuYXJ5\n"
	pipSays = `global.index-url='https://ada:canary@pip.example/api/pypi/all/simple/'
global.timeout='60'
install.extra-index-url='\nhttps://devpi.example/root/+simple/\nhttp://plain.example:8080/simple'
:env:.disable-pip-version-check='1'`
	cargoSays = `{"crates-io":{"replace-with":"near"},"near":{"replace-with":"ours"},"ours":{"registry":"sparse+https://crates.example/index/"}}`
	mavenSays = `<?xml version="1.0"?><settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">
<servers><server><id>ours</id><username>ada</username><password>${env.MVN_CANARY}</password></server></servers>
<mirrors><mirror><id>not</id><mirrorOf>other,!central</mirrorOf><url>https://not.example/</url></mirror>
<mirror><id>ours</id><mirrorOf>*</mirrorOf><url>https://maven.example/repository/all</url></mirror></mirrors></settings>`
	gemSays = "*** CURRENT SOURCES ***\n\nhttps://ada:canary@gems.example/all/\nhttps://rubygems.org/"
	aptSays = `Packages|deb|http://apt.example/debian/|trixie|main
Packages|deb|http://apt.example/debian/|trixie|main
Translations|deb|http://apt.example/debian/|trixie|main
Sources|deb-src|http://sources.example/debian/|trixie|main
Packages|deb|https://ada:canary@apt2.example/ubuntu/|noble|main
Packages|deb|file:/srv/packages/|x|main
Packages|deb|http://flat.example/|./|$(COMPONENT)`
	goSays = `{"GOPROXY":"https://ada:canary@go.example/proxy,https://second.example|direct","GOSUMDB":"sums.example+1234abcd+key","GONOSUMDB":"go.example/private"}`
)

// A host on which every tool is configured with a mirror: the golden file has the
// resulting registries, with credentials listed separately.
func TestDiscoverMirrors(t *testing.T) {
	t.Setenv("NPM_CANARY", "canary")
	t.Setenv("MVN_CANARY", "canary")
	folder := lone(t, nil)
	for name, says := range map[string]string{
		"go": goSays, "npm": strings.ReplaceAll(npmSays, "HOME", folder), "pip": pipSays, "cargo": cargoSays, "gem": gemSays, "apt-get": aptSays,
	} {
		write(t, filepath.Join(folder, "bin", name), "#!/bin/sh\n"+say(says), 0o700)
	}
	write(t, filepath.Join(folder, ".npmrc"), npmrc, 0o600)
	write(t, filepath.Join(folder, ".m2/settings.xml"), mavenSays, 0o600)
	write(t, filepath.Join(folder, ".netrc"), "machine second.example login bob\n password canary\nmachine github.example login bob password canary\ndefault login x password canary\n", 0o600)
	t.Setenv("GITHUB_SERVER_URL", "https://github.example")
	asked := slices.DeleteFunc(Names(), func(name string) bool { return finders[name] == nil })
	list, err := Discover(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "mirrors.json", list)
	leavesNoCanary(t, list)
}

var keyringOption = regexp.MustCompile(`deb \[signed-by=[^\]]*\] `)

func golden(t *testing.T, name string, list []Registry) {
	t.Helper()
	var got strings.Builder
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(list); err != nil {
		t.Fatal(err)
	}
	// The available keyrings depend on the machine.
	text := keyringOption.ReplaceAllString(got.String(), "deb ")
	path := filepath.Join(testdata, name)
	if *update {
		write(t, path, text, 0o644)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}

// leavesNoCanary checks that there are credentials and that none of them goes into the
// sandbox.
func leavesNoCanary(t *testing.T, list []Registry) {
	t.Helper()
	credentials := 0
	for _, r := range list {
		credentials += len(r.Credentials)
		r.Credentials = nil
		inside, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if containsCanary(string(inside)) {
			t.Errorf("%s: a credential goes inside: %s", r.Name, inside)
		}
	}
	if credentials == 0 {
		t.Error("no credential was found")
	}
}

// A host without tools: public indexes if known, else an error.
func TestDiscoverPublic(t *testing.T) {
	lone(t, nil)
	list, err := Discover(t.Context(), []string{"github-releases", "rubygems", "maven", "crates", "pypi", "pypi"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "public.json", list)
	for _, name := range []string{"go", "npm", "apt"} {
		var stop *proposal.StopError
		if _, err := Discover(t.Context(), []string{name}); !errors.As(err, &stop) || stop.Code != "network.registry" || !errors.Is(err, errAbsent) {
			t.Errorf("%s: got %v, want that there is no such tool", name, err)
		}
	}
}

// For an absent tool its environment variable is used.
func TestDiscoverVariables(t *testing.T) {
	lone(t, nil)
	t.Setenv("GOPROXY", "https://go.example")
	t.Setenv("npm_config_registry", "https://npm.example")
	t.Setenv("PIP_INDEX_URL", "https://pip.example/simple")
	list, err := Discover(t.Context(), []string{"go", "npm", "pypi"})
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, r := range list {
		for _, o := range r.Origins {
			hosts = append(hosts, o.Host)
		}
	}
	if diff := cmp.Diff([]string{"go.example", "npm.example", "pip.example"}, hosts); diff != "" {
		t.Error(diff)
	}
}

// The real go, with its own HOME: settings of "go env -w" count, those of a go.mod above
// the directory do not.
func TestDiscoverRealGo(t *testing.T) {
	path := os.Getenv("PATH")
	folder := lone(t, nil)
	t.Setenv("PATH", path)
	t.Setenv("TMPDIR", filepath.Join(folder, "tmp"))
	write(t, filepath.Join(folder, "tmp/go.mod"), "module planted\n\ngo 9.99\n", 0o600)
	write(t, filepath.Join(folder, ".config/go/env"), "GOPROXY=https://ada:canary@go.example/x,direct\nGOSUMDB=off\nGOPRIVATE=ours.example\n", 0o600)
	// Otherwise the go command leaves a telemetry process behind, which writes to the
	// directory while the test removes it.
	write(t, filepath.Join(folder, ".config/go/telemetry/mode"), "off", 0o600)
	list, err := Discover(t.Context(), []string{"go"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Registry{{
		Name: "go", Source: "go env", Origins: []Origin{{"https", "go.example", 443, "/x"}},
		Env: map[string]string{"GOPROXY": "https://go.example/x", "GOSUMDB": "off", "GONOSUMDB": "ours.example", "GOPRIVATE": "", "GONOPROXY": "none", "GOTOOLCHAIN": "auto"},
		Credentials: []Credential{{Registry: "go", Scheme: "https", Host: "go.example", Port: 443, Path: "/x",
			Header: "Authorization", Value: "Basic YWRhOmNhbmFyeQ=="}},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// A tool that exists but prints nothing usable is an error, and no other host is used
// instead; the error contains no credential.
func TestDiscoverFails(t *testing.T) {
	lanetest.SkipShort(t)
	for _, c := range []struct{ name, registry, tool, script, want string }{
		{"unknown", "cpan", "cpan", "", "invalid registry"},
		{"tool exits", "npm", "npm", "echo canary >&2; exit 1", "cannot ask npm"},
		{"no JSON", "npm", "npm", say("https://npm.example"), "cannot read the output of npm config"},
		{"no registry", "npm", "npm", say("{}"), "invalid registry URL"},
		{"not a URL", "npm", "npm", say(`{"registry":"ada:canary@npm.example"}`), "invalid registry URL"},
		{"answer without end", "npm", "npm", "/usr/bin/yes canary | /usr/bin/head -c 9000000", "too long"},
		{"direct only", "go", "go", say(`{"GOPROXY":"direct","GOSUMDB":"off"}`), "names no host"},
		{"off", "go", "go", say(`{"GOPROXY":"off,https://go.example","GOSUMDB":""}`), "names no host"},
		{"pip exits", "pypi", "pip", "exit 3", "cannot ask pip"},
		{"crates over git", "crates", "cargo", say(`{"crates-io":{"replace-with":"x"},"x":{"registry":"https://git.example/index"}}`), "sparse+"},
		{"crates in a folder", "crates", "cargo", say(`{"crates-io":{"replace-with":"x"},"x":{"directory":"/srv"}}`), "sparse+"},
		{"crates in a circle", "crates", "cargo", say(`{"crates-io":{"replace-with":"x"},"x":{"replace-with":"crates-io"}}`), "replace each other"},
		{"cargo exits", "crates", "cargo", "echo other >&2; exit 101", "cannot ask cargo"},
		{"gems from nowhere", "rubygems", "gem", say("*** NO CONFIGURED SOURCES ***"), "names no host"},
		{"apt from a disc", "apt", "apt-get", say("Packages|deb|cdrom:[x]/|x|main"), "names no host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lone(t, map[string]string{c.tool: c.script})
			list, err := Discover(t.Context(), []string{c.registry})
			if err == nil || !strings.Contains(err.Error(), c.want) || containsCanary(err.Error()) {
				t.Errorf("got %v and %v, want an error with %q", list, err, c.want)
			}
		})
	}
}

// The public npm registry has a second name, which lock files of yarn 1 use. Addons are
// compiled with the headers of the host's Node.js, by the variable that its npm knows.
func TestDiscoverNpmPublic(t *testing.T) {
	for version, variable := range map[string]string{"10.9.0": "npm_config_nodedir", "11.2.0": "npm_package_config_node_gyp_nodedir", "": "npm_config_nodedir"} {
		folder := lone(t, map[string]string{"npm": say(`{"registry":"https://registry.npmjs.org/","npm-version":"` + version + `"}`), "node": "exit 1"})
		write(t, filepath.Join(folder, "include/node/node_api.h"), "", 0o600)
		list, err := Discover(t.Context(), []string{"npm"})
		if err != nil {
			t.Fatal(err)
		}
		want := []Origin{{"https", "registry.npmjs.org", 443, "/"}, {"https", "registry.yarnpkg.com", 443, "/"}}
		if diff := cmp.Diff(want, list[0].Origins); diff != "" {
			t.Error(diff)
		}
		if list[0].Env[variable] != folder {
			t.Errorf("npm %q: %v, want %s", version, list[0].Env, variable)
		}
	}
}

// It is not a failure if cargo reports that nothing is configured.
func TestDiscoverCargoUnset(t *testing.T) {
	lone(t, map[string]string{"cargo": "echo 'error: config value `source` is not set' >&2; exit 101"})
	list, err := Discover(t.Context(), []string{"crates"})
	if err != nil || list[0].Source != publicSource {
		t.Errorf("got %v and %v", list, err)
	}
}

// A tool that hangs, and its child processes, end when the caller's context does.
func TestDiscoverHangs(t *testing.T) {
	folder := lone(t, map[string]string{"npm": "/bin/sleep 600 & echo $! > $HOME/new; /bin/mv $HOME/new $HOME/pid; wait"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(folder, "pid")); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if list, err := Discover(ctx, []string{"npm"}); err == nil || ctx.Err() == nil {
		t.Errorf("got %v, %v", list, err)
	}
	pid, err := os.ReadFile(filepath.Join(folder, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if !ends(strings.TrimSpace(string(pid))) {
		t.Error("what the tool started goes on")
	}
}

// The tools get the operator's home and none of the runner's tokens, and run in an empty
// directory that is removed afterwards.
func TestDiscoverAsksOutside(t *testing.T) {
	folder := lone(t, map[string]string{"npm": `
{ echo "home $HOME"; echo "token $GITHUB_TOKEN$NODE_AUTH_TOKEN"; echo "pwd $(pwd)"; /bin/ls -A; } > $HOME/seen
` + say(`{"registry":"https://npm.example/"}`)})
	t.Setenv("GITHUB_TOKEN", "canary")
	t.Setenv("NODE_AUTH_TOKEN", "canary")
	t.Chdir(t.TempDir())
	write(t, ".npmrc", "registry=https://evil.example/\n", 0o600)
	if _, err := Discover(t.Context(), []string{"npm"}); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(filepath.Join(folder, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(seen)), "\n")
	asked, _ := strings.CutPrefix(lines[2], "pwd ")
	lines[2] = ""
	if diff := cmp.Diff([]string{"home " + folder, "token ", "", "go.mod", "package.json"}, lines); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(asked); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", asked, err)
	}
}
