// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/github"
)

// maxPermissions is about how many people's permissions are read for the day's budget:
// with more authors than that, every run counts.
const maxPermissions = 50

// midnight is the last one before t, in UTC: the day's budget begins then.
func midnight(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// dayRuns returns how much of the day's budget is used: the workflow's runs since midnight,
// by author, without the present one, which is among them. The runs of authors who may
// not start anything do not count: every comment starts the workflow, but must not use the
// budget of those who may. permission reads a person's level.
func dayRuns(by map[github.Author]int, bots []int64, permission func(login string) (string, error)) (int, error) {
	n := -1
	for who, runs := range by {
		counts, err := mayStart(who, len(by), bots, permission)
		if err != nil {
			return 0, err
		}
		if counts {
			n += runs
		}
	}
	return max(0, n), nil
}

// mayStart reports whether who, one of so many authors, could have started a run. It
// returns true for an unknown author.
func mayStart(
	who github.Author, authors int, bots []int64, permission func(login string) (string, error),
) (bool, error) {
	switch {
	case slices.Contains(bots, who.ID) || authors > maxPermissions || who.Login == "":
		return true, nil
	case who.Type != "User":
		return false, nil
	}
	level, err := permission(who.Login)
	return slices.Contains([]string{"write", "maintain", "admin"}, level), err
}

// workflowFile is this workflow's path in the repository, "" when the runner does not
// say, which counts every workflow's runs.
func (j *Job) workflowFile() string {
	ref, _, _ := strings.Cut(j.runner.WorkflowRef, "@")
	return strings.TrimPrefix(ref, j.runner.Repository+"/")
}
