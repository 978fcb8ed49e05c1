// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// guestID is the user and group of commands when the workspace belongs to root.
const guestID = 1000

// serviceID is the user and group of the first service, if no command has it. Each has its
// own.
const serviceID = 64000

// A layout is everything that a sandbox's OCI spec is made from.
type layout struct {
	ID       string
	Root     string // skeleton directory: mount points and generated files, read-only
	Init     string // guest init on the host
	Upper    string // private empty directory on the file system that takes every write
	Image    string // of the root, on the host; "" if Binds are the host's
	Binds    []Bind // read-only; with Image their sources are paths in it
	Trees    []tree // read-only, with an overlay each; the first is the workspace
	UID      int
	GID      int
	Limits   proposal.Limits
	Cgroup   string
	BinDirs  string // PATH
	Home     map[string]string
	Layer    string // image of a layer; "" for none
	Recorded bool   // what is read of the workspace is recorded
	Netns    string // path of the network namespace; "" for a new one without devices
	UserHome bool
	files    files // of Binds
}

// A tree is a directory, or the EROFS image at Source.
type tree struct {
	Bind
	image bool
}

// initCapabilities are what guest init needs inside the sandbox: to mount, to read
// and own what commands wrote, and to kill. Commands get no capabilities.
var initCapabilities = []string{"CAP_SYS_ADMIN", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL"}

// ociSpec returns the OCI runtime spec of the sandbox's only container.
func (l layout) ociSpec() (*specs.Spec, error) {
	config, err := json.Marshal(l.guestConfig())
	if err != nil {
		return nil, err
	}
	caps := initCapabilities
	return &specs.Spec{
		Version:  "1.2.0",
		Hostname: "fumehood",
		Root:     &specs.Root{Path: l.Root, Readonly: true},
		Process: &specs.Process{
			Args:            []string{guest.Init, string(config)},
			Env:             []string{},
			Cwd:             "/",
			NoNewPrivileges: true,
			Capabilities:    &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
			Rlimits:         processRlimits(l.Limits),
		},
		Mounts:      l.listMounts(),
		Annotations: l.overlayAnnotations(),
		Linux: &specs.Linux{
			CgroupsPath: l.Cgroup,
			Resources:   cgroupResources(l.Limits),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace, Path: l.Netns},
			},
		},
	}, nil
}

// firstServiceID returns the user of the first service. No command has it or one of those after it.
func (l layout) firstServiceID() int {
	if first, end := serviceID, serviceID+guest.MaxServices; l.UID >= first && l.UID < end ||
		l.GID >= first && l.GID < end {
		return serviceID + 2*guest.MaxServices
	}
	return serviceID
}

// servicePasswdLines returns the lines of /etc/passwd for services: some programs need their user's
// name.
func (l layout) servicePasswdLines() string {
	var b strings.Builder
	for i := range guest.MaxServices {
		fmt.Fprintf(&b, "service%d:x:%d:%d:service:/tmp:/bin/sh\n", i, l.firstServiceID()+i, l.firstServiceID()+i)
	}
	return b.String()
}

func (l layout) guestConfig() guest.Config {
	c := guest.Config{UID: l.UID, GID: l.GID, Service: l.firstServiceID(), Home: l.Home, Lookups: l.Netns == "",
		Layer: l.Layer != "", Recorded: l.Recorded}
	if l.UserHome {
		c.Scratch = guest.UserScratch
	}
	for i, t := range l.Trees {
		c.Overlays = append(c.Overlays, guest.Overlay{Lower: guest.Lower + "/" + strconv.Itoa(i), Target: t.Target})
	}
	if l.Image != "" {
		for _, b := range l.Binds {
			c.Binds = append(c.Binds, guest.Bind{Source: guest.Image + b.Source, Target: b.Target})
		}
	}
	return c
}

func (l layout) listMounts() []specs.Mount {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777", "size=64m"}},
		{Destination: guest.Init, Type: "bind", Source: l.Init, Options: []string{"ro", "nosuid", "nodev"}},
		{Destination: guest.Upper, Type: "bind", Source: l.Upper, Options: []string{"rw", "nosuid", "nodev"}},
	}
	for i, t := range l.Trees {
		mounts = append(mounts, t.mountAt(guest.Lower+"/"+strconv.Itoa(i)))
	}
	if l.Layer != "" {
		mounts = append(mounts, imageMount(l.Layer, guest.Layer))
	}
	if l.Image != "" { // guest init binds its files
		return append(mounts, imageMount(l.Image, guest.Image))
	}
	for _, b := range l.Binds {
		mounts = append(mounts, readOnly(b.Source, b.Target))
	}
	return mounts
}

func (t tree) mountAt(target string) specs.Mount {
	if t.image {
		return imageMount(t.Source, target)
	}
	return readOnly(t.Source, target)
}

func imageMount(source, target string) specs.Mount {
	return specs.Mount{Destination: target, Type: "erofs", Source: source, Options: []string{"ro", "nosuid", "nodev"}}
}

func readOnly(source, target string) specs.Mount {
	return specs.Mount{Destination: target, Type: "bind", Source: source,
		Options: []string{"rbind", "ro", "nosuid", "nodev"}}
}

// overlayAnnotations make Upper a gVisor tmpfs whose pages are in a file in that host
// directory: what commands write is bounded by the disk limit and does not count as
// memory, and no guest file is ever a host file.
func (l layout) overlayAnnotations() map[string]string {
	const hint = "dev.gvisor.spec.mount.upper."
	return map[string]string{
		hint + "source":  l.Upper,
		hint + "type":    "tmpfs",
		hint + "share":   "container",
		hint + "options": "size=" + strconv.FormatInt(int64(l.Limits.Disk), 10),
	}
}

// processRlimits apply to every command: a fork bomb fails inside the sandbox long before
// it reaches the host's own limit. There is no limit on a file's size: the layer
// that takes the writes has a size limit, and SIGXFSZ would hide that it is full.
func processRlimits(l proposal.Limits) []specs.POSIXRlimit {
	return []specs.POSIXRlimit{
		makeRlimit("RLIMIT_NPROC", uint64(l.Pids)),
		makeRlimit("RLIMIT_NOFILE", uint64(l.Files)),
		makeRlimit("RLIMIT_CORE", 0),
	}
}

func makeRlimit(name string, n uint64) specs.POSIXRlimit {
	return specs.POSIXRlimit{Type: name, Soft: n, Hard: n}
}

// hostPids is the host's backstop behind RLIMIT_NPROC. A guest process needs up to
// three host tasks. Reaching this limit would crash gVisor's kernel instead of
// failing a fork, so it is far above what RLIMIT_NPROC allows.
func hostPids(l proposal.Limits) int64 { return int64(l.Pids)*4 + 1000 }

const cpuPeriod = 100_000 // in µs, the kernel's default

// cgroupResources returns the cgroup limits in OCI form. fumehood applies them itself,
// before runsc starts, and runsc is configured to leave cgroups alone.
func cgroupResources(l proposal.Limits) *specs.LinuxResources {
	memory, pids, period := int64(l.Memory), hostPids(l), uint64(cpuPeriod)
	quota := int64(l.CPUs * cpuPeriod)
	return &specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: &memory, Swap: &memory},
		CPU:    &specs.LinuxCPU{Quota: &quota, Period: &period},
		Pids:   &specs.LinuxPids{Limit: pids},
	}
}

// writeBundle writes the bundle to dir.
func (l layout) writeBundle(dir string) error {
	spec, err := l.ociSpec()
	if err != nil {
		return err
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
}

// createMountPoints makes the mount points under root. The sandbox sees everything in it
// read-only.
func (l layout) createMountPoints() error {
	dirs := []string{"/proc", "/sys", "/dev", "/tmp", guest.Home, guest.Upper, guest.Layer, guest.Merged,
		guest.Recorded, "/run", "/var/tmp"}
	if l.Image != "" {
		dirs = append(dirs, guest.Image)
	}
	for i, t := range l.Trees {
		dirs = append(dirs, guest.Lower+"/"+strconv.Itoa(i), t.Target)
	}
	for _, b := range l.Binds {
		info, err := l.statSource(b.Source)
		if err != nil {
			return fmt.Errorf("cannot bind %q: %v", b.Source, err)
		}
		if info.IsDir() {
			dirs = append(dirs, b.Target)
		} else if err := l.createMountFile(b.Target); err != nil {
			return err
		}
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(l.Root, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(l.Root, guest.Private), 0o700); err != nil {
		return err
	}
	return errors.Join(l.createMountFile(guest.Init), l.createMountFile(guest.Written))
}

// statSource describes the source of a bind.
func (l layout) statSource(source string) (fs.FileInfo, error) {
	if l.Image != "" {
		return l.files.Lstat(source)
	}
	return os.Stat(source)
}

func (l layout) createMountFile(path string) error {
	host := filepath.Join(l.Root, path)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(host, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
