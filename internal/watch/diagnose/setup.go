// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// setupAdvice is the same for all commands of a run, so that a report shows it once.
const setupAdvice = "See the output of set-up. To run other commands, list them as `setup:` in `.github/fumehood.yml`."

// ofSetup returns the Cause of a set-up command that failed, in whatever way, or nil. found
// is that of its output. The maintainer's set-up is no test: its failure is not shown as
// one, whatever the reason, unless it succeeds on the base of the pull request and no host was
// out of reach: the change broke it. Commands that fail in other ways than by missing dependencies
// still count as failed.
func ofSetup(r proposal.Record, found *proposal.Cause) *proposal.Cause {
	if r.Proposal.Origin != proposal.OriginSetup || !r.Runnable() || r.Result == nil || r.Result.Succeeded() ||
		r.Result.Status == proposal.NotRun || r.Result.Status == proposal.SandboxFailed {
		return nil
	}
	switch host := findUnanswered(r); {
	case found != nil && (found.Kind == causeTool || found.Kind == causeToolchain):
		return found // it says what to install
	case registryOf(host) != "" || found != nil && found.Kind == causeNetwork:
		if found == nil || found.Kind != causeNetwork {
			found = &proposal.Cause{Evidence: clipEvidence(complaintLine(*r.Result))}
		}
		return &proposal.Cause{Kind: causeNetwork, Reason: noHost, Subject: clipEvidence(cmp.Or(found.Subject, host)),
			Evidence: found.Evidence,
			Advice:   "Set-up needs it. Check that the machine that runs fumehood can reach it, and run again."}
	case BrokenByChange(r):
		return nil
	}
	if host := findRefusedRelease(r); host != "" {
		return &proposal.Cause{Kind: causeNetwork, Reason: noHost, Subject: clipEvidence(host),
			Evidence: clipEvidence(complaintLine(*r.Result)), Advice: releasesAdvice}
	}
	return &proposal.Cause{Kind: causeDependencies, Reason: noSetup, Evidence: clipEvidence(complaintLine(*r.Result)),
		Advice: setupAdvice}
}

// IsComparableSetup reports whether a run of r on the base can show that the change broke it: r is a
// set-up command that failed by itself, and each host that it asked for answered.
func IsComparableSetup(r proposal.Record) bool {
	return r.Proposal.Origin == proposal.OriginSetup && r.Runnable() && r.Result != nil && r.Result.EndedByItself() &&
		r.Result.Retried == nil && findUnanswered(r) == ""
}

// BrokenByChange reports whether r is such a command, and succeeds on the base.
func BrokenByChange(r proposal.Record) bool {
	return IsComparableSetup(r) && r.Base != nil && r.Base.Verdict == proposal.BasePasses
}

// findUnanswered returns the first host that r asked for and that did not answer, or "".
func findUnanswered(r proposal.Record) string {
	if r.Result.Observations == nil {
		return ""
	}
	for _, reach := range r.Result.Observations.Network {
		waiting := reach.Code == "cut" && r.Result.Killed == proposal.KilledRegistry
		if isUnanswered(reach) || waiting {
			return cmp.Or(reach.Name, reach.Address)
		}
	}
	return ""
}

// findRefusedRelease returns the first host of GitHub's release assets that r was refused, or "".
func findRefusedRelease(r proposal.Record) string {
	if r.Result.Observations == nil || slices.Contains(r.Proposal.Network, "registry:"+releases) {
		return ""
	}
	for _, reach := range r.Result.Observations.Network {
		if reach.Refused && registryOf(reach.Name) == releases {
			return reach.Name
		}
	}
	return ""
}

// afterSetup returns c, the Cause of a command that needs a registry's packages, as it is
// after the set-up commands among before. If one that reads the registry did not succeed,
// that is the reason. If all did, or the change broke one, what is missing is missing in the pull
// request: nil.
func afterSetup(before []proposal.Record, c *proposal.Cause) *proposal.Cause {
	if c != nil && c.Kind == causeTool {
		return afterMissingTool(before, c)
	}
	if c == nil || c.Kind == causeToolchain || c.Kind == causeService {
		return c
	}
	i := slices.IndexFunc(before, func(r proposal.Record) bool {
		return r.Cause != nil && r.Result != nil &&
			isRegistrySetup(r, c.Config)
	})
	switch {
	case i >= 0:
		merged := *before[i].Cause
		merged.Evidence = c.Evidence
		if merged.Kind == causeNetwork { // the Subject is the host that set-up needs
			merged.After = cmp.Or(merged.After, before[i].Proposal.ID)
		} else {
			merged.After, merged.Subject = "", c.Subject
		}
		if c.Kind == causeNetwork && merged.Kind != causeNetwork {
			merged.Subject = "" // the registry's host
		}
		return &merged
	case c.Kind == causeDependencies &&
		slices.ContainsFunc(before, func(r proposal.Record) bool {
			return BrokenByChange(r) &&
				isRegistrySetup(r, c.Config)
		}):
		return nil
	case c.Kind == causeDependencies && hasInstalledPackages(before, c.Config):
		return nil
	}
	return c
}

// afterMissingTool returns c, the Cause that a tool is not installed, as it is after set-up. If a command of
// set-up was to run that tool and could not run either, what should have installed it is the reason.
func afterMissingTool(before []proposal.Record, c *proposal.Cause) *proposal.Cause {
	for _, r := range before {
		runsTool := slices.ContainsFunc(r.Analysis.Commands,
			func(k proposal.Command) bool { return k.Program == c.Subject })
		if r.Proposal.Origin == proposal.OriginSetup && runsTool && r.Cause != nil && r.Cause.After != "" {
			merged := *r.Cause
			merged.Evidence = c.Evidence
			return &merged
		}
	}
	return c
}

// isRegistrySetup reports whether r is a set-up command that requests a registry of config.
func isRegistrySetup(r proposal.Record, config []string) bool {
	return r.Proposal.Phase == proposal.PhaseSetup && slices.ContainsFunc(r.Proposal.Network, func(entry string) bool {
		name, ok := strings.CutPrefix(entry, "registry:")
		return ok && slices.Contains(config, registriesConfig(name))
	})
}

var (
	complains = pattern.New(`(?i)\berr(?:or|_pnpm\w*)?\b|cannot|could not|unable|denied|forbidden|not found|no such`)
	stale     = pattern.New(`^npm (?:error|ERR!) (?:Missing|Invalid): `)
	chatter   = pattern.New(`(?i)^\S*\s*warn|npm (?:error|ERR!)(?: (?:code|path|command|A complete log|errno|syscall)\b|$)`)
)

// complaintLine returns the line of a failed command's output that most likely says why: the
// first that names what is missing in a lock file, the first that names an error, or the last one.
func complaintLine(res proposal.Result) string {
	first, last := "", ""
	for _, s := range []proposal.Stream{res.Stderr, res.Stdout} {
		for _, piece := range streamParts(s) {
			for line := range strings.Lines(string(colors.ReplaceAll(piece[max(0, len(piece)-maxScanned):], nil))) {
				line = strings.TrimSpace(line[:min(len(line), maxLine)])
				if stale.MatchString(line) {
					return line
				}
				if first == "" && complains.MatchString(line) && !chatter.MatchString(line) {
					first = line
				}
				if line != "" {
					last = line
				}
			}
		}
	}
	return cmp.Or(first, last)
}
