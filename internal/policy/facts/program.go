// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A program is a tool by its plain name, and the place of its file: a place, or lookup,
// system, function or none.
type program struct{ Name, Place string }

var versioned = pattern.New(`^(python|pip|gcc|g\+\+|clang|clang\+\+|ruby|php|node|lua|perl|java|clang-format|clang-tidy|gdb|lldb|lldb-server|perf|bpftrace)[-_]?([0-9]+)(\.[0-9]+)*$`)

var systemDirs = map[string]bool{"/usr/bin": true, "/bin": true, "/usr/local/bin": true, "/usr/local/go/bin": true}

// postgresDirs are where distributions keep PostgreSQL's programs.
var postgresDirs = pattern.New(`^/usr/(lib/postgresql/|pgsql-)[0-9]{1,3}/bin$`)

// ProgramOf is the tool that c runs. Another path is another program, so a file called
// ./cat is never taken for cat.
func ProgramOf(c proposal.Command, workspace Workspace) program {
	switch name := c.Program; {
	case name == "":
		return program{"", "none"}
	case c.Function:
		return program{name, "function"}
	case !strings.Contains(name, "/"):
		return program{ToolName(name), "lookup"}
	case strings.HasPrefix(name, "/"):
		clean := path.Clean(name)
		if dir := path.Dir(clean); clean == name && (systemDirs[dir] || postgresDirs.MatchString(dir)) {
			return program{ToolName(path.Base(clean)), "system"}
		}
		return program{clean, ResolvePlace(name, true, []string{workspace.Path}, workspace)}
	default:
		return program{path.Clean("./" + name), ResolvePlace(name, true, []string{workspace.Path}, workspace)}
	}
}

// ToolName is the plain name of a tool: python3 for python3.11.
func ToolName(name string) string {
	if name == "python" || name == "pip" {
		return name + "3"
	}
	if m := versioned.FindStringSubmatch(name); m != nil {
		if m[1] == "python" || m[1] == "pip" {
			return m[1] + "3"
		}
		return m[1]
	}
	return name
}
