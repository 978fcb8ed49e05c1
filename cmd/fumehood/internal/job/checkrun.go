// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// productName begins the name of each check run.
const productName = "fumehood"

// maxCheckName is how much of a plan's name is shown, in UTF-16 units.
const maxCheckName = 64

// A subject is what a check run with a re-run action is about. It is kept as the external id,
// which only the app that made the check run can set.
type subject struct {
	pr   int
	plan string // the digest of a plan
}

var externalID = pattern.New(`^fumehood:([1-9][0-9]{0,8}):(sha256:[0-9a-f]{64})$`)

func (s subject) String() string { return fmt.Sprintf("fumehood:%d:%s", s.pr, s.plan) }

// subjectOf reads an external id.
func subjectOf(id string) (s subject, ok bool) {
	found := externalID.FindStringSubmatch(id)
	if found == nil {
		return subject{}, false
	}
	s.pr, _ = strconv.Atoi(found[1])
	s.plan = found[2]
	return s, true
}

// readCheck finds the pull request of a check run whose plan a person requests again, and its
// commit, as the API reports them. A skipped that is not "" is the reason to do nothing. The
// check run must be our app's: any other app can give its own the same name and external id.
// A job with a Request has all of this from the job that judged it, and needs no such token.
func (j *Job) readCheck(ctx context.Context) (skipped string, err error) {
	if j.event.Check == nil || j.event.Comment == nil {
		return "", nil
	}
	// GitHub's event has no time. A notice about it is newer than those about earlier comments.
	j.event.Comment.Created = time.Now()
	if j.in.Request != "" {
		r, err := decodeRequest(j.in.Request)
		j.event.Number = r.PR
		return "", err
	}
	check, err := j.gh.CheckRun(ctx, j.event.Check.ID)
	if err != nil {
		return "", err
	}
	author, err := j.account(ctx)
	if err != nil {
		return "", err
	}
	about, ok := subjectOf(check.ExternalID)
	if !ok || check.App == "" || check.App != author.Login || !isApp(author) {
		return "the check run was not created by fumehood with this job's token", nil
	}
	j.check, j.rerun, j.event.Number = check, about, about.pr
	return "", nil
}

// isApp reports whether a is an app other than GitHub Actions, which gets no event about the
// check runs of its workflows.
func isApp(a github.Author) bool {
	return a.Type == "Bot" && strings.HasSuffix(a.Login, "[bot]") && a.Login != github.WorkflowLogin
}

// checks are the check runs for the results: one for each plan, with an action that runs it
// again, if the token is an app's, and else one for all.
func (r Report) checks(ctx context.Context) ([]Report, bool) {
	q := r.Outcome.Request
	author, err := r.Job.account(ctx)
	if err != nil || !isApp(author) || q.PR == 0 || len(r.Outcome.Runs) == 0 {
		return []Report{r}, false
	}
	var each []Report
	for _, l := range r.Outcome.Runs {
		one := r
		one.Outcome.Runs = []PlanRun{l}
		each = append(each, one)
	}
	return each, true
}

// rerunnable names run after its plan, and adds the action that runs the plan again, if there
// was one that could be read.
func (r Report) rerunnable(run github.CheckRun) github.CheckRun {
	l := r.Outcome.Runs[0]
	if l.Name != "" && l.Name != r.Job.in.Name {
		run.Name += " / " + text.Inline(l.Name, maxCheckName)
	}
	id := subject{r.Outcome.Request.PR, l.Report.Run.PlanDigest}.String()
	if _, ok := subjectOf(id); !ok {
		return run
	}
	run.ExternalID = id
	run.Actions = []github.CheckAction{{Label: "Re-run", Description: "Run the plan again on this commit",
		Identifier: action.RerunAction}}
	return run
}
