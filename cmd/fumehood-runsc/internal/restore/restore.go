// SPDX-License-Identifier: Apache-2.0

// Package restore is runsc's command that starts a sandbox from a saved one. Upstream's "restore" donates no
// descriptors, without which no restored interpreter can be reached, and has ways to start a sandbox
// incorrectly, such as detached.
package restore

import (
	"context"
	"fmt"
	"os"

	"github.com/google/subcommands"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/runsc/cmd/sandboxsetup"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Restore implements subcommands.Command for "restore".
type Restore struct {
	bundle, image string
	files         sandboxsetup.FDMappings
	spec          *specs.Spec
}

// Name implements subcommands.Command.
func (*Restore) Name() string { return "restore" }

// Synopsis implements subcommands.Command.
func (*Restore) Synopsis() string { return "start a sandbox from a saved one" }

// Usage implements subcommands.Command.
func (*Restore) Usage() string {
	return "restore [flags] <container id> - start a sandbox from a saved one.\n"
}

// SetFlags implements subcommands.Command.
func (r *Restore) SetFlags(f *flag.FlagSet) {
	f.StringVar(&r.bundle, "bundle", "", "directory of the bundle, which is like that of the saved sandbox")
	f.StringVar(&r.image, "image-path", "", "directory of the saved sandbox")
	f.Var(&r.files, "pass-fd", "descriptor M of this process that becomes what was saved as N: M:N")
}

// FetchSpec implements util.SubCommand.
func (r *Restore) FetchSpec(conf *config.Config, f *flag.FlagSet) (string, *specs.Spec, error) {
	if f.NArg() != 1 || r.bundle == "" || r.image == "" {
		return "", nil, fmt.Errorf("a container id, a bundle and an image path are required")
	}
	var err error
	if r.spec == nil {
		r.spec, err = specutils.ReadSpec(r.bundle, conf)
	}
	return f.Arg(0), r.spec, err
}

// Execute implements subcommands.Command. It waits until the sandbox ends.
func (r *Restore) Execute(_ context.Context, f *flag.FlagSet, args ...any) subcommands.ExitStatus {
	conf, status := args[0].(*config.Config), args[1].(*unix.WaitStatus)
	id, spec, err := r.FetchSpec(conf, f)
	if err != nil {
		return util.Errorf("%v", err)
	}
	files := map[int]*os.File{}
	for _, m := range r.files {
		if files[m.Guest] = os.NewFile(uintptr(m.Host), ""); files[m.Guest] == nil {
			return util.Errorf("descriptor %d is not open", m.Host)
		}
	}
	c, err := container.New(conf, container.Args{ID: id, Spec: spec, BundleDir: r.bundle, Attached: true,
		PassFiles: files})
	if err != nil {
		return util.Errorf("creating container: %v", err)
	}
	for _, file := range files { // the sandbox has its own now
		_ = file.Close()
	}
	if err := c.Restore(conf, r.image, false, false, nil); err != nil {
		_ = c.Destroy()
		return util.Errorf("restoring container: %v", err)
	}
	if *status, err = c.Wait(); err != nil {
		return util.Errorf("waiting for container: %v", err)
	}
	return subcommands.ExitSuccess
}
