// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// A git is the path of a git program whose version was checked.
type git string

// The oldest supported git. GIT_CONFIG_GLOBAL came with 2.32; without it the user's
// configuration would apply. GIT_CONFIG_COUNT came with 2.31.
const oldestMajor, oldestMinor = 2, 32

// memory bounds the address space of a git process. Deltas are expanded in it, and a
// pack of a few kilobytes can ask for gigabytes. The packs are mapped into it too.
const memory = 3 << 30

// findGit prefers the system's directories to PATH, which a step of the job may
// have prepended directories to.
func findGit(ctx context.Context) (git, error) {
	for _, path := range []string{"/usr/bin/git", "/usr/local/bin/git"} {
		if _, err := os.Stat(path); err == nil {
			return git(path), git(path).checkOnce(ctx)
		}
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return "", newStopError(CodeGit, "install git", err, "git is not installed")
	}
	return git(path), git(path).checkOnce(ctx)
}

// supported holds each git whose version this process has checked.
var supported sync.Map

// checkOnce is checkVersion, without a process for a git that passed before.
func (g git) checkOnce(ctx context.Context) error {
	if _, found := supported.Load(g); found {
		return nil
	}
	if err := g.checkVersion(ctx); err != nil {
		return err
	}
	supported.Store(g, true)
	return nil
}

var versionRE = pattern.New(`^git version ([0-9]{1,4})\.([0-9]{1,4})[.\s]`)

func (g git) checkVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	said, err := g.command(ctx, nil, "version").output(4096)
	if err != nil {
		return newStopError(CodeGit, "install git", err, "git does not run")
	}
	hint := fmt.Sprintf("install git %d.%d or newer", oldestMajor, oldestMinor)
	match := versionRE.FindSubmatch(said)
	if match == nil {
		return newStopError(CodeGit, hint, nil, "cannot read git's version from %q", text.Inline(string(said), 80))
	}
	major, _ := strconv.Atoi(string(match[1]))
	minor, _ := strconv.Atoi(string(match[2]))
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return newStopError(CodeGit, hint, nil, "git %d.%d is older than %d.%d", major, minor, oldestMajor, oldestMinor)
	}
	return nil
}

// settings are passed to every git process. The only other configuration that git
// reads is the store's config file, which this package writes.
var settings = []string{
	"protocol.allow=never",
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"credential.helper=", "gc.auto=0", "maintenance.auto=false",
	"fetch.recurseSubmodules=false", "submodule.recurse=false",
	// Larger objects are streamed instead of held in memory.
	"core.bigFileThreshold=16m", "pack.threads=1", "core.packedGitLimit=1g",
}

// environment is the whole environment of git; nothing of this process's is inherited.
var environment = []string{
	"PATH=/usr/bin:/bin:/usr/local/bin", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1",
	"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "GIT_SSH_COMMAND=/bin/false",
	"GIT_PROTOCOL_FROM_USER=0", "GIT_LFS_SKIP_SMUDGE=1", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
	"GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=/bin/false",
}

type gitCommand struct {
	*exec.Cmd
	said stderrTail // stderr
}

// command prepares "git -c … args". When ctx ends, git and all its children are killed.
func (g git) command(ctx context.Context, extra []string, args ...string) *gitCommand {
	return g.limitedCommand(ctx, unix.RLIM_INFINITY, extra, args...)
}

// limitedCommand is like command, with a bound on the size of each file that git writes. A
// shell sets the limits before git starts, so that git never runs without them.
func (g git) limitedCommand(ctx context.Context, file uint64, extra []string, args ...string) *gitCommand {
	shell := []string{"-c", `ulimit -c 0 && ulimit -v "$1" && ulimit -f "$2" && shift 2 && exec "$@"`, "sh",
		formatLimit(unix.RLIMIT_AS, memory, 1024), formatLimit(unix.RLIMIT_FSIZE, file, 512), string(g)}
	for _, setting := range settings {
		shell = append(shell, "-c", setting)
	}
	c := &gitCommand{Cmd: exec.CommandContext(ctx, "/bin/sh", append(shell, args...)...)}
	c.Env = append(environment[:len(environment):len(environment)], extra...)
	c.Dir = "/"
	c.Stderr = &c.said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second // for pipes that a child of git keeps open
	return c
}

// formatLimit formats a limit in units. It never exceeds this process's limit, which
// cannot be raised.
func formatLimit(resource int, bytes, unit uint64) string {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err == nil && own.Max < bytes {
		bytes = own.Max
	}
	if bytes == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(bytes/unit, 10)
}

// output runs the command and returns its stdout, of at most max bytes.
func (c *gitCommand) output(max int) ([]byte, error) {
	var out bytes.Buffer
	stdout := &boundedBuffer{Buffer: &out, left: max}
	c.Stdout = stdout
	if err := c.Run(); err != nil {
		return nil, c.addStderr(err)
	}
	if stdout.over {
		return nil, fmt.Errorf("git printed more than %d bytes", max)
	}
	return out.Bytes(), nil
}

// addStderr adds git's stderr to err, as one visible line.
func (c *gitCommand) addStderr(err error) error {
	if said := c.said.formatLines(); said != "" {
		return fmt.Errorf("%w: %s", err, cutOutput(said))
	}
	return err
}

// A stderrTail keeps the last bytes written to it: git prints why it ends last, after any
// text from the server.
type stderrTail struct{ kept []byte }

const tailMax = 8192

func (t *stderrTail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if drop := len(t.kept) - tailMax; drop > 0 {
		t.kept = append(t.kept[:0], t.kept[drop:]...)
	}
	return len(p), nil
}

// formatLines puts git's lines before those of the server.
func (t *stderrTail) formatLines() string {
	var own, remote []string
	for line := range strings.SplitSeq(string(t.kept), "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "remote:"):
			remote = append(remote, line)
		case line != "":
			own = append(own, line)
		}
	}
	return strings.Join(append(own, remote...), "\n")
}

// boundedBuffer keeps the first bytes and drops the rest, without stopping the writer.
type boundedBuffer struct {
	*bytes.Buffer
	left int
	over bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	keep := min(len(p), b.left)
	b.Buffer.Write(p[:keep])
	b.left -= keep
	b.over = b.over || keep < len(p)
	return len(p), nil
}
