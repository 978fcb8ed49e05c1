// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fumehood/fumehood/internal/sandbox/image/oci/ocitest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// aRegistry is a registry on loopback; it returns its host.
func aRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// anImage has bash, some tools and the host's Python, in two layers: the upper one removes
// a tool of the lower.
func anImage(t *testing.T, more ...ocitest.File) *ocitest.Image {
	t.Helper()
	lower := ocitest.ProgramFiles(t, "/usr/bin/bash", "/usr/bin/cat", "/usr/bin/ls", "/usr/bin/id", "/usr/bin/env", "/usr/bin/touch", "/usr/bin/head", "/usr/bin/git")
	upper := []ocitest.File{{Name: "usr/bin/.wh.head"}, {Name: "opt/tool/bin/hello", Body: "#!/bin/bash\necho hello from the image\n"},
		{Name: "etc/passwd", Body: "evil:x:0:0::/:/bin/bash\n"}, {Name: "root/secret", Body: "x"}, {Name: "usr/bin/suid", Body: "#!/bin/bash\nid -u\n", Mode: 0o4755}}
	c := ocitest.Config{User: "root", Entrypoint: []string{"/evil"}, WorkingDir: "/evil",
		Env: []string{"PATH=/opt/tool/bin:/tmp/evil:relative:/usr/bin", "LD_PRELOAD=/evil.so", "BASH_ENV=/evil", "FROM_IMAGE=1"}}
	return ocitest.Make(c, ocitest.GzipLayer(ocitest.Tar(t, lower...)), ocitest.GzipLayer(ocitest.Tar(t, append(upper, more...)...))).WrapInIndex()
}

// THREATS 65, 66: commands run in the image that the digest names, and nothing that it says
// of itself has an effect.
func TestE2EImageRoot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	image := anImage(t)
	ref := image.Push(t, aRegistry(t), "acme/tools")
	d.write(t, "ws/look.sh", `cat /etc/os-release; hello; suid; type head; cat /etc/passwd; ls /root; echo "$PATH ${LD_PRELOAD-no} ${BASH_ENV-no} ${FROM_IMAGE-no}"; pwd; touch /usr/x; touch x && ls`)
	d.plan(t, "bash look.sh", "1m")
	_, report := d.run(t, "img", "--rootfs", "image:"+ref)
	if !strings.Contains(report.Run.Rootfs, "acme/tools@"+image.Digest+" linux/") || !strings.Contains(report.Run.Rootfs, ocitest.Digest(image.Blobs[manifestOf(image)])) {
		t.Errorf("the report has %q; want the registry's digests", report.Run.Rootfs)
	}
	if !slices.ContainsFunc(report.Run.Enforced, func(text string) bool { return strings.Contains(text, "of the image alone") }) {
		t.Errorf("the report does not say that the image's settings have no effect: %q", report.Run.Enforced)
	}
	r := result(t, report)
	out := string(r.Stdout.Head)
	for _, want := range []string{"ID=test\n", "hello from the image\n", "fumehood:x:", "/opt/tool/bin:/usr/bin:/bin no no no\n/workspace\n", "\nlook.sh\nx\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("stdout lacks %q", want)
		}
	}
	for _, no := range []string{"evil", "secret", "head is"} {
		if strings.Contains(out, no) {
			t.Errorf("stdout has %q", no)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, r.Stderr.Head)
	}
	log, err := os.ReadFile(d.path("img.jsonl"))
	if err != nil || !strings.Contains(string(log), image.Digest) {
		t.Errorf("the log lacks the digest (%v)", err)
	}
	d.checkSealed(t, "img")
}

func manifestOf(i *ocitest.Image) string {
	for digest, data := range i.Blobs {
		if strings.Contains(string(data), `"layers":[{`) {
			return digest
		}
	}
	return ""
}

// Interpreters of an image run, and the report has their versions.
func TestE2EImageTools(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	files := ocitest.ProgramFiles(t, "/usr/bin/bash", "/usr/bin/python3", "/usr/bin/git", "/usr/bin/node")
	python, err := filepath.Glob("/usr/lib/python3.*")
	if err != nil || len(python) == 0 {
		t.Fatal("this machine has no Python of its distribution")
	}
	files = append(files, ocitest.DirectoryFiles(t, python[0])...)
	image := ocitest.Make(ocitest.Config{}, ocitest.GzipLayer(ocitest.Tar(t, files...)))
	d.write(t, "ws/t.py", "import json, hashlib; print(json.dumps({'python': True}))\n")
	d.write(t, "ws/t.js", "console.log(JSON.stringify({node: require('crypto').createHash('sha256').update('').digest('hex').length}))\n")
	runCommand(t, exec.Command("git", "-C", d.path("ws"), "init", "-q"))
	d.plan(t, "python3 t.py && node t.js && git status --short", "1m")
	_, report := d.run(t, "tools", "--rootfs", "oci-archive:"+image.WriteArchive(t))
	r := result(t, report)
	if got, want := string(r.Stdout.Head), "{\"python\": true}\n{\"node\":64}\n?? t.js\n?? t.py\n"; got != want {
		t.Errorf("%q, want %q; %s", got, want, r.Stderr.Head)
	}
	if len(report.Run.Toolchains) != 2 || !strings.HasPrefix(report.Run.Rootfs, "oci-archive@"+image.Digest) {
		t.Errorf("%v of %q; want node and python3", report.Run.Toolchains, report.Run.Rootfs)
	}
	d.checkSealed(t, "tools")
}

// An image in which no command can run is refused before anything runs.
func TestE2EImageWithoutBash(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.plan(t, "true", "1m")
	image := ocitest.Make(ocitest.Config{}, ocitest.GzipLayer(ocitest.Tar(t, ocitest.File{Name: "bin/sh", Body: "#!"})))
	for value, code := range map[string]string{
		"oci:" + image.WriteLayout(t):                             "rootfs.no-bash",
		"image:127.0.0.1:1/x/y@sha256:" + strings.Repeat("0", 64): "rootfs.pull",
		"image:debian!": "rootfs.reference",
		"devcontainer":  "rootfs.devcontainer",
	} {
		out, err := d.command(t.Context(), d.runArgs("none", "--rootfs", value)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), code+": ") {
			t.Errorf("%s: %v, want %s; %s", value, err, code, out)
		}
	}
}

// A tag alone is refused, and the hint has its digest.
func TestE2EImageUnpinned(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.plan(t, "true", "1m")
	host := aRegistry(t)
	image := anImage(t)
	image.Push(t, host, "acme/tools")
	out, err := d.command(t.Context(), d.runArgs("none", "--rootfs", "image:"+host+"/acme/tools:latest")...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "rootfs.unpinned: ") || !strings.Contains(string(out), "use image:"+host+"/acme/tools@"+image.Digest) {
		t.Errorf("%v; %s", err, out)
	}
}

// THREATS 66: a devcontainer.json of the workspace chooses nothing. One that the operator
// names chooses the image, and its command is decided by policy in set-up.
func TestE2EDevcontainer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	host := aRegistry(t)
	ref := anImage(t).Push(t, host, "acme/tools")
	if err := os.Mkdir(d.path("ws/.devcontainer"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := `{"image": "` + ref + `", // pinned
		"containerEnv": {"APP_MODE": "test"}, "postCreateCommand": {"a": "touch made-by-set-up", "b": ["sudo", "id"]}, }`
	d.write(t, "ws/.devcontainer/devcontainer.json", file)
	d.write(t, "ws/look.sh", `ls; echo "$APP_MODE"; hello`)
	d.plan(t, "bash look.sh", "1m")
	out, err := d.command(t.Context(), d.runArgs("none", "--rootfs", "devcontainer")...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "rootfs.devcontainer: ") {
		t.Errorf("%v; want a refusal of the workspace's file: %s", err, out)
	}
	d.write(t, "trusted.json", file)
	d.run(t, "dev", "--setup", "auto", "--rootfs", "devcontainer:"+d.path("trusted.json"))
	report := d.report(t, "dev")
	states := map[string]proposal.Effect{}
	for _, r := range report.Records {
		states[r.Proposal.ID] = r.Decision.Effect
		if r.Proposal.ID == "it" && (r.Result == nil || string(r.Result.Stdout.Head) != "look.sh\nmade-by-set-up\ntest\nhello from the image\n") {
			t.Errorf("%+v", r.Result)
		}
	}
	if states["devcontainer-1"] != proposal.Allow || states["devcontainer-2"] != proposal.Deny || states["it"] != proposal.Allow {
		t.Errorf("%v", states)
	}
	d.checkSealed(t, "dev")
}

// THREATS 33, 42: a copy of a program of the image is that program, and of its loader, too.
func TestE2EImageCopies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	curl := ocitest.ProgramFiles(t, "/usr/bin/curl", "/usr/bin/cp", "/usr/bin/true")
	image := anImage(t, curl...)
	d.write(t, "ws/try.sh", `
cp /usr/bin/curl ./mine; ./mine --version; echo "copy $?"
cp /usr/bin/true ./ok; ./ok; echo "true $?"
cp /usr/lib64/ld-linux-x86-64.so.2 ./loader; ./loader /usr/bin/curl --version; echo "loader $?"
`)
	d.plan(t, "bash try.sh", "1m")
	_, report := d.run(t, "copies", "--rootfs", "oci:"+image.WriteLayout(t))
	r := result(t, report)
	if got, want := string(r.Stdout.Head), "copy 126\ntrue 0\nloader 126\n"; got != want {
		t.Errorf("%q, want %q; %s", got, want, r.Stderr.Head)
	}
	d.checkSealed(t, "copies")
}
