// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/kit/keep"
	"github.com/fumehood/fumehood/internal/sandbox/results"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A ConfigRequest names the configuration of a run, and what its operator says in place of it.
type ConfigRequest struct {
	File      string // as for config.ReadFile; one with the usual name makes its checkout trusted
	Trusted   string // directory with the file that is read if File is empty
	Overrides []config.Override
	// Results is a mode of package results, or "" for the configuration's. ResultsDir and
	// ResultsExchange are of gate.Store.
	Results, ResultsDir, ResultsExchange string
	Layers                               LayerRequest // its Configured is not used
}

// A Configuration is the configuration that was applied. It must be closed when the gate is made.
type Configuration struct {
	config.Config
	root *environment.Image // nil for other roots
}

// Context returns a context for gate.New: a root that is an image is not opened again.
func (c Configuration) Context(ctx context.Context) context.Context {
	return environment.WithImage(ctx, c.root)
}

// Close ends the use of the root.
func (c Configuration) Close() error { return c.root.Close() }

// Apply reads the configuration that r names and applies it to o: set-up and services, root file system
// and tools, hidden paths, limits of commands that request none, what is kept. Its timeout, policy, comment and
// checkout are the caller's. Workspace must be set. If the root is an image, it is opened, and pulled if
// necessary: set-up depends on the tools in it. Its error is a *proposal.StopError.
func (r ConfigRequest) Apply(
	ctx context.Context, o *gate.Options, getenv func(string) string,
) (c Configuration, err error) {
	read, err := config.ReadFile(r.File, r.Trusted, r.Overrides...)
	if c.Config = read.Config; err != nil {
		return c, err
	}
	mode, err := results.ParseMode(cmp.Or(r.Results, c.Results))
	if err != nil {
		return c, err
	}
	o.Results = gate.Store{Mode: mode.InJob(getenv, os.ReadFile).String(), Dir: r.ResultsDir,
		Exchange: r.ResultsExchange}
	r.Layers.Configured = c.Layers
	if o.Layers, err = r.Layers.chooseStore(getenv); err != nil {
		return c, err
	}
	o.Tools = strings.Join(append(slices.Clone(c.Tools), filepath.SplitList(o.Tools)...),
		string(filepath.ListSeparator))
	o.ToolsRequired, o.AllowTools, o.Hide = c.Tools, c.AllowTools, c.Hide
	o.Limits, o.Cache = c.Limits, !c.Cache.Off
	q := planning.Request{Config: c.Config, Workspace: o.Workspace, Tools: o.Tools, Rootfs: o.Rootfs,
		Trusted: r.trustedCheckout()}
	found, err := planning.FindRootAndSetup(ctx, q, o.Notice)
	if err != nil {
		return c, err
	}
	c.root, o.Rootfs, o.Setup = found.Image, found.Rootfs, SetupOf(found.Setup)
	return c, nil
}

// trustedCheckout returns the checkout that the operator trusts, "" for none: the one of a file with the usual
// name.
func (r ConfigRequest) trustedCheckout() string {
	if strings.HasSuffix(filepath.ToSlash(r.File), config.Path) {
		return filepath.Dir(filepath.Dir(r.File))
	}
	return ""
}

// A LayerRequest says which layers a run uses, as flags and the configuration give it.
type LayerRequest struct {
	Mode       string // one of LayerModes; "" is the Configured one
	Configured *bool  // config.Config.Layers
	Dir        string // of gate.Store
	Exchange   string // of gate.Store; with it Dir is not used
	InJob      bool   // fumehood action has started this process, without its environment
}

// LayerModes are the values of --layers.
var LayerModes = []string{"off", "auto", "read", "write"}

// chooseStore returns the layers that r requests. In a job that may not keep what it makes, auto and write are
// read. With an Exchange, which others can write to, no later run uses what this one finds there. Its error is a
// *proposal.StopError.
func (r LayerRequest) chooseStore(getenv func(string) string) (gate.Store, error) {
	mode := cmp.Or(r.Mode, r.configuredMode(getenv))
	switch {
	case mode == "" || mode == "off":
		return gate.Store{Mode: mode}, nil
	case !slices.Contains(LayerModes, mode):
		return gate.Store{}, &proposal.StopError{Code: "layers.mode",
			Message: fmt.Sprintf("invalid value %q of --layers", mode), Hint: "use off, auto, read or write"}
	case !keep.IsAllowed(getenv, os.ReadFile):
		mode = "read"
	}
	return gate.Store{Mode: mode, Dir: r.Dir, Exchange: r.Exchange}, nil
}

// configuredMode returns the mode without --layers: what a run in CI makes is not kept, because its configuration
// may be a pull request's.
func (r LayerRequest) configuredMode(getenv func(string) string) string {
	switch {
	case r.Configured != nil && !*r.Configured:
		return ""
	case !r.InJob && keep.IsOwnMachine(getenv):
		return "auto"
	case r.Configured != nil:
		return "read"
	}
	return ""
}
