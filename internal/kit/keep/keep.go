// SPDX-License-Identifier: Apache-2.0

// Package keep has the rule for what later runs of other code use: results of commands and
// layers of set-up.
package keep

import "encoding/json"

// IsOwnMachine reports whether a process with this environment runs for a person and not in CI, so that
// layers are kept unless it says otherwise. The variables do not pass sudo, unless sudo is configured to.
func IsOwnMachine(getenv func(string) string) bool {
	ci := getenv("CI")
	return getenv("GITHUB_ACTIONS") != "true" && (ci == "" || ci == "false")
}

// IsAllowed reports whether a process with this environment may keep what its run made. In a job
// of GitHub Actions that is so only on a push to the default branch, which runs merged code; an
// event that cannot be read is none. Elsewhere the caller decides. read reads the event's file.
//
// It trusts the runner's variables, which earlier steps of the same job can change.
func IsAllowed(getenv func(string) string, read func(string) ([]byte, error)) bool {
	if getenv("GITHUB_ACTIONS") != "true" {
		return true
	}
	var event struct {
		Repository struct {
			DefaultBranch string `json:"default_branch"`
		} `json:"repository"`
	}
	data, err := read(getenv("GITHUB_EVENT_PATH"))
	if err != nil || json.Unmarshal(data, &event) != nil || event.Repository.DefaultBranch == "" {
		return false
	}
	return getenv("GITHUB_EVENT_NAME") == "push" && getenv("GITHUB_REF") == "refs/heads/"+event.Repository.DefaultBranch
}
