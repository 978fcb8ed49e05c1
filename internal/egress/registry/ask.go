// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	patience  = time.Minute // per command; a JVM or cold npm on a busy runner takes many seconds
	maxAnswer = 4 << 20
)

// errAbsent means that the host does not have the tool.
var errAbsent = errors.New("no such tool on this host")

// handed are the prefixes of the operator's environment variables that tools get: where
// tools find their own files, and the configuration of registries. The runner's tokens
// are not among them.
var handed = []string{
	"PATH=", "HOME=", "USER=", "LOGNAME=", "TMPDIR=", "XDG_CONFIG_", "LANG=", "LC_",
	"GOPROXY=", "GOSUMDB=", "GONOSUMDB=", "GONOPROXY=", "GOPRIVATE=", "GOENV=", "GOROOT=", "GOPATH=",
	"npm_config_", "NPM_CONFIG_", "NVM_", "PIP_", "PYENV_", "CARGO_", "RUSTUP_", "GEM_", "APT_CONFIG=",
}

// A toolRunner runs the host's tools to read their configuration.
type toolRunner struct {
	folder string // has no one's configuration
	env    []string
}

// newToolRunner makes the directory in which tools are run. Its own go.mod and package.json
// keep go and npm from searching the directories above it, which any user may be able
// to write to.
func newToolRunner() (*toolRunner, error) {
	folder, err := os.MkdirTemp("", "fumehood-ask-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory to run tools in: %w", err)
	}
	a := &toolRunner{folder: folder}
	for name, text := range map[string]string{"go.mod": "module ask\n", "package.json": "{}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			a.close()
			return nil, fmt.Errorf("cannot make a directory to run tools in: %w", err)
		}
	}
	for _, entry := range os.Environ() {
		if slices.ContainsFunc(handed, func(h string) bool { return strings.HasPrefix(entry, h) }) {
			a.env = append(a.env, entry)
		}
	}
	a.env = append(a.env, "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=", "RUSTUP_AUTO_INSTALL=0",
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "npm_config_update_notifier=false", "npm_config_logs_max=0", "NO_COLOR=1")
	return a, nil
}

func (a *toolRunner) close() { os.RemoveAll(a.folder) }

// runTool runs a tool and returns what it printed. errAbsent means that the host does not
// have the tool; any other error means that the tool exists and did not answer.
func (a *toolRunner) runTool(ctx context.Context, tool string, args ...string) (string, error) {
	out, _, err := a.execTool(ctx, a.folder, nil, tool, args...)
	return out, err
}

func (a *toolRunner) execTool(
	ctx context.Context, dir string, env []string, tool string, args ...string,
) (stdout, stderr string, err error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return "", "", errAbsent
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, complaint boundedBuffer
	c := exec.CommandContext(ctx, path, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(slices.Clone(a.env), env...), &out, &complaint
	c.WaitDelay = time.Second
	// A tool may be a script that starts another: the whole group is killed.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Run(); err != nil {
		// Its error output may contain a password.
		return "", complaint.String(), fmt.Errorf("cannot ask %s for its registry: %v", tool, err)
	}
	if out.over {
		return "", "", fmt.Errorf("cannot ask %s for its registry: its answer is too long", tool)
	}
	return out.String(), "", nil
}

// boundedBuffer keeps the first bytes written to it.
type boundedBuffer struct {
	kept bytes.Buffer // not embedded: io.Copy would use its ReadFrom
	over bool
}

func (b *boundedBuffer) String() string { return b.kept.String() }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := max(0, maxAnswer-b.kept.Len())
	b.over = b.over || len(p) > room
	b.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// homeDir returns the operator's home directory, or "".
func homeDir() string { return os.Getenv("HOME") }

// readConfig reads a tool's configuration file, for tools that cannot print their
// configuration. A missing file is empty; one that cannot be read is an error.
func readConfig(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxAnswer {
		return "", fmt.Errorf("cannot read %s: it is not a readable file of a reasonable size", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %v", path, err)
	}
	return string(data), nil
}
