// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A member is one entry of a release's archive.
type member struct {
	name, text, link string
	kind             byte
}

// program stands for fumehood in these tests: it says what it was started as.
const program = `#!/bin/bash -p
printf 'started: %s\nfrom: %s\nuser: %s\nPATH: %s\nLD_PRELOAD: %s\n' "$*" "$0" "$(/usr/bin/id -u)" "$PATH" "${LD_PRELOAD-unset}"
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

// An installer is a runner with the action at a release on it, and a server that
// the release is downloaded from.
type installer struct {
	dir     string // everything below is the job's
	place   string // where root installs
	name    string // of the archive
	archive []byte
	served  []byte // what the server sends
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

func (i *installer) cached() string {
	return filepath.Join(i.path("tools"), "fumehood", "v9.8.7", runtime.GOARCH, i.name)
}

func (i *installer) installed(name string) string {
	return filepath.Join(i.place, sum(i.archive), name)
}

// copyAction lays out what the runner downloads of the action, with a release.env.
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
		i.write(t, "action/.github/action/"+name, readFile(t, "../../.github/action/"+name))
	}
	env := "# A comment.\nVERSION=v9.8.7\nURL=https://github.com/fumehood/fumehood/releases/download/v9.8.7\nGO=go1.26.8\nCC=cc 1 (x=y)\n"
	for key, data := range map[string][]byte{"ARCHIVE": i.archive, "FUMEHOOD": text(list, "fumehood"), "RUNSC": text(list, "fumehood-runsc")} {
		env += fmt.Sprintf("SHA256_%s_%s=%s\n", key, strings.ToUpper(runtime.GOARCH), sum(data))
	}
	i.write(t, "action/release.env", []byte(env))
	i.write(t, "output", nil)
	if err := os.Chmod(i.path("output"), 0o666); err != nil {
		t.Fatal(err)
	}
}

func text(list []member, name string) []byte {
	at := slices.IndexFunc(list, func(m member) bool { return m.name == name })
	return []byte(list[at].text)
}

func (i *installer) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(i.path(name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// run does what the runner does with action.yml's step, and returns its output.
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

// wantStarted wants the program to have run, from a folder.
func wantStarted(t *testing.T, stdout, stderr string, code int, from string) {
	t.Helper()
	if code != 0 || !strings.Contains(stdout, "started: action\nfrom: "+from) {
		t.Fatalf("exit code %d, want fumehood to be started from %s\n%s%s", code, from, stdout, stderr)
	}
}

func TestInstall(t *testing.T) {
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

	// The second time neither the server nor, the third, the tool cache is needed.
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

// What an earlier step can leave in the environment and in PATH is not picked up.
func TestInstallIgnoresTheJobsEnvironment(t *testing.T) {
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

// Every way in which what is to run is not what release.env names, and every place
// where it cannot be kept. Nothing is started, and the code says which it was.
var refusedInstalls = []struct {
	name string
	with func(t *testing.T, i *installer)
	env  []string
	code string
	part string
}{
	{"one byte of the download", func(t *testing.T, i *installer) {
		i.served = slices.Clone(i.archive)
		i.served[len(i.served)/2] ^= 1
	}, nil, "install.digest", "from http://127.0.0.1:"},
	{"one byte of the tool cache", func(t *testing.T, i *installer) {
		i.fill(t)
		data := slices.Clone(i.archive)
		data[len(data)-1] ^= 1
		i.write(t, i.under(i.cached()), data)
	}, nil, "install.digest", "in the tool cache has SHA-256"},
	{"a link in the tool cache", func(t *testing.T, i *installer) {
		i.fill(t)
		i.swap(t, i.cached(), func(path string) error { return os.Symlink("/etc/passwd", path) })
	}, nil, "install.cache", "is not a file"},
	{"a link to nothing in the tool cache", func(t *testing.T, i *installer) {
		i.fill(t)
		i.swap(t, i.cached(), func(path string) error { return os.Symlink("nothing", path) })
	}, nil, "install.cache", "is not a file"},
	{"a pipe in the tool cache", func(t *testing.T, i *installer) {
		i.fill(t)
		i.swap(t, i.cached(), func(path string) error { return syscall.Mkfifo(path, 0o666) })
	}, nil, "install.cache", "is not a file"},
	{"one byte of the installed program", func(t *testing.T, i *installer) {
		i.fill(t)
		i.append(t, "fumehood")
	}, nil, "install.digest", "/fumehood has SHA-256"},
	{"one byte of the installed runsc", func(t *testing.T, i *installer) {
		i.fill(t)
		i.append(t, "fumehood-runsc")
	}, nil, "install.digest", "/fumehood-runsc has SHA-256"},
	{"no installed program", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Remove(i.installed("fumehood")))
	}, nil, "install.digest", "cannot be read"},
	{"an installed program that others can write", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chmod(i.installed("fumehood"), 0o757))
	}, nil, "install.folder", "written by others (owner, mode and kind: 0 757"},
	{"an installed sentry that its group can write", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chmod(i.installed("gvisor-bin"), 0o775))
	}, nil, "install.folder", "written by others (owner, mode and kind: 0 775"},
	{"an installed program of another user", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chown(i.installed("fumehood-init"), 12345, 12345))
	}, nil, "install.folder", "does not belong to user 0"},
	{"a link among the installed programs", func(t *testing.T, i *installer) {
		i.fill(t)
		i.swap(t, i.installed("fumehood-init"), func(path string) error { return os.Symlink("/usr/bin/true", path) })
	}, nil, "install.folder", "is a symbolic link"},
	{"a link in the installation's place", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Rename(i.installed(""), i.path("away")))
		i.must(t, os.Symlink(i.path("away"), i.installed("")))
	}, nil, "install.folder", "is a symbolic link"},
	{"a folder above that others can write", func(t *testing.T, i *installer) {
		i.must(t, os.Chmod(filepath.Dir(i.place), 0o777))
	}, nil, "install.folder", "written by others"},
	{"a folder above that others can write, though not delete in", func(t *testing.T, i *installer) {
		i.must(t, os.Chmod(filepath.Dir(i.place), 0o777|os.ModeSticky))
	}, nil, "install.folder", "0 1777"},
	{"a folder above of another user", func(t *testing.T, i *installer) {
		i.must(t, os.Chown(filepath.Dir(i.place), 65534, 65534))
	}, nil, "install.folder", "does not belong to user 0"},
	{"a folder above that is a link", func(t *testing.T, i *installer) {
		i.must(t, os.Symlink(i.path("tools"), i.place))
	}, nil, "install.folder", "is a symbolic link"},
	{"a relative place", nil, []string{"FUMEHOOD_INSTALL_DIR=here"}, "install.folder", "no path for an installation"},
	{"a place with a way up", nil, []string{"FUMEHOOD_INSTALL_DIR=/var/lib/../../tmp"}, "install.folder", "no path for an installation"},
	{"no such release", nil, []string{"FUMEHOOD_RELEASE_URL=http://127.0.0.1:1/v9.8.7"}, "install.download", "cannot download http://127.0.0.1:1/"},
	{"a mirror without encryption", nil, []string{"FUMEHOOD_RELEASE_URL=http://mirror.example/x"}, "install.url", "http://mirror.example"},
	{"a mirror that only looks like this machine", nil, []string{"FUMEHOOD_RELEASE_URL=http://127.0.0.1.example/x"}, "install.url", "127.0.0.1.example"},
	{"a mirror that is a file", nil, []string{"FUMEHOOD_RELEASE_URL=file:///etc"}, "install.url", "file:///etc"},
	{"a mirror that is an option", nil, []string{"FUMEHOOD_RELEASE_URL=--output=/etc/x"}, "install.url", "--output"},
	{"a mirror that ends the line", nil, []string{"FUMEHOOD_RELEASE_URL=https://mirror.example\n::add-mask::x"}, "install.url", "mirror.example?::add-mask::x"},
	{"a server without the archive", func(t *testing.T, i *installer) {
		i.env = append(i.env, "FUMEHOOD_RELEASE_URL="+strings.TrimSuffix(env(i.env, "FUMEHOOD_RELEASE_URL"), "v9.8.7")+"v1.1.1")
	}, nil, "install.download", "v1.1.1/fumehood_v9.8.7_linux_"},
	{"a release.env without a digest", release(func(text string) string { return text[:strings.Index(text, "SHA256")] }), nil, "install.release", "has no SHA256_ARCHIVE_"},
	{"a release.env with a digest cut short", release(func(text string) string { return strings.TrimSuffix(text, "\n")[:len(text)-3] }), nil, "install.release", "release.env says SHA256_"},
	{"a release.env with a line of its own", release(func(text string) string { return text + "PATH=/tmp\n" }), nil, "install.release", "does not know: PATH"},
	{"a release.env that leads out of the cache", release(func(text string) string { return strings.ReplaceAll(text, "v9.8.7", "v9.8.7/../..") }), nil, "install.release", "says VERSION="},
	{"a release.env with a command", release(func(text string) string { return strings.Replace(text, "=v9.8.7", "=$(id)", 1) }), nil, "install.release", "says VERSION=$(id)"},
	{"a release.env without a download", release(func(text string) string {
		return strings.Replace(text, "URL=https", "URL=http", 1)
	}), []string{"FUMEHOOD_RELEASE_URL="}, "install.release", "says URL="},
}

func (i *installer) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill installs once, so that everything is where the next run finds it.
func (i *installer) fill(t *testing.T) {
	t.Helper()
	stdout, stderr, code := i.run(t)
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
}

func (i *installer) under(path string) string { return strings.TrimPrefix(path, i.dir+"/") }

// swap puts something else in path's place.
func (i *installer) swap(t *testing.T, path string, with func(string) error) {
	t.Helper()
	i.must(t, os.Remove(path))
	i.must(t, with(path))
}

// append adds a byte to an installed file.
func (i *installer) append(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(i.installed(name), os.O_APPEND|os.O_WRONLY, 0)
	i.must(t, err)
	_, err = f.WriteString("#")
	i.must(t, err)
	i.must(t, f.Close())
}

func env(list []string, name string) string {
	at := slices.IndexFunc(list, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	return strings.TrimPrefix(list[at], name+"=")
}

func release(change func(string) string) func(*testing.T, *installer) {
	return func(t *testing.T, i *installer) {
		text := string(readFile(t, i.path("action/release.env")))
		i.write(t, "action/release.env", []byte(change(text)))
	}
}

// THREATS 31: wrong bytes, wherever they come from, start nothing.
func TestInstallRefuses(t *testing.T) {
	for _, c := range refusedInstalls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // one of them waits for retries
			i := newInstaller(t, members())
			if c.with != nil {
				c.with(t, i)
			}
			stdout, stderr, code := i.run(t, c.env...)
			i.wantRefused(t, stdout, stderr, code, c.code, c.part)
		})
	}
}

// wantRefused wants exit code 3, one annotation, a hint, and the conclusion.
func (i *installer) wantRefused(t *testing.T, stdout, stderr string, exit int, code, part string) {
	t.Helper()
	if exit != 3 || strings.Contains(stdout, "started:") {
		t.Errorf("exit code %d, want 3 and nothing started\n%s%s", exit, stdout, stderr)
	}
	if !strings.Contains(stderr, "fumehood: "+code+": ") || !strings.Contains(stderr, part) || !strings.Contains(stderr, "\nfumehood: hint: ") {
		t.Errorf("want %s and %q with a hint, got:\n%s", code, part, stderr)
	}
	if !strings.HasPrefix(stdout, "::error title=fumehood%3A "+code+"::") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("want one annotation for %s, got:\n%s", code, stdout)
	}
	if left, _ := filepath.Glob(i.path("temp/fumehood-*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %q", left)
	}
	if output := string(readFile(t, i.path("output"))); output != "conclusion=error\n" {
		t.Errorf("the outputs are %q", output)
	}
}

// An archive that has the digest of release.env is still not unpacked over what is
// not its own.
func TestInstallRefusesMembers(t *testing.T) {
	for name, m := range map[string]member{
		"way up":           {name: "../fumehood", kind: tar.TypeReg},
		"absolute":         {name: "/etc/fumehood-canary", kind: tar.TypeReg},
		"link":             {name: "gvisor-bin/gvisor-sentry-prewarmer", link: "/bin/sh", kind: tar.TypeSymlink},
		"hard link out":    {name: "gvisor-bin/gvisor_sentry", link: "../../../bin/sh", kind: tar.TypeLink},
		"device":           {name: "fumehood-init", kind: tar.TypeChar},
		"one more sidecar": {name: "gvisor-bin/runsc-metric-server", kind: tar.TypeReg},
		"line feed":        {name: "fumehood\nfumehood", kind: tar.TypeReg},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstaller(t, append(members(), m))
			stdout, stderr, code := i.run(t)
			i.wantRefused(t, stdout, stderr, code, "install.archive", "has a member that no release has")
			if left, _ := filepath.Glob(filepath.Join(i.place, "*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// While another process of the same user rewrites the tool cache as fast as it can,
// either the right program starts or none does; what root keeps is never the other.
func TestInstallRace(t *testing.T) {
	i := newInstaller(t, members())
	i.fill(t)
	evil := packed(t, append([]member{{name: "fumehood", text: "#!/bin/sh\necho evil\n", kind: tar.TypeReg}}, members()[2:]...))
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			data := [][]byte{i.archive, evil}[n%2]
			if n%4 < 2 { // in place, so that an open file changes
				_ = os.WriteFile(i.cached(), data, 0o644)
			} else {
				_ = os.WriteFile(i.cached()+".new", data, 0o644)
				_ = os.Rename(i.cached()+".new", i.cached())
			}
			time.Sleep(time.Duration(n%5) * time.Millisecond)
		}
	})
	outcomes := map[string]int{}
	for range 40 {
		i.must(t, os.RemoveAll(i.place))
		stdout, stderr, code := i.run(t)
		switch {
		case strings.Contains(stdout, "evil"):
			t.Fatalf("the other program was started\n%s%s", stdout, stderr)
		case code == 0:
			outcomes["started"]++
			wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
		case code == 3 && strings.Contains(stderr, "install.digest"):
			outcomes["refused"]++
		default:
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		found, _ := filepath.Glob(filepath.Join(i.place, "*", "fumehood"))
		for _, path := range found {
			if data := readFile(t, path); string(data) != program {
				t.Fatalf("root keeps another program: %s", data)
			}
		}
	}
	close(stop)
	work.Wait()
	t.Logf("%v", outcomes)
}

// Several jobs of one machine install at once: all start, and one folder is left.
func TestInstallAtOnce(t *testing.T) {
	i := newInstaller(t, members())
	script := i.path("action/.github/action/install.sh")
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			stdout, stderr, code := i.bash(t, []string{"bash", "-p", script})
			if code != 0 || !strings.Contains(stdout, "started: action\nfrom: "+i.installed("fumehood")) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	work.Wait()
	if found, _ := filepath.Glob(filepath.Join(i.place, "*")); len(found) != 1 {
		t.Errorf("left behind: %q", found)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(i.cached()), ".new-*")); len(left) > 0 {
		t.Errorf("left in the tool cache: %q", left)
	}
}

// What root reads is hashed in root's own copy, whatever was hashed before.
func TestPlaceHashesItsOwnCopy(t *testing.T) {
	i := newInstaller(t, members())
	list := members()
	evil := packed(t, append(list[:1:1], append([]member{{name: "fumehood", text: "evil", kind: tar.TypeReg}}, list[2:]...)...))
	i.write(t, "evil", evil)
	script := fmt.Sprintf("exec bash -p %s root %s %s %s %s < %s", i.path("action/.github/action/place.sh"), i.place,
		sum(i.archive), sum([]byte(program)), sum([]byte("runsc")), i.path("evil"))
	stdout, _, code := i.bash(t, []string{"bash", "-c", script})
	if code != 3 || !strings.HasPrefix(stdout, "install.digest\tthe archive changed after it was checked") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	// The archive's digest is right, that of the program in it is not.
	script = strings.Replace(script, sum(i.archive), sum(evil), 1)
	stdout, _, code = i.bash(t, []string{"bash", "-c", script})
	if code != 3 || !strings.HasPrefix(stdout, "install.digest\t") || !strings.Contains(stdout, "/fumehood has SHA-256") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if left, _ := filepath.Glob(filepath.Join(i.place, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A user without sudo can report, and is told what running needs.
func TestInstallWithoutRoot(t *testing.T) {
	i := newInstaller(t, members())
	i.user = 65534
	stdout, stderr, code := i.run(t)
	i.wantRefused(t, stdout, stderr, code, "install.root", "sudo does not work without a password here")
	for _, phase := range []string{"report", "trigger"} {
		stdout, stderr, code = i.run(t, "INPUT_PHASE="+phase)
		wantStarted(t, stdout, stderr, code, i.path("temp/fumehood-"))
		if !strings.Contains(stdout, "user: 65534\n") {
			t.Errorf("phase %s runs as another user:\n%s", phase, stdout)
		}
	}
	if _, err := os.Stat(i.place); err == nil {
		t.Error("something was installed without root")
	}
}

func TestInstallRefusesOtherSystems(t *testing.T) {
	for system, want := range map[string]string{
		"Darwin": "this runner is Darwin; gVisor needs Linux", "MINGW64_NT-10.0": "this runner is MINGW64_NT-10.0", "Linux": "there is no fumehood for riscv64",
	} {
		t.Run(system, func(t *testing.T) {
			i := newInstaller(t, members())
			script := "uname() { [ \"$1\" = -s ] && echo " + system + " || echo riscv64; }; export -f uname; exec bash " + i.path("action/.github/action/install.sh")
			stdout, stderr, code := i.bash(t, []string{"bash", "-c", script})
			i.wantRefused(t, stdout, stderr, code, "install.system", want)
			if !strings.Contains(stderr, "runs-on: ubuntu-24.04") {
				t.Errorf("the hint has no YAML:\n%s", stderr)
			}
		})
	}
}
