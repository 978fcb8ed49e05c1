// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/comment"
)

// attempted is the name of an artifact that a run's attempt uploads. From the second attempt
// on its number follows, so that a job that is run again does not overwrite the evidence of
// its first attempt. No input can contain the separator.
func attempted(name string, attempt int) string {
	if name == "" || attempt < 2 {
		return name
	}
	return name + "@" + strconv.Itoa(attempt)
}

// attemptOf splits a name that attempted returned; ok is false for any other.
func attemptOf(full string) (name string, attempt int, ok bool) {
	name, digits, found := strings.Cut(full, "@")
	if !found {
		return full, 1, true
	}
	n, err := strconv.Atoi(digits)
	return name, n, err == nil && n > 1 && attempted(name, n) == full
}

// uploaded returns the artifacts of a run until the stamp's attempt, by name without the
// attempt: of each the one of the newest attempt, because a job that succeeded is not run
// again with the others. Any job of the run chooses the names of its artifacts. Those of
// later attempts, and those that were not uploaded in the attempt that they name, as far as
// the start of the newest attempt shows it, are left out.
func (j *Job) uploaded(ctx context.Context, s comment.Stamp) (map[string]github.Artifact, error) {
	all, err := j.artifactsOfRun(ctx, s.RunID)
	if err != nil {
		return nil, err
	}
	var latest github.WorkflowRun
	if s.Attempt > 1 {
		if latest, err = j.gh.WorkflowRun(ctx, s.RunID); err != nil {
			return nil, err
		}
	}
	best, attempts := map[string]github.Artifact{}, map[string]int{}
	for _, a := range all {
		name, attempt, ok := attemptOf(a.Name)
		if !ok || a.Expired || attempt > s.Attempt {
			continue
		}
		if !within(a, attempt, latest) {
			j.console.PrintWarning(fmt.Sprintf("artifact %q was not uploaded in the attempt that it names, and is ignored", a.Name))
			continue
		}
		if old, there := best[name]; !there || attempt > attempts[name] || attempt == attempts[name] && a.ID > old.ID {
			best[name], attempts[name] = a, attempt
		}
	}
	return best, nil
}

// within reports whether a can be of this attempt: what the newest attempt uploaded is not
// older than its start, and what others uploaded is.
func within(a github.Artifact, attempt int, latest github.WorkflowRun) bool {
	if latest.Started.IsZero() || latest.Attempt < 2 {
		return true
	}
	return a.Created.Before(latest.Started) == (attempt < latest.Attempt)
}
