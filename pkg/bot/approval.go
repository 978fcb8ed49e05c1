// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var fullSHA = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Match reports whether prefix, as approve takes it, names head, which must be a full
// SHA-1 or SHA-256. Anything else matches nothing.
func Match(prefix, head string) bool {
	return commit.MatchString(prefix) && fullSHA.MatchString(head) && strings.HasPrefix(head, prefix)
}

// An Asked is what waits for an approval: what the comment showed, and since when.
type Asked struct {
	HeadSHA    string    `json:"head_sha"`
	PlanDigest string    `json:"plan_digest"`
	Policy     string    `json:"policy_digest"`
	Since      time.Time `json:"since"` // when the comment that shows it was last written
}

// A Voice is who approves, and the comment that says so.
type Voice struct {
	Login   string
	ID      int64
	URL     string
	Created time.Time // as the API says
}

// Approve makes the Approval that c, which was read from v's comment, gives to what
// is asked. head is the pull request's commit as the API says now.
//
// It refuses when the commit named is not the one that waits or is no longer the
// head, and when the question was put or changed after, or in the same second as,
// the comment was written: nobody approves what they have not seen. Whether v may
// approve is for policy to say.
func Approve(asked Asked, c Command, v Voice, head string) (proposal.Approval, *Problem) {
	switch {
	case c.Name != "approve":
		return proposal.Approval{}, &Problem{Message: "the comment approves nothing"}
	case asked.HeadSHA == "" || asked.PlanDigest == "" || asked.Policy == "" || asked.Since.IsZero():
		return proposal.Approval{}, &Problem{Message: "nothing waits for an approval"}
	case !Match(c.SHA, asked.HeadSHA):
		return proposal.Approval{}, &Problem{Message: "what waits for an approval speaks of another commit: " + short(asked.HeadSHA), Text: c.SHA}
	case head != asked.HeadSHA:
		return proposal.Approval{}, &Problem{Message: "the pull request has moved on since: its commit is now " + short(head), Text: c.SHA}
	case v.ID <= 0 || v.Created.IsZero():
		return proposal.Approval{}, &Problem{Message: "it is not known who approves, or when"}
	case !asked.Since.Truncate(time.Second).Before(v.Created):
		return proposal.Approval{}, &Problem{Message: "what waits for an approval has changed since; read it and approve again"}
	}
	return proposal.Approval{
		By: v.Login, ByID: v.ID, URL: v.URL, Time: v.Created,
		HeadSHA: asked.HeadSHA, PlanDigest: asked.PlanDigest, Policy: asked.Policy,
	}, nil
}

// Void says which of commit, plan and policy is not the one that a approved. It is nil
// exactly when a.Covers(run).
func Void(a proposal.Approval, run proposal.Run) *Problem {
	if a.Covers(run) {
		return nil
	}
	var changed []string
	for _, part := range []struct{ name, approved, present string }{
		{"commit", a.HeadSHA, run.HeadSHA}, {"plan", a.PlanDigest, run.PlanDigest}, {"policy", a.Policy, run.Policy},
	} {
		switch {
		case part.approved == "" || part.present == "":
			changed = append(changed, fmt.Sprintf("the %s is not known", part.name))
		case part.approved != part.present:
			changed = append(changed, fmt.Sprintf("the %s is another (approved %s, now %s)", part.name, short(part.approved), short(part.present)))
		}
	}
	return &Problem{Message: "the approval no longer holds: " + strings.Join(changed, "; ")}
}

var digest = regexp.MustCompile(`^(sha256:)?[0-9a-f]{12,64}$`)

// short shortens a SHA or digest for people. What is neither is not repeated.
func short(s string) string {
	if !digest.MatchString(s) {
		return "unknown"
	}
	return strings.TrimPrefix(s, "sha256:")[:12]
}
