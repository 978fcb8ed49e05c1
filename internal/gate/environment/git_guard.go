// SPDX-License-Identifier: Apache-2.0

package environment

import "fmt"

// guardedConfig is git configuration that a repository must not change for commands
// that run none of its code. It omits settings that name a program under an arbitrary
// key (textconv, clean and smudge filters, merge drivers), and diff.external, which
// cannot be emptied: git reads those, and fumehood.exec refuses the program.
var guardedConfig = [][2]string{
	{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.pager", "cat"}, {"core.editor", "false"}, {"sequence.editor", "false"},
	{"core.sshCommand", "ssh"}, {"core.askPass", ""}, {"core.gitProxy", "none"}, {"credential.helper", ""}, {"protocol.ext.allow", "never"},
	{"safe.bareRepository", "explicit"}, {"log.showSignature", "false"}, {"commit.gpgSign", "false"}, {"tag.gpgSign", "false"},
}

// gitGuard returns the variables that pass guardedConfig to git. They override every
// file. A command may override or remove them (git -c, env -i): then fumehood.exec refuses
// what the configuration names.
func gitGuard() map[string]string {
	vars := map[string]string{"GIT_CONFIG_COUNT": fmt.Sprint(len(guardedConfig))}
	for i, c := range guardedConfig {
		vars[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)], vars[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)] = c[0], c[1]
	}
	return vars
}
