// SPDX-License-Identifier: Apache-2.0

// Package guest is the sandbox's process 1: it prepares the writable layers, reaps orphans, answers
// the lookups of a sandbox without a network, and a few requests of the host.
//
// It runs inside the sandbox as the guest's root. It is not part of the boundary: the boundary is
// gVisor's kernel, and the host treats every answer as text that an attacker may have written (see
// Client). It exists because these jobs cost 1–5 ms each as commands and some 50 µs here, because a
// container needs a reaping init, and because only a process inside knows which processes are left.
//
// # Protocol
//
// One request per line on stdin, answers on stdout. Strings are quoted as Go quotes them, so a file
// name cannot forge a line.
//
//	(start)            ready VERSION "PROC_VERSION"
//	ready              as at the start             of a sandbox that was restored
//	sweep              ok LEFT                     kill all other processes except for services, wait until they are gone
//	keep               ok 0                        the processes of users of services that are left are services from now on
//	hold ID… [shells ID…]  ok 0                    these processes, and what descends from them, except from shells, are spared like services from now on
//	interrupt ID       ok 0                        send SIGINT to a process
//	resume ID…         ok 0                        let all go on that sweep and keep stop, of the shells only these
//	go ID…             ok 0                        let these processes, and what descends from them, go on, and no others
//	changes MAX        change KIND TYPE SIZE "PATH" …, ok OMITTED
//	mark               ok 0                        what the last changes has found is left out of total
//	total MAX          as changes, for all that happened since mark, or since the start
//	glob MAX "PATTERN" match TYPE SIZE "PATH" …, ok OMITTED
//	entry SIDE "PATH"  entry TYPE MODE SIZE "TARGET"   of a path; TYPE is none if there is no such path
//	read MAX SIDE "PATH"  data SIZE, then SIZE bytes, ok SIZE
//	write SIZE "PATH"  ok SIZE                     SIZE bytes follow the request's line
//	space              ok FREE TOTAL               bytes of the writable layer
//	layer FILES BYTES  node KIND MODE UID GID MTIME SIZE "PATH" "TARGET", then SIZE bytes, …, ok 0
//
// layer sends all that was written so far. KIND is f, d, l or h for another name of the earlier
// file TARGET; MODE is octal, MTIME in nanoseconds, and PATH begins with the tree: see HomeTree.
//
// SIDE is new, the workspace as commands see it, or old, the tree below, which a process of the
// host may change at any time. Any request may be answered by: error "MESSAGE".
package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Version is the protocol's version; both ends come from one commit.
const Version = 10

// RequestReady is the first request to init in a restored sandbox.
const RequestReady = "ready"

// MaxServices is the maximum number of services in one sandbox.
const MaxServices = 8

// Paths inside the sandbox.
const (
	Init      = "/.fumehood/init"             // this program
	Private   = "/.fumehood/private"          // readable only by the guest's root
	Upper     = "/.fumehood/private/upper"    // the size-limited disk-backed layer for all writes
	Lower     = "/.fumehood/private/lower"    // Lower/0, Lower/1 …: the read-only trees below the overlays
	Image     = "/.fumehood/private/image"    // the image of the root, if it has one
	Layer     = "/.fumehood/private/layer"    // the image of what an earlier set-up left
	Written   = "/.fumehood/private/written"  // a file: the kernel's listing of what was written over the workspace
	Recorded  = "/.fumehood/private/recorded" // Lower/0 with a record of what is read, for the workspace's overlay
	Workspace = "/workspace"
	Home      = "/home/fumehood"
	UserHome  = "/home/user" // the workspace of sandboxes for clients that expect it there
)

// UserScratch are directories below /tmp that sandboxes with UserHome also have at the top.
var UserScratch = []string{"data", "code", "uploads"}

// Config lists what init has to prepare. It is passed as JSON in init's argv.
type Config struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Service is the user of the first service; the next ones have the next users. No
	// other command has them, so that none can control a service or become one.
	Service  int       `json:"service"`
	Overlays []Overlay `json:"overlays"` // the first is the workspace
	// Binds are the parts of the root's image.
	Binds []Bind `json:"binds,omitempty"`
	// Home are files to create for the commands' user, by path relative to Home.
	Home map[string]string `json:"home,omitempty"`
	// Lookups means that init answers lookups at Resolver: the sandbox has no network.
	Lookups bool `json:"lookups,omitempty"`
	// Layer means that Layer is between what commands write and the trees below.
	Layer bool `json:"layer,omitempty"`
	// Recorded means that the kernel records what processes read of the tree below the first
	// overlay.
	Recorded bool `json:"recorded,omitempty"`
	// Scratch are directories of the commands' user to make below /tmp.
	Scratch []string `json:"scratch,omitempty"`
}

// An Overlay is a host tree with a writable layer over it.
type Overlay struct {
	Lower  string `json:"lower"`
	Target string `json:"target"`
}

// A Bind shows a file or directory at another path, too.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Main is init: it prepares the sandbox and serves requests from in until in is
// closed, which ends the sandbox.
func Main(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: init CONFIG")
	}
	var c Config
	if err := json.Unmarshal([]byte(args[1]), &c); err != nil {
		return fmt.Errorf("cannot read configuration: %v", err)
	}
	s, err := startServer(c)
	if err != nil {
		return err
	}
	return s.serve(in, out)
}

// startServer prepares the sandbox.
func startServer(c Config) (*server, error) {
	// Ignoring SIGCHLD makes the kernel reap orphans.
	ignoreChildren()
	if err := mountTrees(c); err != nil {
		return nil, err
	}
	if c.Lookups {
		if err := answerLookups(); err != nil {
			return nil, err
		}
	}
	return newServer(c)
}

// serve says that the sandbox is ready, and answers requests until in is closed.
func (s *server) serve(in io.Reader, out io.Writer) error {
	w := bufio.NewWriterSize(out, 64<<10)
	if err := errors.Join(writeReady(w), w.Flush()); err != nil {
		return err
	}
	return serveRequests(s, in, w)
}

func writeReady(w *bufio.Writer) error {
	version, err := os.ReadFile("/proc/version")
	if err != nil {
		return fmt.Errorf("cannot read kernel version: %v", err)
	}
	fmt.Fprintf(w, "ready %d %q\n", Version, strings.TrimSpace(string(version)))
	return nil
}

// mountTrees mounts HOME, /tmp and the overlays, all of them on the one size-limited layer. HOME comes
// before the overlays, because a cache may be mounted below it.
func mountTrees(c Config) error {
	if err := os.Chmod(Upper, 0o700); err != nil {
		return err
	}
	for _, b := range c.Binds {
		if err := syscall.Mount(b.Source, b.Target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot mount %q: %v", b.Target, err)
		}
	}
	if err := mountHome(c); err != nil {
		return err
	}
	if err := mountScratch("tmp", "/tmp", 0o1777, c); err != nil {
		return err
	}
	for _, name := range c.Scratch {
		dir := "/tmp/" + name
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, c.UID, c.GID)); err != nil {
			return err
		}
	}
	for i, o := range c.Overlays {
		if err := makeInHome(o.Target, c); err != nil {
			return err
		}
		if err := mountOverlay(i, o, c); err != nil {
			return err
		}
	}
	for path, content := range c.Home {
		if err := writeInHome(Home+"/"+path, content, c); err != nil {
			return err
		}
	}
	return nil
}

// writeInHome writes a file that belongs to the commands' user. A cache mounted there keeps its own
// file.
func writeInHome(path, content string, c Config) error {
	if err := makeInHome(path[:strings.LastIndexByte(path, '/')], c); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Chown(c.UID, c.GID), f.Close())
}

// makeInHome makes a mount point below HOME and the directories above it, which belong to the
// commands' user like all of HOME. Mount points elsewhere are part of the root.
func makeInHome(target string, c Config) error {
	rel, below := strings.CutPrefix(target, Home+"/")
	if !below {
		return nil
	}
	dir := Home
	for name := range strings.SplitSeq(rel, "/") {
		dir += "/" + name
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err := errors.Join(err, os.Chown(dir, c.UID, c.GID)); err != nil {
			return err
		}
	}
	return nil
}

func mountOverlay(i int, o Overlay, c Config) error {
	upper := upperOf(i)
	if err := os.Mkdir(upper, 0o755); err != nil {
		return err
	}
	// The upper directory becomes the overlay's root: without the owner and mode of the tree below,
	// no command could create a file in it.
	var st syscall.Stat_t
	if err := syscall.Stat(o.Lower, &st); err != nil {
		return err
	}
	if err := os.Chown(upper, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	if err := syscall.Chmod(upper, st.Mode&0o7777|0o700); err != nil {
		return err
	}
	lower := o.Lower
	if i == 0 && c.Recorded {
		lower = Recorded
		if err := syscall.Mount(o.Lower, Recorded, recordedType, syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_RDONLY,
			""); err != nil {
			return fmt.Errorf("cannot mount %q: %v", Recorded, err)
		}
	}
	options := "lowerdir=" + c.lowerDirs(TreeOf(i), lower) + ",upperdir=" + upper
	if err := syscall.Mount("overlay", o.Target, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return fmt.Errorf("cannot mount overlay on %q: %v", o.Target, err)
	}
	return nil
}

// The types of the file systems that sentry.RecordedName and sentry.ListingName describe.
const (
	recordedType = "fumehood-recorded"
	listingType  = "fumehood-listing"
)

func upperOf(overlay int) string { return Upper + "/" + strconv.Itoa(overlay) }

func mountScratch(name, target string, mode uint32, c Config) error {
	dir := Upper + "/" + name
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := syscall.Chmod(dir, mode); err != nil {
		return err
	}
	if name == "home" {
		if err := os.Chown(dir, c.UID, c.GID); err != nil {
			return err
		}
	}
	if err := syscall.Mount(dir, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount %q: %v", target, err)
	}
	return nil
}
