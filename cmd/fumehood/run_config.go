// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/results"
)

// configure applies the configuration file, and the flags that override it, to o.
func (c *invocation) configure(s *runFlags, o *gate.Options) error {
	if !s.configured { // demo
		return nil
	}
	trusted := cmp.Or(s.trusted, s.workspace)
	found, err := gate.ReadConfig(s.config, trusted, config.Override{Field: "setup", Value: s.setup, From: "--setup"}, config.Override{Field: "cache", Value: s.cache, From: "--cache"},
		config.Override{Field: "comment", Value: s.comment, From: "--comment"})
	if err != nil {
		return err
	}
	if strings.HasSuffix(filepath.ToSlash(s.config), config.Path) { // the operator trusts this checkout
		o.TrustedDirectory = filepath.Dir(filepath.Dir(s.config))
	}
	if err := o.Configure(c.Ctx, found.Config); err != nil {
		return err
	}
	mode, err := results.ParseMode(cmp.Or(s.results, found.Config.Results))
	if err != nil {
		return err
	}
	o.Results, o.ResultsDir, o.ResultsExchange = mode.InJob(os.Getenv, os.ReadFile), s.resultsDir, s.resultsExchange
	o.Repeated = s.repeated
	if err = o.UseLayers(gate.LayerRequest{Mode: s.layers, Configured: found.Config.Layers, Dir: s.layersDir, Exchange: s.layersExchange}, os.Getenv); err != nil {
		return err
	}
	s.configTimeout, s.shown = found.Config.Timeout.Std(), found.Config.Comment
	if dir := found.Config.Policy; dir != "" && s.about == "" { // a job names its policies itself: the workspace is the pull request's
		s.policies.Restricting = append(s.policies.Restricting, filepath.Join(trusted, dir))
	}
	for _, n := range o.Setup.Notes {
		c.Warn("set-up: " + n.String())
	}
	return nil
}
