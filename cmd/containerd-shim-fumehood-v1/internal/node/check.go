// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/fumehood/fumehood/pkg/process"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/install"
)

// Check examines whether pods can run with this node's configuration, and writes a line for each
// finding. It reports whether they can.
func Check(ctx context.Context, w io.Writer) bool {
	c, err := Read()
	report(w, "configuration", err)
	if err != nil {
		return false
	}
	_, err = install.Find(ctx, install.Options{Path: c.Runsc}) // all of it is read
	all := report(w, "fumehood-runsc", err)
	all = report(w, "directory for state", Directory(c.State)) && all
	all = report(w, "directory for logs", Directory(c.Logs)) && all
	if c.Sessions != nil {
		_, err := c.Sessions.TLS("default")
		all = report(w, "certificates for sessions", err) && all
		all = report(w, "directory for sessions", Directory(c.Sessions.Work)) && all
	}
	for _, digest := range c.digests() {
		_, err := c.Engine(ctx, digest)
		all = report(w, "policy "+digest, err) && all
	}
	if c.Default == "" {
		fmt.Fprintln(w, "note: there is no default policy: pods that name none are refused")
	}
	return all
}

func report(w io.Writer, what string, err error) bool {
	if err == nil {
		fmt.Fprintln(w, "ok:   "+what)
		return true
	}
	f := proposal.FailureOf(err)
	fmt.Fprintf(w, "fail: %s: %v\n", what, err)
	if f.Hint != "" {
		fmt.Fprintln(w, "      hint: "+f.Hint)
	}
	return false
}

// Directory makes a directory for pods unless there is one, and returns why it cannot be used.
func Directory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return stop("node.config", "cannot make the directory "+path, "make it, or name another", err)
	}
	if err := process.Private(path, os.Geteuid()); err != nil {
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
