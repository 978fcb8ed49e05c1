// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Paths of an installation on a node of Kubernetes.
const (
	Versions = "/usr/local/lib/fumehood" // has a directory for each version, named by its content
	Shim     = "containerd-shim-fumehood-v1"
	DropIn   = "/etc/containerd/conf.d/fumehood.toml" // containerd reads it if its configuration imports the directory
	NodeFile = "/etc/fumehood/node.toml"
	// NodeVariable names another file than NodeFile, in the environment of containerd.
	NodeVariable = "FUMEHOOD_NODE_CONFIG"
)

// CodeNode is the code of what is wrong with an installation on a node.
const CodeNode = "doctor.node"

const documented = `: docs/KUBERNETES.md, "Install it on a node"`

// shimTime is how long the shim may take, which compiles each of the node's policies.
const shimTime = 5 * time.Minute

const (
	maxDropIn = 64 << 10 // bytes
	maxChecks = 1000
)

// ExamineNode looks at this host as a node of Kubernetes whose pods have a gate. The installed shim
// has the checks that need the node's configuration. It is run if nothing is missing before, and
// only root can change it.
func ExamineNode(ctx context.Context) []Check {
	checks := []Check{checkRoot(), checkNodeCgroup(), checkAgent()}
	shim, err := findShim()
	if err != nil {
		return append(checks, FailedCheck("installation", err))
	}
	checks = append(checks, Check{Name: "installation", State: OK,
		Detail: filepath.Dir(shim) + ", only root can change it"})
	if err := process.CheckPrivate(nodeFile(), 0); err != nil {
		checks = append(checks, FailedCheck("node.toml",
			nodeError("cannot trust the node's configuration", "write it as root"+documented, err)))
	}
	if !IsReady(checks) {
		return checks
	}
	ctx, cancel := context.WithTimeout(ctx, shimTime)
	defer cancel()
	return append(checks, askShim(ctx, shim)...)
}

func nodeFile() string {
	if path := os.Getenv(NodeVariable); path != "" {
		return path
	}
	return NodeFile
}

func nodeError(message, hint string, err error) error {
	return &proposal.StopError{Code: CodeNode, Message: message, Hint: hint, Err: err}
}

func checkNodeCgroup() Check {
	k := checkCgroupVersion()
	if k.State == Slow {
		k.State, k.Detail = Limited, "version 1: a kubelet of Kubernetes 1.35 or later starts only with failCgroupV1: false"
	}
	return k
}

// checkAgent looks for a process. No pod needs the agent.
func checkAgent() Check {
	names, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is valid
	for _, name := range names {
		// the kernel keeps 15 bytes
		if text, err := os.ReadFile(name); err == nil && string(text) == "fumehood-node-a\n" {
			return Check{Name: "agent", State: OK, Detail: "fumehood-node-agent runs"}
		}
	}
	return Check{Name: "agent", State: Limited,
		Detail: "fumehood-node-agent does not run here: refusals are in the pods' logs, not in events and metrics",
		Fix:    `label the node fumehood.dev/install=true: docs/kubernetes/operate.md, "Events and metrics"`}
}

// findShim returns the shim that containerd's configuration names. Only root can change it.
func findShim() (string, error) {
	text, err := readDropIn()
	if errors.Is(err, os.ErrNotExist) {
		return "", nodeError("containerd has no runtime fumehood", "run "+Shim+" install"+documented, err)
	}
	if err != nil {
		return "", nodeError("cannot trust the configuration of containerd",
			"find out who could change it, then run "+Shim+" install", err)
	}
	shim, err := runtimePath(text)
	if err != nil {
		return "", nodeError("invalid configuration of containerd: "+DropIn,
			"run "+Shim+" install, which writes it again", err)
	}
	if err := process.CheckPrivate(shim, 0); err != nil {
		return "", nodeError("cannot trust the installed shim", "remove that version, and install it again"+documented,
			err)
	}
	return shim, nil
}

func readDropIn() (string, error) {
	if err := process.CheckPrivate(DropIn, 0); err != nil {
		return "", err
	}
	info, err := os.Stat(DropIn)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxDropIn) {
		err = fmt.Errorf("%s is not a file of at most %d bytes", DropIn, maxDropIn)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(DropIn)
	return string(text), err
}

var (
	pathLine  = pattern.New(`^\s*runtime_path\s*=\s*(.*?)\s*$`)
	shimValue = pattern.New(`^"(` + regexp.QuoteMeta(Versions) + `/[0-9a-f]{32}/` + Shim + `)"$`)
)

// runtimePath returns the shim that text, written by install, names. It reads that line alone: the
// shim reads all of it.
func runtimePath(text string) (shim string, err error) {
	for i, line := range strings.Split(text, "\n") {
		found := pathLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		value := shimValue.FindStringSubmatch(found[1])
		if value == nil || shim != "" {
			return "", fmt.Errorf("line %d: runtime_path must appear once, with %s of a version below %s", i+1, Shim,
				Versions)
		}
		shim = value[1]
	}
	if shim == "" {
		return "", errors.New("no line begins with runtime_path")
	}
	return shim, nil
}

// askShim returns what the shim checks, or why it could not.
func askShim(ctx context.Context, shim string) []Check {
	data, err := RunPrivate(ctx, shim, "check", "-json")
	checks, invalid := decodeChecks(data)
	switch {
	case err != nil && (invalid != nil || IsReady(checks)):
		return []Check{FailedCheck("shim",
			nodeError("cannot check the node's configuration", "install this version"+documented, err))}
	case invalid != nil:
		return []Check{FailedCheck("shim",
			nodeError("cannot read what the shim has checked", "install this version"+documented, invalid))}
	}
	return checks
}

var (
	nameForm = pattern.New(`^[a-z][a-z0-9.-]{0,31}$`)
	states   = []string{OK, Slow, Limited, Unknown, Missing}
)

func decodeChecks(data []byte) (checks []Check, err error) {
	if err := json.Unmarshal(data, &checks); err != nil {
		return nil, err
	}
	if len(checks) == 0 || len(checks) > maxChecks {
		return nil, fmt.Errorf("%d checks", len(checks))
	}
	for _, k := range checks {
		if !nameForm.MatchString(k.Name) || !slices.Contains(states, k.State) {
			return nil, fmt.Errorf("invalid check %.40q with state %.40q", k.Name, k.State)
		}
	}
	return checks, nil
}

// RunPrivate runs a program that only root can change, with an environment of its own, and returns what it
// wrote to standard output, at most maxOutput. An end other than success is an error, too.
func RunPrivate(ctx context.Context, path string, args ...string) ([]byte, error) {
	if err := process.CheckPrivate(path, 0); err != nil {
		return nil, err
	}
	cmd := newCommand(ctx, path, args)
	var stdout, stderr boundedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = errors.New("it did not end in time")
	case stdout.full || stderr.full:
		err = fmt.Errorf("it printed more than %d bytes", maxOutput)
	case err != nil:
		line, _, _ := strings.Cut(string(stderr.data), "\n")
		err = fmt.Errorf("%w %.200s", err, line)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return stdout.data, err
}

// newCommand returns a command that is killed with all that it started when ctx ends.
func newCommand(ctx context.Context, path string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), NodeVariable + "=" + os.Getenv(NodeVariable)}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

const maxOutput = 1 << 20

// boundedBuffer refuses more than maxOutput bytes, which ends the program that writes them.
type boundedBuffer struct {
	data []byte
	full bool
}

func (b *boundedBuffer) Write(data []byte) (int, error) {
	if b.full = b.full || len(b.data)+len(data) > maxOutput; b.full {
		return 0, io.ErrShortWrite
	}
	b.data = append(b.data, data...)
	return len(data), nil
}
