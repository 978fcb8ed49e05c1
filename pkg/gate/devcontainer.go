// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const codeDevcontainer = "rootfs.devcontainer"

func isDevcontainer(value string) bool {
	return value == devcontainer.Name || strings.HasPrefix(value, devcontainer.Prefix)
}

// applyDevcontainer replaces Rootfs "devcontainer:FILE" by the image that FILE names, and
// returns what else FILE has. The caller trusts FILE: it must not be a pull request's.
func (o *Options) applyDevcontainer(c config.Config) (d devcontainer.Config, err error) {
	file, named := strings.CutPrefix(o.Rootfs, devcontainer.Prefix)
	if !named && o.TrustedDirectory != "" {
		file, named = devcontainer.Find(o.TrustedDirectory)
	}
	if !named {
		return d, &proposal.StopError{Code: codeDevcontainer, Message: "cannot find a devcontainer.json that the maintainers wrote: the workspace may be a pull request's",
			Hint: "name the file of the default branch: --rootfs devcontainer:/path/to/devcontainer.json"}
	}
	data, err := readRegular(file, devcontainer.MaxBytes)
	if err != nil {
		return d, &proposal.StopError{Code: codeDevcontainer, Message: fmt.Sprintf("cannot read %q", file), Hint: "name a regular file of at most 256 KiB", Err: err}
	}
	if d, err = devcontainer.Decode(data); err == nil {
		o.Rootfs = d.Image
	}
	return d, err
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("not a regular file of at most %d bytes", limit)
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// addDevcontainer adds the variables of d to s and, unless c has no set-up, its commands. They
// are decided like those of a configuration file.
func addDevcontainer(s *setup.Setup, c config.Config, d devcontainer.Config) {
	env := maps.Clone(d.Env)
	maps.DeleteFunc(env, func(name, _ string) bool { _, ours := toolEnv()[name]; return ours })
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	maps.Copy(s.Env, env)
	if c.Setup.Mode == config.None {
		return
	}
	c.Setup = config.Setup{Mode: config.Listed, Commands: d.Commands}
	for i, step := range listedSetup(c).Steps {
		step.ID = fmt.Sprintf("devcontainer-%d", i+1)
		step.Why = "postCreateCommand of devcontainer.json"
		s.Steps = append(s.Steps, step)
	}
}
