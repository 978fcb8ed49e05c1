// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

var steeringNames = map[string]bool{
	"GCONV_PATH": true, "GLIBC_TUNABLES": true, "LOCPATH": true, "NLSPATH": true,
	"BASH_ENV": true, "ENV": true, "SHELLOPTS": true, "BASHOPTS": true, "PS4": true, "ZDOTDIR": true,
	"PYTHONPATH": true, "PYTHONHOME": true, "PYTHONSTARTUP": true, "PYTHONINSPECT": true, "PYTHONUSERBASE": true, "PYTHONBREAKPOINT": true,
	"NODE_OPTIONS": true, "NODE_PATH": true, "PERL5OPT": true, "PERL5LIB": true, "PERL5DB": true, "RUBYOPT": true, "RUBYLIB": true,
	"JAVA_TOOL_OPTIONS": true, "_JAVA_OPTIONS": true, "JDK_JAVA_OPTIONS": true, "JDK_JAVAC_OPTIONS": true, "CLASSPATH": true,
	"GIT_EXEC_PATH": true, "GIT_SSH": true, "GIT_SSH_COMMAND": true, "GIT_EXTERNAL_DIFF": true, "GIT_PROXY_COMMAND": true, "GIT_ASKPASS": true,
}

// IsSteeringVariable reports whether a variable of this name can make a loader or an interpreter run something
// that its arguments do not name.
func IsSteeringVariable(name string) bool {
	return steeringNames[name] || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "BASH_FUNC_")
}
