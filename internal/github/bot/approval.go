// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ShownDigits is how many digits of an ApprovalQuestion's digest a comment shows, and the fewest that
// approve takes.
const ShownDigits = 8

// An ApprovalQuestion is what a person is asked to approve: the plans of one commit that a comment shows as
// waiting, and the policy that asks.
type ApprovalQuestion struct {
	// Nonce is random, and chosen when the plans are shown. Without it, the author of two plans
	// could choose them so that their digests begin with the same digits, and replace the one
	// that a person read by the other.
	Nonce   string      `json:"nonce"`
	HeadSHA string      `json:"head_sha"`
	Plans   []AskedPlan `json:"plans"` // in the order in which they are shown
}

// An AskedPlan is one plan of an ApprovalQuestion.
type AskedPlan struct {
	Name       string `json:"name"` // "" for the only one
	PlanDigest string `json:"plan_digest"`
	Policy     string `json:"policy_digest"`
}

// Digest returns 64 hex digits that identify a. It returns "" if nothing waits or if a part is
// unknown: then there is nothing that an approval could name.
func (a ApprovalQuestion) Digest() string {
	if a.Nonce == "" || a.HeadSHA == "" || len(a.Plans) == 0 {
		return ""
	}
	for _, p := range a.Plans {
		if p.PlanDigest == "" || p.Policy == "" {
			return ""
		}
	}
	data, err := json.Marshal(a)
	if err != nil {
		panic("bot: internal error: an ApprovalQuestion has no JSON: " + err.Error())
	}
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte("fumehood.approval/v1\n"), data...)))
}

// Digits returns the digits that a comment shows, or "" if a has no digest.
func (a ApprovalQuestion) Digits() string {
	if d := a.Digest(); d != "" {
		return d[:ShownDigits]
	}
	return ""
}

// ApproveCommand is the command that approves what the digits identify.
func ApproveCommand(digits string) string { return word + " approve " + digits }

// rerunCommand decides the plan again, so that a comment shows what waits now.
const rerunCommand = word + " rerun"

// An Approver is the person who approves, and the comment with the approval.
type Approver struct {
	Login   string
	ID      int64
	URL     string
	Created time.Time // from the API
}

// ChooseQuestion returns the number of the question that c's digits name, of those that a comment shows.
// Without one, the Problem has the commands that approve what waits now.
func ChooseQuestion(shown []ApprovalQuestion, c Command) (int, *Problem) {
	p := &Problem{Purpose: "Review the commands that wait now. To approve them"}
	for i, a := range shown {
		digest := a.Digest()
		if digest == "" {
			continue
		}
		if approvalDigits.MatchString(c.Digits) && strings.HasPrefix(digest, c.Digits) {
			return i, nil
		}
		p.Write = append(p.Write, ApproveCommand(a.Digits()))
	}
	switch {
	case len(p.Write) == 0:
		return -1, &Problem{Message: "nothing is waiting for approval"}
	case c.Digits == "":
		p.Message = "approve requires the digits that are shown beside the commands"
	default:
		p.Message, p.Text = "no commands that wait for approval now have these digits", c.Digits
	}
	return -1, p
}

// ApprovePlans makes the Approvals that c, which was read from by's comment, gives to the plans of
// shown, in their order. shown is what the comment shows, and now what would run: the pull
// request's commit and the policy from the API, and the plans that were uploaded.
//
// It refuses unless c names shown, and now is the same as shown: a person approves what they have
// seen. The Problem has the command to write. Policy decides whether by may approve.
func ApprovePlans(shown, now ApprovalQuestion, c Command, by Approver) ([]proposal.Approval, *Problem) {
	if c.Name != "approve" {
		return nil, &Problem{Message: "the comment is not an approval"}
	}
	if _, p := ChooseQuestion([]ApprovalQuestion{shown}, c); p != nil {
		return nil, p
	}
	if by.ID <= 0 || by.Created.IsZero() {
		return nil, &Problem{Message: "the author or the time of the approval is unknown"}
	}
	if p := checkUnchanged(shown, now); p != nil {
		return nil, p
	}
	var approvals []proposal.Approval
	for _, p := range shown.Plans {
		approvals = append(approvals, proposal.Approval{By: by.Login, ByID: by.ID, URL: by.URL, Time: by.Created,
			HeadSHA: shown.HeadSHA, PlanDigest: p.PlanDigest, Policy: p.Policy})
	}
	return approvals, nil
}

// checkUnchanged returns a Problem unless now is exactly what was shown. It names what has changed.
func checkUnchanged(shown, now ApprovalQuestion) *Problem {
	if now.Digest() == shown.Digest() {
		return nil
	}
	var changed []string
	compare := func(name, shown, now string) {
		words := fmt.Sprintf("the %s has changed (shown %s, now %s)", name, shortenDigest(shown), shortenDigest(now))
		if shown != now && !slices.Contains(changed, words) {
			changed = append(changed, words)
		}
	}
	compare("commit", shown.HeadSHA, now.HeadSHA)
	for i, p := range shown.Plans[:min(len(shown.Plans), len(now.Plans))] {
		compare("plan", p.PlanDigest, now.Plans[i].PlanDigest)
		compare("policy", p.Policy, now.Plans[i].Policy)
	}
	if len(changed) == 0 {
		changed = []string{"the plans have changed"}
	}
	return VoidApprovalProblem(strings.Join(changed, "; "))
}

// VoidApprovalProblem returns the Problem that an approval is void, because of what has changed since the
// comment was written.
func VoidApprovalProblem(what string) *Problem {
	return &Problem{Message: "the approval is void: " + what,
		Purpose: "To decide the plan again and see what waits then", Write: []string{rerunCommand}}
}

var digest = pattern.New(`^(sha256:)?[0-9a-f]{12,64}$`)

// shortenDigest shortens a SHA or digest for display. Any other text is not repeated.
func shortenDigest(s string) string {
	if !digest.MatchString(s) {
		return "unknown"
	}
	return strings.TrimPrefix(s, "sha256:")[:12]
}
