// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// company is an operator whose tools all fetch from the company's own mirrors, on a
// private address, with credentials in the tools' configuration.
func company(t *testing.T, n *internet) (desk, *store) {
	t.Helper()
	d, s := newDesk(t).operated(t), &store{files: map[string][]byte{}}
	d.file(t, "home/.npmrc", "registry=https://registry.example/\n//registry.example/:_authToken="+npmToken+"\n")
	d.file(t, "home/.config/pip/pip.conf", "[global]\nindex-url = https://ada:"+pipPassword+"@index.example/all/simple/\n")
	d.file(t, "home/.config/go/env", "GOPROXY=https://ada:"+goPassword+"@proxy.example/go\nGOSUMDB=off\n")
	d.file(t, "home/sources.list", "deb [trusted=yes] http://mirror.example/debian /\n")
	d.file(t, "home/apt.conf", `Dir::Etc::SourceList "`+d.path("home/sources.list")+`"; Dir::Etc::SourceParts "/dev/null";`+"\n")
	d.file(t, "home/.m2/settings.xml", "<settings><mirrors><mirror><id>ours</id><mirrorOf>*</mirrorOf><url>https://maven.example/maven2</url></mirror></mirrors></settings>\n")
	d.environ = append(d.environ, "APT_CONFIG="+d.path("home/apt.conf"))
	n.name("evil.example", otherAddress)
	n.serve(mirrorAddress, s, "registry.example", "index.example", "proxy.example", "mirror.example", "maven.example")
	return d, s
}

// projects are the projects of a pull request: one of each kind, each requiring one
// package.
func projects(t *testing.T, d desk, s *store) {
	t.Helper()
	left := s.npm(t, "left", map[string]any{"main": "index.js"}, map[string]string{"index.js": "module.exports = () => 'left of npm'\n"})
	d.lockfile(t, "ws/js", map[string]string{"test": `node -p "require('left')()"`}, map[string]map[string]any{"left": left})
	s.wheel(t, "greeting", "def greet(): return 'greeting of pip'\n")
	d.file(t, "ws/py/requirements.txt", "greeting==1.0\n")
	sum := s.goModule(t, "code.example/greet", "v1.2.3", "package greet\n\nfunc Greet() string { return \"greeting of go\" }\n")
	d.file(t, "ws/go/go.mod", "module project\n\ngo 1.21\n\nrequire code.example/greet v1.2.3\n")
	d.file(t, "ws/go/go.sum", "%s", sum)
	d.file(t, "ws/go/main.go", "package main\n\nimport \"code.example/greet\"\n\nfunc main() { println(greet.Greet()) }\n")
	s.debian(t, "greeting")
	d.file(t, "ws/deb/sources.list", "deb [trusted=yes] http://mirror.example/debian /\n")
	s.put("maven.example/maven2/example/parent/1.0/parent-1.0.pom", "<project><modelVersion>4.0.0</modelVersion><groupId>example</groupId><artifactId>parent</artifactId><version>1.0</version><packaging>pom</packaging><description>parent of maven</description></project>")
	d.file(t, "ws/java/pom.xml", "<project><modelVersion>4.0.0</modelVersion><parent><groupId>example</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent><artifactId>child</artifactId><packaging>pom</packaging></project>\n")
	// The pull request's own registry configuration has no effect.
	d.file(t, "ws/js/.npmrc", "registry=https://evil.example/\n")
}

const aptOptions = "-o Dir::Etc::SourceList=/workspace/deb/sources.list -o Dir::Etc::SourceParts=/tmp/apt/none"

// fetching runs the package clients, then their projects without a network.
func fetching() []errand {
	return []errand{
		{id: "npm-ci", phase: "setup", cwd: "js", network: []string{"registry:npm"}, run: "npm ci", says: []string{"added 1 package"}, hides: []string{npmToken}},
		{id: "pip-install", phase: "setup", cwd: "py", network: []string{"registry:pypi"}, run: "python3 -m pip install --target=site -r requirements.txt", says: []string{"Successfully installed greeting-1.0"}, hides: []string{pipPassword}},
		{id: "go-download", phase: "setup", cwd: "go", network: []string{"registry:go"}, run: "go mod download", hides: []string{goPassword}},
		{id: "apt-get", phase: "setup", cwd: "deb", network: []string{"registry:apt"}, run: "apt-get " + aptOptions + " update && apt-get " + aptOptions + " download greeting && ls", says: []string{"greeting_1.0_all.deb"}},
		{id: "mvn", phase: "setup", cwd: "java", network: []string{"registry:maven"}, run: "mvn -B -ntp validate", says: []string{"BUILD SUCCESS"}},
		{id: "npm-test", cwd: "js", run: "npm test", says: []string{"left of npm"}},
		{id: "python", cwd: "py", run: `PYTHONPATH=site python3 -c 'import greeting; print(greeting.greet())'`, says: []string{"greeting of pip"}},
		{id: "go-run", cwd: "go", run: "go list -f '{{.Name}} {{.Dir}}' code.example/greet", says: []string{"greet /home/fumehood/go/pkg/mod/code.example/greet@v1.2.3"}},
		{id: "apt-package", cwd: "deb", code: "import subprocess; subprocess.run(['dpkg-deb', '-I', 'greeting_1.0_all.deb'], check=True)", says: []string{"Package: greeting"}},
		{id: "after", cwd: "js", fails: true, within: fast, run: "npm view left", denied: "code.verb"},
		{id: "after-python", within: fast, code: "import urllib.request\ntry: print('out:', urllib.request.urlopen('https://registry.example/left').read())\nexcept OSError as e: print('nothing:', e)", says: []string{"nothing:"}, refused: []string{"egress.host registry.example"}},
	}
}

// THREATS 19: the presets take their hosts and credentials from the operator's
// tools. Packages can be fetched in set-up, and not afterwards.
func TestE2EPackageClients(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	d, s := company(t, n)
	projects(t, d, s)
	n.take(t, d, fetching())
	s.unwritten(t)
	for host, authorization := range guarded {
		if !slices.ContainsFunc(s.asked, func(r string) bool {
			return strings.HasPrefix(r, "GET "+host+"/") && strings.HasSuffix(r, authorization)
		}) {
			t.Errorf("%s never got the operator's credential", host)
		}
	}
	checkHidden(t, d, npmToken, pipPassword, goPassword)
}

// checkHidden checks that a secret is in no file that the run made: report,
// comment, log, output.
func checkHidden(t *testing.T, d desk, secrets ...string) {
	t.Helper()
	for _, name := range []string{"it.json", "it.md", "it.jsonl", "it.stderr", "it"} {
		for _, secret := range secrets {
			if found := grep(t, d.path(name), secret); found != "" {
				t.Errorf("%s stands in %s", secret, found)
			}
		}
	}
}

// publishing are attempts to write to a registry, most of them in ways that the
// commands' text and programs do not show.
func publishing() []errand {
	npm, pypi := []string{"registry:npm"}, []string{"registry:pypi"}
	return []errand{
		{id: "npm-publish", phase: "setup", cwd: "js", network: npm, run: "npm publish", denied: "code.publish"},
		{id: "npm-script", phase: "setup", cwd: "js", network: npm, run: "npm run bundle", fails: true, within: fast},
		{id: "npm-put", phase: "setup", network: npm, run: `curl -sS -X PUT -d '{"name":"mine"}' https://registry.example/mine`, within: fast,
			says: []string{"fumehood", "registries are read-only"}, refused: []string{"egress.registry-method registry.example:443"}},
		{id: "npm-login", phase: "setup", network: npm, run: `curl -sS https://registry.example/-/whoami`, within: fast, says: []string{"publishes to npm or logs in there"}, refused: []string{"egress.publish registry.example:443"}},
		{id: "npm-delete", phase: "setup", network: npm, run: `curl -sS --http2 -X DELETE https://registry.example/left`, within: fast, says: []string{"read-only"}, refused: []string{"egress.registry-method registry.example:443"}},
		{id: "get-with-body", phase: "setup", network: npm, run: `curl -sS -X GET -d 'my secret' https://registry.example/left`, within: fast, says: []string{"must not send data"}, refused: []string{"egress.registry-method registry.example:443"}},
		{id: "twine", phase: "setup", network: pypi, code: twineCode, within: fast, says: []string{"HTTP Error 403"}, refused: []string{"egress.registry-method index.example:443"}},
		{id: "elsewhere", phase: "setup", network: pypi, run: "curl -sS https://index.example/private/file", within: fast, refused: []string{"egress.host index.example:443"}},
		{id: "other-registry", phase: "setup", network: pypi, fails: true, run: "curl -sS https://registry.example/left", within: fast, says: []string{"Could not resolve host"}, refused: []string{"egress.host registry.example"}},
	}
}

const twineCode = `
import urllib.request
body = b'--x\r\nContent-Disposition: form-data; name=":action"\r\n\r\nfile_upload\r\n--x--\r\n'
r = urllib.request.Request("https://index.example/all/legacy/", data=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
try: print("out:", urllib.request.urlopen(r).read())
except OSError as e: print("refused:", e, e.read() if hasattr(e, "read") else "")
`

// THREATS 19 and 37 (c): nothing is published, in whatever way it is tried, and the
// comment says what was tried.
func TestE2EPublish(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	d, s := company(t, n)
	projects(t, d, s)
	d.lockfile(t, "ws/js", map[string]string{"bundle": "npm publish"}, nil)
	d.file(t, "ws/js/.env", "TOKEN=the-secret-in-the-package\n")
	report := n.take(t, d, publishing())
	s.unwritten(t)
	if r := report.Records[1].Result; r == nil || r.Observations == nil || r.Observations.Counts.Refused == 0 {
		t.Errorf("the script's npm publish was not refused as a program: %+v", r)
	}
	checkComment(t, report, "npm publish", "egress.registry-method", "egress.publish", "registry.example:443", "index.example:443", "PUT /mine")
	checkHidden(t, d, npmToken, "the-secret-in-the-package")
}

// lingerCode keeps connecting to a registry for as long as it lives.
const lingerCode = `
import os, subprocess, sys
loop = "import time, urllib.request\nwhile True:\n try: r = urllib.request.urlopen('https://registry.example/left', timeout=2).status\n except Exception as e: r = e\n open('tries', 'a').write('%s\\n' % r)\n time.sleep(.1)\n"
subprocess.Popen([sys.executable, "-c", loop], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
import time
while not os.path.exists("tries"): time.sleep(.05)
print(open("tries").read())
`

// A process that set-up left running does not exist in the run, and its grant does
// not apply there.
func TestE2ESetupEnds(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	d, s := company(t, n)
	projects(t, d, s)
	report := n.take(t, d, []errand{
		{id: "linger", phase: "setup", network: []string{"registry:npm"}, code: lingerCode, says: []string{"200"}},
		{id: "later", code: "import time\na = open('tries').read(); time.sleep(2); b = open('tries').read()\nprint('same' if a == b else 'it still tries')", says: []string{"same"}},
		{id: "direct", within: fast, run: "npm test", cwd: "js", fails: true, says: []string{"Cannot find module"}},
	})
	if left := report.Records[0].Result.Leftover; left != 1 {
		t.Errorf("%d processes were left by set-up, want 1", left)
	}
	if strings.Contains(string(report.Records[1].Result.Stdout.Head), "still") || report.Records[1].Result.Status != proposal.Exited {
		t.Error("it went on")
	}
}

// readable serves the public hosts of registries that are opened at whole paths.
func readable(t *testing.T, n *internet) (desk, *store) {
	t.Helper()
	d, s := newDesk(t).operated(t), &store{files: map[string][]byte{}}
	n.serve(mirrorAddress, s, "repo.hex.pm", "pub.dev", "repo.packagist.org", "api.github.com", "npm.jsr.io", "jsr.io", "github.com")
	for _, path := range []string{
		"repo.hex.pm/packages/jason", "repo.hex.pm/repos/acme/packages/x", "pub.dev/api/packages/http", "pub.dev/api/account", "repo.packagist.org/p2/a/b.json", "npm.jsr.io/@jsr/std__path",
		"jsr.io/@std/path/1.0.8/posix/join.ts", "api.github.com/user", "api.github.com/repos/o/r/zipball/0a", "github.com/o/r/releases/download/v1/x.tgz",
	} {
		s.put(path, "content of "+path)
	}
	return d, s
}

// THREATS 19: of a registry's host a command reaches the paths of the protocol, as they are sent, and no
// other: not an account, an escaped slash, a query or another owner's data on the same host.
func TestE2EProtocolPaths(t *testing.T) {
	t.Parallel()
	n := newInternet(t)
	d, s := readable(t, n)
	const path, method = "egress.registry-path", "egress.registry-method"
	var errands []errand
	for i, c := range []struct{ registry, address, refused string }{
		{"hex", "https://repo.hex.pm/packages/jason", ""},
		{"hex", "https://repo.hex.pm/packages/jason?secret=1", method},
		{"hex", "https://repo.hex.pm/repos/acme/packages/x", path},
		{"hex", "https://repo.hex.pm/packages/../repos/acme/packages/x", "protocol"},
		{"pub", "https://pub.dev/api/packages/http", ""},
		{"pub", "https://pub.dev/api/account", path},
		{"packagist", "https://repo.packagist.org/p2/a/b.json", ""},
		{"packagist", "https://repo.packagist.org/p2/a%2fb.json", method},
		{"packagist", "https://api.github.com/repos/o/r/zipball/0a", ""},
		{"packagist", "https://api.github.com/user", path},
		{"jsr", "https://npm.jsr.io/@jsr%2fstd__path", ""},
		{"jsr", "https://jsr.io/@std/path/1.0.8/posix/join.ts", ""},
		{"jsr", "https://jsr.io/@std/path/1.0.8/posix%2Fjoin.ts", method},
		{"github-releases", "https://github.com/o/r/releases/download/v1/x.tgz", ""},
	} {
		host, _, _ := strings.Cut(strings.TrimPrefix(c.address, "https://"), "/")
		e := errand{id: fmt.Sprintf("%d-%s", i, c.registry), phase: "setup", network: []string{"registry:" + c.registry}, within: fast, says: []string{"content of " + host},
			run: "curl -sS --path-as-is '" + c.address + "'"}
		if c.refused != "" {
			e.says, e.hides, e.refused = []string{"fumehood"}, []string{"content of"}, []string{c.refused + " " + host + ":443"}
		}
		errands = append(errands, e)
	}
	n.take(t, d, errands)
	s.unwritten(t)
}
