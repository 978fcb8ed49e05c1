// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/checkout"
	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/setup"
)

// configFile returns the configuration file of the base commit, never the pull request's,
// or "none" if it has none.
func (b *Base) configFile(ctx context.Context) (string, error) {
	dir := filepath.Join(b.job.dir, "config")
	if _, err := os.Lstat(dir); err == nil { // of an earlier plan of this run
		return configIn(dir), nil
	}
	_, err := b.store.WriteUnder(ctx, b.commit, path.Dir(config.Path), dir)
	var absent *checkout.NotFound
	if errors.As(err, &absent) {
		return noConfig, nil
	}
	return configIn(dir), err
}

// noConfig is the name of no configuration file: see gate.ReadConfig.
const noConfig = "none"

func configIn(dir string) string {
	file := filepath.Join(dir, path.Base(config.Path))
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return noConfig
	}
	return file
}

// configFlags returns the flags of fumehood run for the configuration, and the set-up that
// it will find.
func (r Run) configFlags(ctx context.Context, p prepared) ([]string, setup.Setup, error) {
	file, err := r.Base.configFile(ctx)
	if err != nil {
		return nil, setup.Setup{}, err
	}
	flags, override := []string{"--config", file}, config.Override{Field: "setup", From: "input setup"}
	if mode := r.Job.in.Setup; mode != action.SetupConfigured {
		flags, override.Value = append(flags, "--setup", mode), mode
	}
	found, err := gate.ReadConfig(file, p.workspace.dir, override)
	if err != nil {
		return nil, setup.Setup{}, err
	}
	s, err := gate.FindSetup(found.Config, p.workspace.dir, r.Job.options.Getenv("PATH"))
	return flags, s, err
}
