// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// A member is one entry of a release's archive.
type member struct {
	name, text, link string
	kind             byte
}

// program replaces fumehood in these tests: it prints how it was started.
const program = `#!/bin/bash -p
printf 'started: %s\nfrom: %s\nuser: %s\nPATH: %s\nLD_PRELOAD: %s\nkey: %s\n' "$*" "$0" "$EUID" "$PATH" "${LD_PRELOAD-unset}" "${INPUT_AUDIT_KEY-unset}"
`

func members() []member {
	return []member{
		{name: "LICENSE", text: "text\n", kind: tar.TypeReg},
		{name: "fumehood", text: program, kind: tar.TypeReg},
		{name: "fumehood-init", text: "init", kind: tar.TypeReg},
		{name: "fumehood-runsc", text: "runsc", kind: tar.TypeReg},
		{name: "fumehood-runsc.json", text: "{}\n", kind: tar.TypeReg},
		{name: "gvisor-bin/", kind: tar.TypeDir},
		{name: "gvisor-bin/gvisor_sentry", link: "fumehood-runsc", kind: tar.TypeLink},
	}
}

func packed(t *testing.T, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, m := range list {
		header := &tar.Header{Name: m.name, Typeflag: m.kind, Linkname: m.link, Mode: 0o755, Size: int64(len(m.text))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(m.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// An installer is a runner with a released version of the action, and a server for
// downloading the release.
type installer struct {
	dir     string // the job owns everything below it
	place   string // the directory where root installs
	name    string // of the archive
	archive []byte
	served  []byte // the server's response
	env     []string
	user    int
	asked   atomic.Int32
}

func newInstaller(t *testing.T, list []member) *installer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the installer is tested as root, like the sandbox")
	}
	i := &installer{dir: t.TempDir(), archive: packed(t, list)}
	i.served = i.archive
	i.name = "fumehood_v9.8.7_linux_" + runtime.GOARCH + ".tar.gz"
	place, err := os.MkdirTemp("/var/lib", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(place) })
	i.place = filepath.Join(place, "installed")
	for path, mode := range map[string]os.FileMode{place: 0o755, filepath.Dir(i.dir): 0o755, i.dir: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if r.URL.Path != "/v9.8.7/"+i.name {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(i.served)
	}))
	t.Cleanup(server.Close)
	i.env = []string{
		"FUMEHOOD_RELEASE_URL=" + server.URL + "/v9.8.7", "FUMEHOOD_INSTALL_DIR=" + i.place,
		"PATH=/job/tools:/usr/bin:/bin", "HOME=" + i.dir, "RUNNER_TEMP=" + i.path("temp"), "RUNNER_TOOL_CACHE=" + i.path("tools"),
		"GITHUB_OUTPUT=" + i.path("output"), "GITHUB_ACTION_PATH=" + i.path("action"), "INPUT_PHASE=auto",
	}
	i.copyAction(t, list)
	return i
}

func (i *installer) path(name string) string { return filepath.Join(i.dir, name) }

func (i *installer) installed(name string) string {
	return filepath.Join(i.place, sum(i.archive), name)
}

// copyAction writes the files of the action that the runner downloads, with a
// release.env.
func (i *installer) copyAction(t *testing.T, list []member) {
	t.Helper()
	for _, name := range []string{"temp", "tools", "action/.github/action"} {
		if err := os.MkdirAll(i.path(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"temp", "tools"} {
		if err := os.Chmod(i.path(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"install.sh", "place.sh"} {
		i.write(t, "action/.github/action/"+name, jobtest.ReadFile(t, "../../.github/action/"+name))
	}
	env := "# A comment.\nVERSION=v9.8.7\nURL=https://github.com/fumehood/fumehood/releases/download/v9.8.7\nGO=go1.26.8\nCC=cc 1 (x=y)\n"
	for key, data := range map[string][]byte{"ARCHIVE": i.archive, "FUMEHOOD": memberText(list, "fumehood"), "RUNSC": memberText(list, "fumehood-runsc")} {
		env += fmt.Sprintf("SHA256_%s_%s=%s\n", key, strings.ToUpper(runtime.GOARCH), sum(data))
	}
	i.write(t, "action/release.env", []byte(env))
	i.write(t, "output", nil)
	if err := os.Chmod(i.path("output"), 0o666); err != nil {
		t.Fatal(err)
	}
}

func memberText(list []member, name string) []byte {
	at := slices.IndexFunc(list, func(m member) bool { return m.name == name })
	return []byte(list[at].text)
}

func (i *installer) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(i.path(name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs the step of action.yml as the runner does, and returns its output.
func (i *installer) run(t *testing.T, env ...string) (stdout, stderr string, code int) {
	t.Helper()
	step := readAction(t).Runs.Steps[0]
	script := i.path("temp/step.sh")
	if err := os.WriteFile(script, []byte(step.Run), 0o644); err != nil {
		t.Fatal(err)
	}
	return i.bash(t, strings.Fields(strings.ReplaceAll(step.Shell, "{0}", script)), env...)
}

func (i *installer) bash(t *testing.T, args []string, env ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(slices.Clone(i.env), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(i.user), Gid: uint32(i.user)}}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// wantStarted checks that the program has run, from a given directory.
func wantStarted(t *testing.T, stdout, stderr string, code int, from string) {
	t.Helper()
	if code != 0 || !strings.Contains(stdout, "started: action\nfrom: "+from) {
		t.Fatalf("exit code %d, want fumehood to be started from %s\n%s%s", code, from, stdout, stderr)
	}
}

func TestE2EInstall(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	stdout, stderr, code := i.run(t, "LD_PRELOAD=")
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if !strings.HasPrefix(stdout, "fumehood v9.8.7 for linux/"+runtime.GOARCH+", SHA-256 "+sum(i.archive)+", from http://127.0.0.1:") {
		t.Errorf("what is started is not told:\n%s", stdout)
	}
	if !strings.Contains(stdout, "PATH: /job/tools:/usr/bin:/bin\nLD_PRELOAD: unset\n") {
		t.Errorf("fumehood sees another environment than the job's:\n%s", stdout)
	}
	if left, _ := filepath.Glob(i.path("temp/fumehood-*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %q", left)
	}
	for name, mode := range map[string]os.FileMode{"": 0o755, "fumehood": 0o755, "fumehood-runsc": 0o755, "gvisor-bin/gvisor_sentry": 0o755} {
		info, err := os.Lstat(i.installed(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != mode || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%q is installed with mode %o of user %d, want %o of root", name, got, info.Sys().(*syscall.Stat_t).Uid, mode)
		}
	}

	// The second time, the server is not needed; the third time, neither is the
	// tool cache.
	if err := os.RemoveAll(i.place); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = i.run(t)
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if !strings.Contains(stdout, ", from the tool cache\n") {
		t.Errorf("where it came from is not told:\n%s", stdout)
	}
	stdout, stderr, code = i.run(t)
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if asked := i.asked.Load(); asked != 1 {
		t.Errorf("%d requests for three runs, want 1", asked)
	}
}

// Values that an earlier step can leave in the environment and in PATH have no effect.
func TestE2EInstallIgnoresTheJobsEnvironment(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	canary := i.path("canary")
	evil := "touch " + canary + "\n"
	i.write(t, "evil.sh", []byte(evil))
	if err := os.Mkdir(i.path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curl", "sha256sum", "tar", "sudo", "uname", "bash", "env", "id", "mktemp"} {
		if err := os.WriteFile(i.path("bin/"+name), []byte("#!/bin/sh\n"+evil), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	i.write(t, ".curlrc", []byte("output = "+canary+"\n"))
	stdout, stderr, code := i.run(t, "BASH_ENV="+i.path("evil.sh"), "ENV="+i.path("evil.sh"), "PATH="+i.path("bin")+":/usr/bin:/bin",
		"TAR_OPTIONS=--checkpoint=1 --checkpoint-action=exec=touch\\ "+canary,
		"BASH_FUNC_curl%%=() { touch "+canary+"; }", "BASH_FUNC_id%%=() { touch "+canary+"; }")
	if code != 0 || !strings.Contains(stdout, "started: action\nfrom: "+i.installed("fumehood")) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("something of the job's environment ran")
	}
}

// THREATS 93: the programs that the action's script starts do not have the key; fumehood has it.
func TestE2EInstallKeys(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	end := jobtest.WatchFor("PRIVATE+KEY+of-the-test", func(args string) bool {
		return strings.HasPrefix(args, "bash\x00") || strings.HasPrefix(args, "/bin/bash\x00-p\x00")
	})
	stdout, stderr, code := i.run(t, "INPUT_AUDIT_KEY=PRIVATE+KEY+of-the-test")
	if seen := end(); len(seen) > 0 {
		t.Errorf("programs have the key: %q", seen)
	}
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if !strings.Contains(stdout, "\nkey: PRIVATE+KEY+of-the-test\n") {
		t.Errorf("fumehood has no key:\n%s", stdout)
	}
}
