// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"

	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
)

// addDevcontainer adds the variables of d to s and, unless c has no set-up, its commands. They
// are decided like those of a configuration file.
func addDevcontainer(s *setup.Setup, c config.Config, d devcontainer.Config) {
	env := maps.Clone(d.Env)
	maps.DeleteFunc(env, func(name, _ string) bool { _, ours := environment.ToolVariables()[name]; return ours })
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
		step.Why = devcontainer.Why
		s.Steps = append(s.Steps, step)
	}
}
