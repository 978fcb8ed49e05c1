// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// BaseCommit returns the base of the pull request whose event started this job. Nothing of
// the pull request's own text is read. Its error is a *proposal.StopError.
func BaseCommit(getenv func(string) string) (string, error) {
	if getenv("GITHUB_ACTIONS") != "true" {
		return "", noBase("base: works only in a job of GitHub Actions, where it is the base of the pull request")
	}
	runner, err := ReadRunner(getenv)
	if err != nil {
		return "", err
	}
	event, err := LoadEvent(runner)
	if err != nil {
		return "", err
	}
	if event.PR == nil || event.PR.Base.SHA == "" {
		return "", noBase(fmt.Sprintf("base: the event %s has no base commit", runner.EventName))
	}
	return event.PR.Base.SHA, nil
}

func noBase(message string) error {
	return &proposal.StopError{Code: "policy.source", Message: message,
		Hint: "name a commit or a branch: git:origin/main:DIR"}
}
