// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Set-up installs tools, such as pytest. If it fails, the machine may have others with these names: what they
// find is not about the project's versions, and a success would be worth nothing. A proposal that names such a
// tool, or selects the environment of set-up, does not run then. One in which a program starts such a tool says so.

// failedSetupOf returns the id of a command of set-up among before that did not succeed and installs the tools
// that r names, or "".
func failedSetupOf(before []proposal.Record, r proposal.Record) string {
	if r.Proposal.Origin != "" || !slices.ContainsFunc(before, isFailedSetup) {
		return ""
	}
	for _, touch := range findInstalledTouches(r) {
		dir := touch.Dir
		for !slices.ContainsFunc(before, func(b proposal.Record) bool { return installsIn(b, touch.Language, dir) }) &&
			dir != "." {
			dir = path.Dir(dir)
		}
		for _, b := range before {
			own := cleanDir(b.Proposal.Cwd)
			isBelow := touch.Below && strings.HasPrefix(own+"/", strings.TrimPrefix(touch.Dir+"/", "./"))
			if isFailedSetup(b) &&
				(installsIn(b, touch.Language, dir) || isBelow && installsIn(b, touch.Language, own)) {
				return b.Proposal.ID
			}
		}
	}
	return ""
}

func isFailedSetup(r proposal.Record) bool {
	return r.Proposal.Origin == proposal.OriginSetup && (r.Result == nil || !r.Result.Succeeded())
}

// installsIn reports whether r is a command of set-up that installs packages of a language in a directory.
func installsIn(r proposal.Record, language, dir string) bool {
	return r.Proposal.Origin == proposal.OriginSetup && cleanDir(r.Proposal.Cwd) == dir &&
		slices.ContainsFunc(r.Analysis.Commands,
			func(c proposal.Command) bool { return scopeOf(c).language == language })
}

// scopeOf returns the scope of the tool that c runs, the zero value for another program.
func scopeOf(c proposal.Command) toolScope {
	tool := facts.ToolName(path.Base(c.Program))
	if module := findPythonModule(tool, c.Args); module != "" {
		tool = module
	}
	return scopes[tool]
}

// findInstalledTouches returns where r uses tools that set-up installs.
func findInstalledTouches(r proposal.Record) (touches []setup.Touch) {
	grammars, err := facts.ShippedGrammars()
	if err != nil {
		return nil // and nothing is allowed
	}
	for _, found := range selectsMade.FindAllStringSubmatch(r.Analysis.Canonical, 8) {
		language := setup.Python
		if strings.HasPrefix(found[1], "node") {
			language = setup.Node
		}
		touches = append(touches, setup.Touch{Dir: ".", Below: true, Language: language})
	}
	dirs := facts.TrackCwds(r.Proposal.Cwd, insideSandbox, r.Analysis.Commands)
	for _, c := range r.Analysis.Commands {
		cwds := dirs.EnterCommand(c)
		if scope := scopeOf(c); scope.installed && isInstalled(c) {
			touches = append(touches, findTouches(grammars, c, cwds)...)
		}
		dirs.RecordCommand(c)
	}
	return touches
}

// selectsMade matches a PATH with the programs that set-up installs, as of source .venv/bin/activate.
var selectsMade = pattern.New(`\bPATH=[^\s;|&]*?\b(node_modules/\.bin|v?env/bin)\b`)

// needsText says that a proposal needs an earlier one. Package diagnose reads it.
func needsText(id string) string { return fmt.Sprintf("it needs %q, which did not succeed", id) }

// noteMachineTools says in the result of r, which succeeded, that it ran a tool of the machine although set-up,
// which should have installed that, did not succeed.
func noteMachineTools(before []proposal.Record, r *proposal.Record) {
	if r.Proposal.Origin != "" || !r.Result.Succeeded() || r.Result.Observations == nil ||
		!slices.ContainsFunc(before, isFailedSetup) {
		return
	}
	for _, p := range r.Result.Observations.Programs {
		name := path.Base(p.Name)
		scope := scopes[facts.ToolName(name)]
		i := slices.IndexFunc(before, func(b proposal.Record) bool {
			return isFailedSetup(b) && installsIn(b, scope.language, cleanDir(b.Proposal.Cwd))
		})
		if scope.installed && p.Runs > 0 && p.Layer == proposal.LayerRootfs && !isMade.MatchString(p.Script) && i >= 0 {
			r.Result.Detail = fmt.Sprintf("%q did not succeed: the %s that ran is not the one that it installs",
				before[i].Proposal.ID, name)
			return
		}
	}
}
