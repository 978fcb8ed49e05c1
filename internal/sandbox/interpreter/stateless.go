// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A tool is the program of a language whose code keeps no state.
type tool struct {
	program, debian string // debian is the package that has the program
	options         []string
}

var stateless = map[string]tool{
	"r":    {"Rscript", "r-base-core", []string{"-e"}},
	"ruby": {"ruby", "ruby", []string{"-e"}},
	"deno": {"deno", "", []string{"eval", "--ext=ts"}},
	"java": {"java", "default-jdk-headless", nil}, // which runs a file only
}

// Stateless returns the languages whose code keeps no state, sorted: each code is a command of its own.
func Stateless() []string { return slices.Sorted(maps.Keys(stateless)) }

// CommandOf returns p with the command that runs its Code in place of that and of Language. It reports false for
// languages other than Stateless. Policy decides it as any other command: it reads the code as words of the command.
func CommandOf(p proposal.Proposal) (proposal.Proposal, bool) {
	t, found := stateless[p.Language]
	if !found {
		return p, false
	}
	code := p.Code
	p.Code, p.Language = "", ""
	if t.options != nil {
		p.Argv = slices.Concat([]string{t.program}, t.options, []string{code})
		return p, true
	}
	name := fmt.Sprintf("snippet-%.8x", sha256.Sum256([]byte(code))) // the same code has the same file
	p.Run = fmt.Sprintf("cat > /tmp/%[1]s.java <<'%[1]s' && %[2]s /tmp/%[1]s.java\n%[3]s\n%[1]s\n", name, t.program, code)
	return p, true
}

// MissingError returns an error (interpreter.missing) if r, of a command that CommandOf returned for a language, has
// not run because the language's program is not there; else nil.
func MissingError(language string, r proposal.Record) error {
	t, found := stateless[language]
	if !found || r.Result == nil || r.Result.ExitCode != 127 ||
		(r.Cause == nil || r.Cause.Subject != t.program) && !strings.HasPrefix(r.Result.Detail, "cannot start") {
		return nil // the code may have ended like that itself
	}
	how := "install it below /usr on the host of the sandbox"
	if t.debian != "" {
		how = "install it on the host of the sandbox, as with Debian's package " + t.debian
	}
	return &proposal.StopError{Code: "interpreter.missing",
		Message: fmt.Sprintf("the code did not run: the sandbox has no %s for the language %s", t.program, language),
		Hint:    how + ", or start fumehood with --rootfs and an image that has it"}
}
