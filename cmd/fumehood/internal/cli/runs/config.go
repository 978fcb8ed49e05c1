// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
)

// applyConfig applies the configuration file, and the flags that override it, to o.
func (s *Flags) applyConfig(c *cli.Invocation, o *gate.Options) error {
	if !s.configured { // demo
		return nil
	}
	trusted := cmp.Or(s.Trusted, s.Workspace)
	o.Repeated = s.Repeated
	found, err := o.UseConfig(c.Ctx, gate.ConfigRequest{
		File: s.Config, Trusted: trusted,
		Overrides: []config.Override{{Field: "setup", Value: s.Setup, From: "--setup"}, {Field: "cache", Value: s.Cache, From: "--cache"}, {Field: "comment", Value: s.comment, From: "--comment"},
			{Field: "compare-base", Value: s.CompareBase, From: "--compare-base"}},
		Results: s.Results, ResultsDir: s.resultsDir, ResultsExchange: s.ResultsExchange,
		Layers: gate.LayerRequest{Mode: s.Layers, Dir: s.layersDir, Exchange: s.LayersExchange},
	}, os.Getenv)
	if err != nil {
		return err
	}
	s.compares = !found.CompareBase.Off
	s.configTimeout, s.shown = found.Timeout.Std(), found.Comment
	if dir := found.Policy; dir != "" && !s.fromJob { // a job names its policies itself: the workspace is the pull request's
		s.Policies.Restricting = append(s.Policies.Restricting, filepath.Join(trusted, dir))
	}
	for _, n := range o.Setup.Notes {
		c.PrintWarnings("set-up: " + n.String())
	}
	return nil
}
