// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Check examines whether pods can run with this node's configuration.
func Check(ctx context.Context) []doctor.Check {
	c, err := Read()
	checks := []doctor.Check{result("configuration", "valid, only root can change it and what it names", err)}
	if err != nil {
		return checks
	}
	runsc, err := install.Find(ctx, install.Options{Path: c.Runsc}) // all of it is read
	checks = append(checks, result("runsc", runsc.Version+" at "+runsc.Path, err))
	if err == nil {
		checks = append(checks, checkSandbox(ctx, runsc)...)
	}
	checks = append(checks, checkDirectory("state", c.State, maxState), checkDirectory("logs", c.Logs, c.LogLimit))
	if s := c.Sessions; s != nil {
		_, err := s.TLS("default")
		checks = append(checks, result("certificates", "those for sessions are valid", err),
			checkDirectory("sessions", s.Work, s.Disk))
	}
	for _, digest := range c.digests() {
		_, err := c.Engine(ctx, digest)
		checks = append(checks, result("policy", digest, err))
	}
	if c.Default == "" {
		checks = append(checks, doctor.Check{Name: "policy", State: doctor.Limited,
			Detail: "there is no default: pods that name no policy are refused",
			Fix:    "set default in the node's configuration"})
	}
	return checks
}

func result(name, detail string, err error) doctor.Check {
	if err != nil {
		return doctor.FailedCheck(name, err)
	}
	return doctor.Check{Name: name, State: doctor.OK, Detail: detail}
}

// checkSandbox tries a program of the host, which a node need not have.
func checkSandbox(ctx context.Context, runsc install.Runsc) []doctor.Check {
	if _, err := os.Stat("/bin/bash"); err != nil {
		return []doctor.Check{{Name: "sandbox", State: doctor.Unknown,
			Detail: "no command was tried: this host has no /bin/bash", Fix: "start a pod"}}
	}
	return doctor.CheckSandbox(ctx, runsc)
}

// maxState is more than what hundreds of pods have in the directory for state.
const maxState = 16 << 20

// checkDirectory writes a file to a directory. room is how many bytes one pod may need there.
func checkDirectory(name, path string, room int64) doctor.Check {
	err := Directory(path)
	if err == nil {
		err = tryWrite(path)
	}
	if err != nil {
		return doctor.FailedCheck(name, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return doctor.FailedCheck(name, err)
	}
	if free := proposal.Bytes(fs.Bavail) * proposal.Bytes(fs.Bsize); free < proposal.Bytes(room) {
		return doctor.Check{Name: name, State: doctor.Limited,
			Detail: fmt.Sprintf("%s has room for %s, and one pod may need %s", path, free, proposal.Bytes(room)),
			Fix:    "free space, or name another directory"}
	}
	return doctor.Check{Name: name, State: doctor.OK, Detail: path}
}

func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".check-")
	if err == nil {
		_, err = f.WriteString("check")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return stop("node.config", "cannot write to the directory "+dir,
			"mount it read-write and free space, or name another", err)
	}
	return nil
}

// Directory makes a directory for pods unless there is one, and returns why it cannot be used.
func Directory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return stop("node.config", "cannot make the directory "+path, "make it, or name another", err)
	}
	if err := process.CheckPrivate(path, os.Geteuid()); err != nil {
		return stop("node.config", "another user can change the directory "+path, "use another", err)
	}
	return nil
}

// digests returns the bundles that pods may have.
func (c Config) digests() []string {
	list := slices.Concat(slices.Collect(maps.Values(c.Namespaces))...)
	if c.Default != "" {
		list = append(list, c.Default)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
