// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox/results"
	"github.com/fumehood/fumehood/internal/source/config"
)

// A ConfigRequest names the configuration of a run, and what its operator says in place of it.
type ConfigRequest struct {
	File      string // as for ReadConfig; one with the usual name makes its checkout trusted
	Trusted   string // directory with the file that is read if File is empty
	Overrides []config.Override
	// Results is a mode of package results, or "" for the configuration's. ResultsDir and
	// ResultsExchange are those of Options.
	Results, ResultsDir, ResultsExchange string
	Layers                               LayerRequest // its Configured is not used
}

// UseConfig reads the configuration that r names and applies it to o, except for its timeout, policy,
// comment and checkout, which are the caller's. Workspace must be set. Its error is a
// *proposal.StopError.
func (o *Options) UseConfig(ctx context.Context, r ConfigRequest, getenv func(string) string) (config.Config, error) {
	found, err := ReadConfig(r.File, r.Trusted, r.Overrides...)
	if err != nil {
		return found.Config, err
	}
	if strings.HasSuffix(filepath.ToSlash(r.File), config.Path) { // the operator trusts this checkout
		o.TrustedDirectory = filepath.Dir(filepath.Dir(r.File))
	}
	if err := o.Configure(ctx, found.Config); err != nil {
		return found.Config, err
	}
	mode, err := results.ParseMode(cmp.Or(r.Results, found.Config.Results))
	if err != nil {
		return found.Config, err
	}
	o.Results, o.ResultsDir, o.ResultsExchange = mode.InJob(getenv, os.ReadFile), r.ResultsDir, r.ResultsExchange
	r.Layers.Configured = found.Config.Layers
	return found.Config, o.UseLayers(r.Layers, getenv)
}
