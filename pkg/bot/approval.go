// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var fullSHA = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Match reports whether prefix, in the form that approve accepts, is a prefix of
// head, which must be a full SHA-1 or SHA-256. Anything else does not match.
func Match(prefix, head string) bool {
	return commit.MatchString(prefix) && fullSHA.MatchString(head) && strings.HasPrefix(head, prefix)
}

// An Asked is a set of commands waiting for approval: what the comment showed, and
// since when.
type Asked struct {
	HeadSHA    string    `json:"head_sha"`
	PlanDigest string    `json:"plan_digest"`
	Policy     string    `json:"policy_digest"`
	Since      time.Time `json:"since"` // when the comment that shows it was last written
}

// An Approver is the person who approves, and the comment with the approval.
type Approver struct {
	Login   string
	ID      int64
	URL     string
	Created time.Time // from the API
}

// Approve makes the Approval that c, which was read from by's comment, gives to
// asked. head is the pull request's current commit, from the API.
//
// It refuses if the named commit is not the one that waits or is no longer the
// head. It also refuses if the comment that asks was written or changed after the
// approving comment, or in the same second: a person must not approve what they
// have not seen. Policy decides whether by may approve.
func Approve(asked Asked, c Command, by Approver, head string) (proposal.Approval, *Problem) {
	switch {
	case c.Name != "approve":
		return proposal.Approval{}, &Problem{Message: "the comment is not an approval"}
	case asked.HeadSHA == "" || asked.PlanDigest == "" || asked.Policy == "" || asked.Since.IsZero():
		return proposal.Approval{}, &Problem{Message: "nothing is waiting for approval"}
	case !Match(c.SHA, asked.HeadSHA):
		return proposal.Approval{}, &Problem{Message: "the commands that wait for approval are for another commit: " + short(asked.HeadSHA), Text: c.SHA}
	case head != asked.HeadSHA:
		return proposal.Approval{}, &Problem{Message: "the pull request has a newer commit: " + short(head), Text: c.SHA}
	case by.ID <= 0 || by.Created.IsZero():
		return proposal.Approval{}, &Problem{Message: "the author or the time of the approval is unknown"}
	case !asked.Since.Truncate(time.Second).Before(by.Created):
		return proposal.Approval{}, &Problem{Message: "the commands that wait for approval have changed; review them and approve again"}
	}
	return proposal.Approval{
		By: by.Login, ByID: by.ID, URL: by.URL, Time: by.Created,
		HeadSHA: asked.HeadSHA, PlanDigest: asked.PlanDigest, Policy: asked.Policy,
	}, nil
}

// Void returns which of commit, plan and policy differs from the approved one. It
// returns nil if and only if a.Covers(run).
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
			changed = append(changed, fmt.Sprintf("the %s is unknown", part.name))
		case part.approved != part.present:
			changed = append(changed, fmt.Sprintf("the %s has changed (approved %s, now %s)", part.name, short(part.approved), short(part.present)))
		}
	}
	return &Problem{Message: "the approval is no longer valid: " + strings.Join(changed, "; ")}
}

var digest = pattern.New(`^(sha256:)?[0-9a-f]{12,64}$`)

// short shortens a SHA or digest for display. Any other text is not repeated.
func short(s string) string {
	if !digest.MatchString(s) {
		return "unknown"
	}
	return strings.TrimPrefix(s, "sha256:")[:12]
}
