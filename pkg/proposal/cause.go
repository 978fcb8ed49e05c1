// SPDX-License-Identifier: Apache-2.0

package proposal

// A Cause is why a command could not run for a reason that is not the pull request's:
// what it needs is not in the sandbox. It never makes a success of anything.
//
// Reason, Config and Advice are fumehood's own text, except for names in Config and
// Advice that match a strict grammar. Subject and Evidence are untrusted text.
type Cause struct {
	Kind   string `json:"kind"` // "dependencies", "tool", "toolchain", "network", "service" or "approval"
	Reason string `json:"reason"`
	// Subject is what is missing: a module, a tool, a host or a service.
	Subject string `json:"subject,omitempty"`
	// Evidence is the line of the output that says so, cut.
	Evidence string `json:"evidence,omitempty"`
	// Config are lines to add to the repository's configuration file.
	Config []string `json:"config,omitempty"`
	// Advice is what else can be done.
	Advice string `json:"advice,omitempty"`
	// After is the ID of the needed proposal that could not run, if the command was not
	// started for that reason. The other fields are then those of its Cause.
	After string `json:"after,omitempty"`
}

// CouldNotRun reports whether r has a Cause: it failed, or was not started, for a reason
// that is not the pull request's.
func (r Record) CouldNotRun() bool {
	if r.Cause == nil || r.Result == nil || !r.Runnable() {
		return false
	}
	return r.Result.Status == NotRun || r.Result.Status == Exited && r.Result.ExitCode != 0 ||
		r.Result.Killed == KilledRegistry
}
