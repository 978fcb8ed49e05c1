// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
)

// applyConfig applies the configuration file, and the flags that override it, to o. What it returns must be
// closed when the gate is made.
func (s *Flags) applyConfig(c *cli.Invocation, o *gate.Options) (found settings.Configuration, err error) {
	if !s.configured { // demo
		return found, nil
	}
	trusted := cmp.Or(s.Trusted, s.Workspace)
	o.Repeated = s.Repeated
	request := settings.ConfigRequest{
		File: s.Config, Trusted: trusted,
		Overrides: []config.Override{{Field: "setup", Value: s.Setup, From: "--setup"},
			{Field: "cache", Value: s.Cache, From: "--cache"}, {Field: "comment", Value: s.comment, From: "--comment"},
			{Field: "compare-base", Value: s.CompareBase, From: "--compare-base"}},
		Results: s.Results, ResultsDir: s.resultsDir, ResultsExchange: s.ResultsExchange,
		Layers: settings.LayerRequest{Mode: s.Layers, Dir: s.layersDir, Exchange: s.LayersExchange,
			InJob: s.fromJob},
	}
	found, err = request.Apply(c.Ctx, o, os.Getenv)
	if err != nil {
		return found, err
	}
	s.compares = !found.CompareBase.Off
	s.configTimeout, s.shown = found.Timeout.Std(), found.Comment
	// a job names its policies itself: the workspace is the pull request's
	if dir := found.Policy; dir != "" && !s.fromJob {
		s.Policies.Restricting = append(s.Policies.Restricting, filepath.Join(trusted, dir))
	}
	for _, n := range o.Setup.Notes {
		c.PrintWarnings("set-up: " + n)
	}
	return found, nil
}
