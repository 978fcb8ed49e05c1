// SPDX-License-Identifier: Apache-2.0

// Package diagnose recognizes commands that could not run for a reason that is not the
// pull request's: dependencies, a tool, the network or a service are missing in the
// sandbox.
//
// It is pure: no I/O, and the same records give the same causes. Records fills in the
// causes of a run; a reader of an untrusted report computes them again.
//
// # Promises
//
// A Cause is never given for a command that succeeded, and except for the maintainer's
// set-up not for one that reached a limit, was killed by a signal, or was refused a program
// by policy. It never makes a success of a command.
//
// Output alone is never enough, except for the maintainer's set-up. Each cause also needs what gVisor's kernel
// or the gateway recorded, and the record must be complete:
//
//   - a missing program: exit code 127, or the same from make or pnpm, and no program of
//     that name was started;
//   - a toolchain that is too old: a program of it was started from the read-only root file
//     system, and the repository asks for a newer one at the base of the pull request, too;
//   - missing dependencies: the package manager or interpreter that prints the message
//     was started from the read-only root file system, and no set-up command of the same
//     run has installed dependencies of that kind;
//   - a missing network: a lookup or a connection was tried and did not succeed;
//   - a missing service: a connection to its port or socket on this machine failed, and
//     the command itself did not listen there.
//
// What this machine lacks (a program, a toolchain, packages) is no Cause of a command that succeeds
// without it on the base of the pull request: the change needs it, or has a typing mistake.
//
// A configured service that fails to start is a Cause too: its command is fumehood's own. So is an
// approval that is missing, for a command that needs one which waits for it.
//
// Except for a toolchain that is too old, the output must not report any other failure: a failed assertion, a
// compiler error, an error that has another reason, or more failed tests than the cause explains. Output of
// which a part is missing gives only causes of the first kind.
//
// # Limits
//
// Code of the pull request can print these messages, start these programs and try these
// connections on purpose. It then turns its own failure into "could not run". It gains
// little: the same code could exit with 0. The outcome is counted, shown, and never a
// success, and the action's input fail-on can make it fail the job.
//
// A set-up command of the maintainer's has a Cause however it failed: it is no test. A
// command that fails because it misses what that set-up installs has the same Cause. Neither has one
// if the same set-up succeeds on the base of the pull request and each host answered.
//
// A misspelled tool or package looks like one that is not installed. A Python module
// counts as third-party only if it is in a list of well-known modules, because the
// package does not see the workspace.
package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// MaxEvidence is the maximum size in bytes of a Cause's Evidence, and of its Subject.
const MaxEvidence = 240

// DiagnoseRecords returns records with the Cause of each. Causes that they had are replaced. unmet are the
// toolchains that do not meet what the repository asks for, as in Run.Unmet.
func DiagnoseRecords(records []proposal.Record, unmet []proposal.Unmet) []proposal.Record {
	list := slices.Clone(records)
	for i := range list {
		found := causeOf(list[i], unmet)
		if list[i].Cause = ofSetup(list[i], found); list[i].Cause == nil {
			list[i].Cause = afterSetup(list[:i], found)
		}
		adviseService(list[:i], list[i].Cause)
		if list[i].Cause == nil {
			list[i].Cause = causeFromNeeds(list[:i], list[i])
		}
		adviseManifest(list[i].Cause)
	}
	return list
}

// CauseOf returns why r could not run, or nil. It does not consider other records of the run.
func CauseOf(r proposal.Record, unmet []proposal.Unmet) *proposal.Cause {
	c := causeOf(r, unmet)
	adviseManifest(c)
	return c
}

// causeOf is Of, with the registry that is missing in Config.
func causeOf(r proposal.Record, unmet []proposal.Unmet) *proposal.Cause {
	if r.Proposal.Origin == proposal.OriginService {
		return notStarted(r)
	}
	c, ok := newCommand(r, unmet)
	if !ok {
		return nil
	}
	for _, find := range []func(*command) *proposal.Cause{oldToolchain, missingProgram, missingVersion, missingPackages,
		missingService, missingNetwork} {
		cause := find(c)
		if cause == nil || IsOfMachine(*cause) && c.Base != nil && c.Base.Verdict == proposal.BasePasses {
			continue
		}
		cause.Subject, cause.Evidence = clipEvidence(cause.Subject), clipEvidence(cause.Evidence)
		return cause
	}
	return nil
}

func clipEvidence(s string) string {
	if s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD"); len(s) > MaxEvidence {
		s = strings.ToValidUTF8(s[:MaxEvidence-3], "") + "…"
	}
	return s
}

// hasInstalledPackages reports whether a set-up command of the run has already installed packages
// from a registry of config. What is missing then is missing in the pull request.
func hasInstalledPackages(before []proposal.Record, config []string) bool {
	for _, r := range before {
		if r.Proposal.Phase != proposal.PhaseSetup || r.Result == nil || !r.Result.Succeeded() ||
			r.Decision.Grant == nil {
			continue
		}
		for _, entry := range r.Decision.Grant.Network {
			if name, ok := strings.CutPrefix(entry, "registry:"); ok &&
				slices.Contains(config, registriesConfig(name)) {
				return true
			}
		}
	}
	return false
}

// causeFromNeeds returns the Cause of the first proposal that r needs and that could not run or waits for
// approval, if r was not started. Each other one that it needs must have succeeded, could not run or
// wait, too. What it needs of set-up only its Detail says.
func causeFromNeeds(before []proposal.Record, r proposal.Record) *proposal.Cause {
	if !r.Runnable() || r.Result == nil || r.Result.Status != proposal.NotRun ||
		!strings.HasPrefix(r.Result.Detail, "it needs ") {
		return nil
	}
	var found *proposal.Cause
	needs := slices.Clone(r.Proposal.Needs)
	for _, b := range before {
		if b.Proposal.Origin == proposal.OriginSetup &&
			strings.HasPrefix(r.Result.Detail, fmt.Sprintf("it needs %q,", b.Proposal.ID)) {
			needs = append(needs, b.Proposal.ID)
		}
	}
	for _, id := range needs {
		i := slices.IndexFunc(before, func(b proposal.Record) bool { return b.Proposal.ID == id })
		if i < 0 {
			return nil
		}
		var c proposal.Cause
		switch need := before[i]; {
		case need.Cause != nil:
			c = *need.Cause
		case need.Outcome() == proposal.OutcomeAsked:
			c = proposal.Cause{Kind: causeApproval, Reason: noApproval}
		case need.Outcome() == proposal.OutcomeSucceeded:
			continue
		default:
			return nil
		}
		if c.After = id; found == nil {
			found = &c
		}
	}
	return found
}

// The reasons, for people. A report groups commands by them.
const (
	noPackages    = "dependencies are not installed"
	noSetup       = "set-up could not install the dependencies"
	noEnvironment = "pip needs a virtual environment"
	noTool        = "a tool is not installed"
	noVersion     = "the installed toolchain is too old"
	noNetwork     = "the sandbox has no network"
	noHost        = "a host cannot be reached"
	noService     = "a service is not running"
	noStart       = "a service did not start"
	noApproval    = "what it needs waits for approval"
)

// setup begins a Config that is only about set-up: see adviseManifest.
const setup = "setup: auto"

// Manifests are the files in which a project names its dependencies from a registry, and from which
// set-up finds what to install.
var Manifests = findManifests()

func findManifests() map[string]string {
	found := map[string]string{}
	for _, r := range policies.Registries() {
		if r.Manifest != "" {
			found[r.Name] = r.Manifest
		}
	}
	return found
}

// releases is the registry of release assets, which set-up reads only where the configuration names it.
const (
	releases       = "github-releases"
	releasesAdvice = "If a package fetches a prebuilt binary from a release of GitHub there, set-up can read release assets: " +
		"list `github-releases` with the other registries in `.github/fumehood.yml`, as in `registries: [npm, github-releases]`."
)

// adviseManifest replaces lines of configuration that say only what is the default, which change
// nothing, by what a project does to have the packages of the registry in them.
func adviseManifest(c *proposal.Cause) {
	if c == nil || len(c.Config) == 0 || c.Config[0] != setup {
		return
	}
	advice := ""
	for name, manifest := range Manifests {
		if slices.Contains(c.Config, registriesConfig(name)) {
			advice = "Set-up installs what `" + manifest +
				"` names: name it there. It does not if `.github/fumehood.yml` has `setup: none`, or `registries` without `" + name + "`: remove that."
		}
	}
	c.Config = nil
	if c.Advice == "" {
		c.Advice = advice
	}
}

func registriesConfig(name string) string { return "registries: [" + name + "]" }

// packagesCause is the Cause that dependencies from a registry are not installed.
func packagesCause(registry, subject, line string) *proposal.Cause {
	return &proposal.Cause{Kind: causeDependencies, Reason: noPackages, Subject: subject, Evidence: line,
		Config: []string{setup, registriesConfig(registry)}}
}
