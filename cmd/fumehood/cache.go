// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/image/layers"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func (c *invocation) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cache COMMAND",
		GroupID: cli.GroupRun,
		Short:   "List and remove the layers that set-up has left",
		Long: `List and remove the layers that runs with --layers write have made: what the commands of set-up
left, such as installed dependencies. A run with --layers read does not run set-up again where a
layer has its effects.`,
		Example: `  fumehood cache list
  fumehood cache prune --older 14`,
	}
	cmd.AddCommand(c.cacheListCommand(), c.cachePruneCommand())
	return cmd
}

// cacheFlags are the flags of the commands of cache.
type cacheFlags struct {
	format cli.Format
	dir    string
	size   string
	older  int
	all    bool
}

func (s *cacheFlags) define(cmd *cobra.Command) {
	s.format.Define(cmd, cli.Text, cli.JSON)
	cmd.Flags().StringVar(&s.dir, "layers-dir", "", "`DIR` directory with the layers (default: the one on this host)")
	cli.Directories(cmd, "layers-dir")
}

func (c *invocation) cacheListCommand() *cobra.Command {
	var s cacheFlags
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the layers, the last used first",
		Long:  `List the layers, the last used first. Their contents are verified when they are used, not here.`,
		Example: `  fumehood cache list
  fumehood cache list --json | jq -r '.[].key'`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int {
			store, err := gate.OpenLayers(s.dir)
			if err != nil {
				return c.Stop(err)
			}
			list, err := store.List()
			if err != nil {
				return c.Stop(err)
			}
			return c.printLayers(&s, list)
		}),
	}
	s.define(cmd)
	return cmd
}

func (c *invocation) cachePruneCommand() *cobra.Command {
	var s cacheFlags
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove layers that were not used for longest",
		Long: `Remove layers until the rest is small enough, those first that were not used for longest, and list
what was removed. A layer that a run is using stays.`,
		Example: `  fumehood cache prune --max-size 2GiB
  fumehood cache prune --all`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.pruneLayers(&s) }),
	}
	s.define(cmd)
	cmd.Flags().StringVar(&s.size, "max-size", "5GiB", "`SIZE` bytes that may stay, for example 500MiB or 5GB")
	cmd.Flags().IntVar(&s.older, "older", 0, "`DAYS` also remove layers that were not used for this many days")
	cmd.Flags().BoolVar(&s.all, "all", false, "remove all layers")
	cli.NoFiles(cmd, "max-size", "older")
	return cmd
}

func (c *invocation) pruneLayers(s *cacheFlags) int {
	size, err := proposal.ParseBytes(s.size)
	if err != nil {
		return c.Misuse("--max-size " + err.Error())
	}
	if s.older < 0 {
		return c.Misuse("--older must not be negative")
	}
	before := time.Time{}
	if s.older > 0 {
		before = time.Now().AddDate(0, 0, -s.older)
	}
	if s.all {
		size = 0
	}
	store, err := gate.OpenLayers(s.dir)
	if err != nil {
		return c.Stop(err)
	}
	removed, err := store.Prune(int64(size), before)
	if err != nil {
		return c.Stop(err)
	}
	return c.printLayers(s, removed)
}

func (c *invocation) printLayers(s *cacheFlags, list []layers.Entry) int {
	if s.format.Is(cli.JSON) {
		if list == nil {
			list = []layers.Entry{}
		}
		return c.Exit(exitOK, c.printAnswer(list))
	}
	return c.Exit(exitOK, layers.WriteText(c.Stdout, list))
}
