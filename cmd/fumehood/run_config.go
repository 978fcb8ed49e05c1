// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
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
	o.Results, o.ResultsDir = mode.InJob(os.Getenv, os.ReadFile), s.resultsDir
	if err := s.openLayers(found.Config.Layers, o); err != nil {
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

// openLayers sets o's layers as the flags say, or else as configured. A configuration file, which
// may be a pull request's, makes no layer. What others can write is copied to a store of this
// run only, so that no later run uses it.
func (s *runFlags) openLayers(configured bool, o *gate.Options) (err error) {
	switch s.layers {
	case "":
		if !configured {
			return nil
		}
	case "off":
		return nil
	case "read", "write":
	default:
		return &proposal.StopError{Code: "layers.mode", Message: fmt.Sprintf("invalid value %q of --layers", s.layers), Hint: "use off, read or write"}
	}
	o.LayersWrite, o.LayersExchange = s.layers == "write" && results.Write.InJob(os.Getenv, os.ReadFile) == results.Write, s.layersExchange
	if s.layersExchange == "" {
		o.Layers, err = gate.OpenLayers(s.layersDir)
		return err
	}
	s.runLayers, err = gate.OpenRunLayers()
	o.Layers = s.runLayers
	return err
}
