// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/watch/monitor"
)

// A sinkReader is the supervisor's end of the sink in gVisor's kernel. The constants are
// those of package monitor/sentry, which cannot be imported here, because it brings
// that kernel with it.
type sinkReader struct{ fifo *os.File }

const (
	sinkName     = "fumehood"
	sinkHello    = 'h'
	sinkPids     = 'p'
	sinkDisk     = 'd'
	sinkSlow     = 's'
	sinkGone     = 'g'
	sinkProtocol = 'x'
)

// commonCalls are the calls that can reach the process or the disk limit on every
// architecture; archCalls adds an architecture's own.
var commonCalls = []int{
	unix.SYS_CLONE, unix.SYS_CLONE3,
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2,
	unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_RENAMEAT2,
}

// newWatch writes the trace session's configuration for runsc, and first opens our
// end of its FIFO, so that the sink never finds it closed.
//
// gate, if not empty, is the socket of the exec gate and the monitor, for which the
// kernel waits for patience, and trees are the paths of guest init's overlays.
func newWatch(dir, gate string, patience time.Duration, trees []string) (*sinkReader, error) {
	path := filepath.Join(dir, "watch")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(traceConfig(path, gate, patience, trees))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	w := &sinkReader{os.NewFile(uintptr(fd), path)}
	return w, os.WriteFile(w.configPath(dir), data, 0o600)
}

func (*sinkReader) configPath(dir string) string { return filepath.Join(dir, "trace.json") }

func traceConfig(fifo, gate string, patience time.Duration, trees []string) any {
	names := []string{"sentry/clone"} // after which init can mount what lists files
	for _, call := range slices.Concat(commonCalls, archCalls) {
		names = append(names, fmt.Sprintf("syscall/sysno/%d/exit", call))
	}
	// The FIFO's sink comes first: the other one reports through it why it gave up.
	sinks := []monitor.Sink{{Name: sinkName, Config: map[string]any{"fifo": fifo}}}
	if gate != "" {
		names = append(names, monitor.TracePoints()...)
		sinks = append(sinks, monitor.Sink{Name: monitor.SinkName,
			Config: map[string]any{"socket": gate, "patience": patience.Milliseconds(), "trees": trees}})
	}
	slices.Sort(names)
	return monitor.TraceConfig(monitor.PointsOf(slices.Compact(names)...), sinks...)
}

// confirmActive checks that the sink is active. If runsc cannot set up a session, it only
// logs a warning and runs the sandbox unwatched.
func (w *sinkReader) confirmActive(c *control.Conn) error {
	sessions, err := c.TraceSessions()
	if err != nil {
		return err
	}
	if !slices.Equal(sessions, []string{monitor.TraceSession}) || !w.reportedLimits()[sinkHello] {
		return newStopError("sandbox.watch", "the sink in gVisor's kernel is not active",
			"use the fumehood-runsc of this version", nil)
	}
	return nil
}

// reportedLimits returns what the sink has reported since the last call, without waiting.
func (w *sinkReader) reportedLimits() map[byte]bool {
	reported := map[byte]bool{}
	conn, err := w.fifo.SyscallConn()
	if err != nil {
		return reported
	}
	buf := make([]byte, 4096)
	_ = conn.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buf)
			if err != nil || n <= 0 {
				return true // nothing more to read: do not wait
			}
			for _, b := range buf[:n] {
				reported[b] = true
			}
		}
	})
	return reported
}

func (w *sinkReader) close() error { return w.fifo.Close() }
