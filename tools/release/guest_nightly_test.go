// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A guest is a Debian with a kernel of its own, systemd and cgroup v2 in qemu's emulator: the
// hosts that this machine is not. It has no network, and nothing of it is kept.
type guest struct {
	*testing.T
	arch, emulator, machine, console string
	image                            string            // a cached directory: disk, vmlinuz, initrd
	more                             func(tree string) // adds files to what it sees as /opt
}

// A step is a command in the guest; see testdata/probe.
type step struct {
	Name string
	Argv []string
}

// An outcome is what a step did, and what it left on the guest.
type outcome struct {
	Name           string
	Exit           int
	Stdout, Stderr string
	MS             int64
	Left           []string
}

// guests are by architecture.
var guests = map[string]guest{
	"amd64": {arch: "amd64", emulator: "qemu-system-x86_64", machine: "-machine q35 -cpu max,-avx,-avx2", console: "ttyS0"},
	"arm64": {arch: "arm64", emulator: "qemu-system-aarch64", machine: "-machine virt -cpu cortex-a72", console: "ttyAMA0"},
}

// guestPackages are besides those that Debian calls required.
const guestPackages = "systemd-sysv,udev,dbus,sudo,procps,python3-minimal,apparmor,runc,iproute2,containernetworking-plugins,initramfs-tools,zstd,linux-image-cloud-"

func newGuest(t *testing.T, arch string) *guest {
	t.Helper()
	g := guests[arch]
	g.T = t
	for _, name := range []string{g.emulator, "mmdebstrap", "mkfs.ext4"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: install qemu-system-x86 (or qemu-system-arm), seabios, ipxe-qemu, mmdebstrap and e2fsprogs, as .ci/run does", err)
		}
	}
	g.makeImage()
	return &g
}

func (g *guest) do(name string, args ...string) {
	g.Helper()
	if out, err := exec.CommandContext(g.Context(), name, args...).CombinedOutput(); err != nil {
		g.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// recipe returns mmdebstrap's arguments, without the directory.
func (g *guest) recipe() []string {
	return []string{"--variant=minbase", "--format=directory", "--architectures=" + g.arch, "--include=" + guestPackages + g.arch,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		"--essential-hook=sync-in testdata/guest /",
		`--customize-hook=chroot "$1" useradd --create-home --shell /bin/bash runner`,
		`--customize-hook=chroot "$1" systemctl enable probe.service`,
		// Nothing waits for a console, a timer or a disk check.
		`--customize-hook=chroot "$1" systemctl mask getty@tty1.service serial-getty@` + g.console + `.service apt-daily.timer apt-daily-upgrade.timer fstrim.timer e2scrub_all.timer dpkg-db-backup.timer systemd-timesyncd.service`,
		"bookworm"}
}

// makeImage makes the image unless it is in the user's cache, by the digest of the recipe.
func (g *guest) makeImage() {
	g.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		g.Fatal(err)
	}
	parent := filepath.Join(cache, "fumehood-test")
	g.image = filepath.Join(parent, "guest-"+g.arch+"-"+g.recipeDigest())
	if _, err := os.Stat(g.image); err == nil {
		return
	}
	old, _ := filepath.Glob(filepath.Join(parent, "guest-"+g.arch+"-*"))
	for _, dir := range old {
		_ = os.RemoveAll(dir)
	}
	began := time.Now()
	if err := os.MkdirAll(parent, 0o755); err != nil {
		g.Fatal(err)
	}
	work, err := os.MkdirTemp(parent, "making-")
	if err != nil {
		g.Fatal(err)
	}
	defer os.RemoveAll(work)
	g.fillImage(work)
	if err := os.Rename(filepath.Join(work, "image"), g.image); err != nil && !errors.Is(err, fs.ErrExist) {
		g.Fatal(err)
	}
	g.Logf("made the image in %s", time.Since(began).Round(time.Second))
}

// recipeDigest identifies the image: the arguments and the files that it is made with.
func (g *guest) recipeDigest() string {
	g.Helper()
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", g.recipe())
	err := filepath.WalkDir("testdata/guest", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%q %q\n", path, data)
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

func (g *guest) fillImage(work string) {
	g.Helper()
	tree, image := filepath.Join(work, "tree"), filepath.Join(work, "image")
	args := g.recipe()
	g.do("mmdebstrap", append(args, tree)...)
	if err := os.Mkdir(image, 0o755); err != nil {
		g.Fatal(err)
	}
	for file, pattern := range map[string]string{"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"} {
		found, _ := filepath.Glob(filepath.Join(tree, "boot", pattern))
		if len(found) != 1 {
			g.Fatalf("the image has the kernel files %q, want one %s", found, pattern)
		}
		g.do("cp", found[0], filepath.Join(image, file))
	}
	g.makeDisk(tree, filepath.Join(image, "disk"), "2G")
}

func (g *guest) makeDisk(tree, file, size string) {
	g.Helper()
	g.do("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "root_owner=0:0", "-d", tree, file, size)
}

// payload makes a disk with a release's programs, the probe, its steps, containers and
// testdata/payload.
func (g *guest) payload(steps []step) string {
	g.Helper()
	dir := g.TempDir()
	release, tree := filepath.Join(dir, "release"), filepath.Join(dir, "tree")
	var said bytes.Buffer
	if code := run(g.Context(), []string{"--root", "../..", "--arch", g.arch, "--out", release}, &said); code != 0 {
		g.Fatalf("the release was not built: %d\n%s", code, &said)
	}
	if err := os.MkdirAll(filepath.Join(tree, "fumehood"), 0o755); err != nil {
		g.Fatal(err)
	}
	g.do("cp", "-r", "testdata/payload/.", tree)
	g.do("tar", "--no-same-owner", "-xzf", filepath.Join(release, "fumehood_source_linux_"+g.arch+".tar.gz"), "-C", filepath.Join(tree, "fumehood"))
	g.do("env", "CGO_ENABLED=0", "GOARCH="+g.arch, "go", "build", "-trimpath", "-o", filepath.Join(tree, "probe"), "./testdata/probe")
	data, err := json.Marshal(steps)
	if err != nil {
		g.Fatal(err)
	}
	write(g.T, filepath.Join(tree, "steps.json"), string(data), 0o644)
	g.containers(filepath.Join(tree, "containers"))
	if g.more != nil {
		g.more(tree)
	}
	disk := filepath.Join(dir, "payload")
	g.makeDisk(tree, disk, "512M")
	return disk
}

// boot starts the guest and returns what the steps did. It ends qemu when the last step has
// ended, and at the latest after limit.
func (g *guest) boot(limit time.Duration, steps []step) map[string]outcome {
	g.Helper()
	disk, console := g.payload(steps), filepath.Join(g.TempDir(), "console")
	ctx, cancel := context.WithTimeout(g.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.emulator, g.flags(disk, console)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+g.TempDir()) // what the guest writes
	// It ends with the test, also when that runs out of time: the signal is for the end of
	// the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	outcomes, err := g.read(out, steps)
	cancel()
	_ = cmd.Wait() // killed
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		text, _ := os.ReadFile(console)
		g.Fatalf("the guest ended after %d of %d steps and %s: %v\n%s\n%s", len(outcomes), len(steps), time.Since(began).Round(time.Second), err, &stderr, text[max(0, len(text)-8000):])
	}
	g.Logf("the guest ran %d steps in %s, with %s of processor time", len(steps), time.Since(began).Round(time.Second), used.Round(time.Second))
	return outcomes
}

func (g *guest) flags(disk, console string) []string {
	flags := strings.Fields(g.machine + " -accel tcg,thread=multi -smp 2 -m 3072 -display none -monitor none -net none -no-reboot -snapshot")
	return append(flags,
		"-kernel", filepath.Join(g.image, "vmlinuz"), "-initrd", filepath.Join(g.image, "initrd"),
		"-append", "console="+g.console+" root=/dev/vda rw panic=-1 no_timer_check quiet apparmor=1 security=apparmor",
		"-drive", "if=virtio,format=raw,file="+filepath.Join(g.image, "disk"), "-drive", "if=virtio,format=raw,file="+disk,
		"-serial", "file:"+console,
		"-device", "virtio-serial", "-chardev", "file,id=probe,path=/dev/stdout", "-device", "virtserialport,chardev=probe,name=probe")
}

// read reads an outcome for each step.
func (g *guest) read(r io.Reader, steps []step) (map[string]outcome, error) {
	outcomes := map[string]outcome{}
	decoder := json.NewDecoder(r)
	began := time.Now()
	for _, s := range steps {
		var o outcome
		if err := decoder.Decode(&o); err != nil {
			return outcomes, err
		}
		if o.Name != s.Name {
			return outcomes, fmt.Errorf("the outcome of %q, want that of %q", o.Name, s.Name)
		}
		g.Logf("%3.0f s: %s: exit code %d after %d ms, left %q", time.Since(began).Seconds(), o.Name, o.Exit, o.MS, o.Left)
		outcomes[o.Name] = o
	}
	return outcomes, nil
}
