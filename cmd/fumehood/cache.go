// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/sandbox/image/layers"
)

// cacheFlags are the flags of cache.
type cacheFlags struct {
	format cli.Format
	dir    string
	prune  bool
	size   string
	older  int
	all    bool
}

func (c *invocation) cacheCommand() *cobra.Command {
	var s cacheFlags
	cmd := &cobra.Command{
		Use:     "cache [flags]",
		GroupID: cli.GroupRun,
		Short:   "List the layers that set-up has left, or remove some",
		Long: `List the layers that runs have made, the last used first: what the commands of set-up left, such as
installed dependencies. A run does not run set-up again where a layer has its effects. The contents of
layers are verified when they are used, not here. All layers take at most 5 GiB and are at most 200:
runs that make one remove those that were not used for longest.

With --prune, remove layers until the rest is small enough, those first that were not used for
longest, and list what was removed. A layer that a run is using stays.`,
		Example: `  fumehood cache
  fumehood cache --json | jq -r '.[].key'
  fumehood cache --prune --max-size 2GiB --older 14
  fumehood cache --prune --all`,
		Args: cli.NoArgs,
	}
	f := cmd.Flags()
	cmd.RunE = c.Run(func([]string) int {
		if s.prune {
			return c.pruneLayers(&s)
		}
		if f.Changed("max-size") || f.Changed("older") || f.Changed("all") {
			return c.ReportMisuse("--max-size, --older and --all need --prune")
		}
		return c.listLayers(&s)
	})
	f.BoolVar(&s.prune, "prune", false, "remove layers")
	f.StringVar(&s.size, "max-size", "5GiB", "`SIZE` bytes that --prune leaves, for example 500MiB or 5GB")
	f.IntVar(&s.older, "older", 0, "`DAYS` with --prune, also remove layers that were not used for this many days")
	f.BoolVar(&s.all, "all", false, "with --prune, remove all layers")
	f.StringVar(&s.dir, "layers-dir", "", "`DIR` directory with the layers (default: the one on this host)")
	s.format.Define(cmd, cli.Text, cli.JSON)
	cli.CompleteDirectories(cmd, "layers-dir")
	cli.NoFiles(cmd, "max-size", "older")
	cli.SuggestInstead(cmd, "list", "fumehood cache")
	cli.SuggestInstead(cmd, "prune", "fumehood cache --prune")
	return cmd
}

func (c *invocation) listLayers(s *cacheFlags) int {
	store, err := layers.OpenDefault(s.dir)
	if err != nil {
		return c.Stop(err)
	}
	list, err := store.List()
	if err != nil {
		return c.Stop(err)
	}
	return c.printLayers(s, list)
}

func (c *invocation) pruneLayers(s *cacheFlags) int {
	size, err := text.ParseBytes(s.size)
	if err != nil {
		return c.ReportMisuse("--max-size " + err.Error())
	}
	if s.older < 0 {
		return c.ReportMisuse("--older must not be negative")
	}
	before := time.Time{}
	if s.older > 0 {
		before = time.Now().AddDate(0, 0, -s.older)
	}
	if s.all {
		size = 0
	}
	store, err := layers.OpenDefault(s.dir)
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
		return c.ExitCode(exitOK, c.printAnswer(list))
	}
	return c.ExitCode(exitOK, layers.WriteText(c.Stdout, list))
}
