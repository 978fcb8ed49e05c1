// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/image/oci/ocitest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A realImage is made from packages of the distribution and from this machine's Go, as a team
// makes its own, and is built and pushed by buildah.
type realImage struct {
	name, recipe string
	format       string            // of the manifest, as buildah calls it
	compression  string            // of the layers
	files        map[string]string // of the workspace
	run, want    string            // want is all that is printed
	tool         string            // that the report names
}

const debianRecipe = "FROM scratch AS debian\nADD debian.tar /\n"

// packages is a step that leaves what most images have: removed files, links and programs with
// privileges.
func packages(names string) string {
	return "RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends " + names + " >/dev/null && rm -rf /var/lib/apt/lists\n"
}

func realImages() []realImage {
	return []realImage{
		{name: "debian", format: "v2s2", compression: "gzip", recipe: debianRecipe,
			files: map[string]string{"look.sh": `cut -d. -f1 /etc/debian_version; perl -e 'print 6*7, "\n"'; stat -c %a /usr/bin/su; find /usr /etc -perm /6000; ls /home /root | wc -w; printf 'b\na\n' | sort`},
			run:   "bash look.sh", want: "12\n42\n755\n2\na\nb\n"},
		{name: "golang", format: "oci", compression: "zstd", recipe: debianRecipe + "COPY --from=go . /usr/local/go\nENV PATH=/usr/local/go/bin:/usr/bin:/bin\n",
			files: map[string]string{"go.mod": "module example.org/double\n\ngo 1.21\n",
				"main.go":      "package main\n\nimport \"fmt\"\n\nfunc double(n int) int { return 2 * n }\n\nfunc main() { fmt.Println(double(21)) }\n",
				"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif double(2) != 4 {\n\t\tt.Fatal(double(2))\n\t}\n}\n"},
			run: "go build -o double . && ./double && go test ./... | cut -f1,2 && go version", want: "42\nok  \texample.org/double\ngo version " + runtime.Version() + " linux/" + runtime.GOARCH + "\n", tool: "go"},
		{name: "python", format: "oci", compression: "gzip", recipe: debianRecipe + packages("python3 python3-pytest"),
			files: map[string]string{"test_sum.py": "import hashlib, json, ssl, sqlite3\n\ndef test_sum():\n    assert json.loads(sqlite3.connect(':memory:').execute('select 40+2').fetchone()[0].__str__()) == 42\n"},
			run:   "python3 -m pytest -q test_sum.py | head -1 && git init -q && git status --short", want: ".                                                                        [100%]\n?? test_sum.py\n", tool: "python3"},
		{name: "node", format: "oci", compression: "gzip", recipe: debianRecipe + packages("nodejs"),
			files: map[string]string{"sum.test.js": "const test = require('node:test'), assert = require('node:assert')\ntest('sum', () => assert.equal(40 + 2, 42))\n"},
			run:   "node --test --test-reporter=tap sum.test.js | grep '^# pass'", want: "# pass 1\n", tool: "node"},
		{name: "busybox", format: "v2s2", compression: "gzip", recipe: debianRecipe + packages("busybox-static bash-static") + "FROM scratch\nCOPY --from=debian /bin/busybox /bin/bash-static /bin/\n" +
			`RUN ["/bin/busybox", "ln", "/bin/bash-static", "/bin/bash"]` + "\n" + `RUN ["/bin/busybox", "--install", "/bin"]` + "\n",
			files: map[string]string{"look.sh": `ls /bin/sed /bin/awk | wc -l; echo 21 | awk '{print 2*$1}'; wget -h 2>/dev/null; echo "wget $?"`},
			run:   "sh look.sh", want: "2\n42\nwget 126\n"},
	}
}

// THREATS 65: images that other programs made and pushed run, and the digest in the report and
// in the log is the one that the registry has.
func TestNightlyRealImages(t *testing.T) {
	b := newImageBuilder(t)
	host := aRegistry(t)
	for _, image := range realImages() {
		t.Run(image.name, func(t *testing.T) {
			d := newDesk(t)
			digest := b.push(t, host, image)
			for name, text := range image.files {
				d.write(t, "ws/"+name, text)
			}
			d.plan(t, image.run, "5m")
			_, report := d.run(t, "real", "--rootfs", "image:"+host+"/real/"+image.name+"@"+digest)
			r := result(t, report)
			if got := string(r.Stdout.Head); got != image.want {
				t.Errorf("%q, want %q; %s", got, image.want, r.Stderr.Head)
			}
			d.wantRootfs(t, report, "real", image, digest)
			d.checkSealed(t, "real")
		})
	}
}

func (d desk) wantRootfs(t *testing.T, report proposal.Report, run string, image realImage, digest string) {
	t.Helper()
	if !strings.Contains(report.Run.Rootfs, "real/"+image.name+"@"+digest+" linux/") {
		t.Errorf("the report has %q; the registry has %s", report.Run.Rootfs, digest)
	}
	if log, err := os.ReadFile(d.path(run + ".jsonl")); err != nil || !strings.Contains(string(log), digest) {
		t.Errorf("the log lacks the digest (%v)", err)
	}
	if tools := fmt.Sprint(report.Run.Toolchains); !strings.Contains(tools, image.tool) {
		t.Errorf("tools %s, want %s", tools, image.tool)
	}
}

// An imageBuilder builds images from a directory with debian.tar, in a store that the user's
// cache keeps, with each finished step.
type imageBuilder struct{ debian, store, run string }

func newImageBuilder(t *testing.T) imageBuilder {
	t.Helper()
	recipes := runtime.Version()
	for _, image := range realImages() {
		recipes += "\n" + image.recipe
	}
	return imageBuilder{filepath.Dir(ocitest.DebianTar(t)), ocitest.CacheDir(t, "images", ocitest.Digest([]byte(recipes))), t.TempDir()}
}

func (b imageBuilder) buildah(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "buildah", append([]string{"--root", b.store, "--runroot", b.run}, args...)...)
	cmd.Env = append(os.Environ(), "STORAGE_DRIVER=overlay")
	runCommand(t, cmd)
}

// push builds an image and pushes it. It returns the digest that the registry has.
func (b imageBuilder) push(t *testing.T, host string, image realImage) string {
	t.Helper()
	recipe := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(recipe, []byte(image.recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	goroot := strings.TrimSpace(string(runCommand(t, exec.Command("go", "env", "GOROOT"))))
	b.buildah(t, "build", "-q", "--layers", "--isolation", "chroot", "--network", "host", "--build-context", "go="+goroot, "-f", recipe, "-t", "localhost/"+image.name, b.debian)
	b.buildah(t, "push", "-q", "--tls-verify=false", "--format", image.format, "--compression-format", image.compression, "localhost/"+image.name, "docker://"+host+"/real/"+image.name+":latest")
	return registryDigest(t, host, "real/"+image.name)
}

func registryDigest(t *testing.T, host, repository string) string {
	t.Helper()
	resp, err := http.Head("http://" + host + "/v2/" + repository + "/manifests/latest")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Header.Get("Docker-Content-Digest")
}
