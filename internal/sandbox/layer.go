// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The trees of a layer: see LayerFile.
const (
	LayerWorkspace = "0"
	LayerHome      = guest.HomeTree
)

// A LayerFile is one file that commands have written. Its Path is relative and begins with the
// tree: LayerWorkspace, LayerHome, or the number of Options.Trees from 1.
type LayerFile struct {
	Path     string
	Mode     fs.FileMode // of a file, directory or symbolic link
	UID, GID uint32
	ModTime  time.Time
	Link     string // target of a symbolic link
	Hard     string // path of an earlier file that this is another name of
	Size     int64
}

// LayerBounds limit an Export.
type LayerBounds struct {
	MaxFiles int
	MaxBytes int64 // of contents
}

// ErrNoLayer means that what commands have written cannot be a layer: it is too much, or files
// of the trees below were removed.
var ErrNoLayer = errors.New("set-up left what a layer cannot hold")

// Export calls add with each file that commands have written to the workspace, the other trees
// and HOME so far, without those of Options.Home, sockets and FIFOs. content has exactly Size
// bytes, and nil if it is not a new regular file. Names and targets are a command's: add must not
// use them as paths of the host. If add returns an error, it is not called again, and Export
// returns that error. A sandbox in which nothing has run is ErrNoLayer. ErrNoLayer and add's error
// leave the Runner usable, any other ends it.
func (r *Runner) Export(ctx context.Context, b LayerBounds, add func(f LayerFile, content io.Reader) error) error {
	if r.isIdle() {
		return fmt.Errorf("%w: the sandbox has ended", ErrNoLayer)
	}
	var refused error
	_, err := r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) error {
		if result.NewSandbox { // it has just replaced one that ended
			refused = fmt.Errorf("%w: the sandbox has ended", ErrNoLayer)
			return nil
		}
		err := s.init.exportLayer(b, add)
		var why *layerRefusal
		if errors.As(err, &why) {
			refused, err = why.error, nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// A Read is a path that commands have learned something of, of the workspace's own tree, not of
// what they have written over it: at least what is there, or that nothing is, and with Content
// the content of a file, the list of a directory or the target of a link. The Path is relative, "."
// for the workspace, and untrusted.
type Read struct {
	Path    string
	Content bool
	// Optional means that only the commands from an optional one on have learned it.
	Optional bool
}

// ErrReads means that commands have read more than MaxReads files of the workspace, or one whose
// path cannot be said.
var ErrReads = errors.New("set-up read too many files of the workspace")

// MaxReads is the maximum number of paths that Reads returns, each at most twice: with and without
// Optional.
const MaxReads = wire.MaxReads

// Reads returns what commands have read of the workspace in the current sandbox, and ends the
// recording, also of later sandboxes. Optional is what was first read after the command with the id
// before began; if there was none, nothing is. It requires Options.Recorded. ErrReads and ErrNoLayer leave the
// Runner usable, any other error ends it.
func (r *Runner) Reads(ctx context.Context, before string) (list []Read, err error) {
	if !r.o.Recorded || r.isIdle() {
		return nil, fmt.Errorf("%w: nothing was recorded", ErrNoLayer)
	}
	var refused error
	_, err = r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) error {
		if result.NewSandbox || s.gate == nil { // it has just replaced one that ended
			refused = fmt.Errorf("%w: the sandbox has ended", ErrNoLayer)
			return nil
		}
		r.o.Recorded = false // of the next sandboxes
		reads, err := s.gate.monitor.Reads(before, s.gate.nudgeKernel)
		if reads.Over {
			refused = ErrReads
		}
		for _, read := range reads.List {
			list = append(list, Read(read))
		}
		return err
	})
	return list, errors.Join(err, refused)
}

// UseLayer makes each sandbox that starts from now on begin with layer: see Options.Layer.
func (r *Runner) UseLayer(layer *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Layer = layer
}

// A layerRefusal is the reason that there is no layer; init is still in step.
type layerRefusal struct{ error }

func (c *initClient) exportLayer(b LayerBounds, add func(LayerFile, io.Reader) error) error {
	if conn, err := c.answers.SyscallConn(); err == nil { // hundreds of MB come: wake the reader less often
		_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
	if err := c.sendRequest(layerGrace, fmt.Sprintf("layer %d %d", b.MaxFiles, b.MaxBytes)); err != nil {
		return err
	}
	l := &layerReader{client: c, left: b, add: add}
	_, err := parseNumberAnswer(c.readAnswer(l.readNode))
	var said *refusal
	switch {
	case errors.As(err, &said):
		return &layerRefusal{fmt.Errorf("%w: %s", ErrNoLayer, said.message)}
	case err == nil && l.err != nil:
		return &layerRefusal{l.err}
	}
	return err
}

// layerGrace is how long all files of a layer may take.
const layerGrace = 10 * time.Minute

// A layerReader reads the answer to "layer".
type layerReader struct {
	client *initClient
	left   LayerBounds
	add    func(LayerFile, io.Reader) error
	err    error // of add
}

// readNode reads one entry. After an error of add, it keeps in step with init.
func (l *layerReader) readNode(w []string) error {
	line := strings.Join(w, " ")
	f, regular, err := parseNode(line)
	if err != nil {
		return err
	}
	l.left.MaxFiles--
	if l.left.MaxBytes -= f.Size; l.left.MaxFiles < 0 || l.left.MaxBytes < 0 {
		return errors.New("guest init sends more than it was asked for")
	}
	var content io.Reader
	data := io.LimitReader(l.client.read, f.Size)
	if regular {
		content = data
	}
	if l.err == nil {
		l.err = l.add(f, content)
	}
	_, err = io.Copy(io.Discard, data)
	return err
}

// parseNode reads a line strictly.
func parseNode(line string) (f LayerFile, regular bool, err error) {
	refuse := func() (LayerFile, bool, error) {
		return LayerFile{}, false, fmt.Errorf("guest init answers %q", line)
	}
	w := strings.SplitN(line, " ", 8)
	if len(w) != 8 || w[0] != "node" || len(w[1]) != 1 {
		return refuse()
	}
	var numbers [5]int64
	for i, base := range []int{8, 10, 10, 10, 10} {
		if numbers[i], err = strconv.ParseInt(w[2+i], base, 64); err != nil || i != 3 && numbers[i] < 0 {
			return refuse()
		}
	}
	quoted, err := strconv.QuotedPrefix(w[7])
	if err != nil {
		return refuse()
	}
	name, err := strconv.Unquote(quoted)
	target, errTarget := strconv.Unquote(strings.TrimPrefix(w[7][len(quoted):], " "))
	if err != nil || errTarget != nil || !fs.ValidPath(strings.ToValidUTF8(name, "?")) || path.Clean(name) != name ||
		numbers[0] > 0o1777 || numbers[1] > 1<<31 || numbers[2] > 1<<31 {
		return refuse()
	}
	f = LayerFile{Path: name, Mode: fs.FileMode(numbers[0] & 0o777), UID: uint32(numbers[1]), GID: uint32(numbers[2]),
		ModTime: time.Unix(0, numbers[3]), Size: numbers[4]}
	if numbers[0]&0o1000 != 0 {
		f.Mode |= fs.ModeSticky
	}
	switch w[1] {
	case "f":
		return f, true, nil
	case "d":
		f.Mode |= fs.ModeDir
	case "l":
		f.Mode, f.Link = fs.ModeSymlink|0o777, target
	case "h":
		f.Hard = target
	default:
		return refuse()
	}
	if f.Size != 0 {
		return refuse()
	}
	return f, false, nil
}
