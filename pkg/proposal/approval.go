// SPDX-License-Identifier: Apache-2.0

package proposal

import "time"

// An Approval is a person's permission to run what policy asked about. It is bound
// to one commit, one plan and one policy; any change voids it.
type Approval struct {
	By         string    `json:"by"` // login; untrusted text
	ByID       int64     `json:"by_id"`
	URL        string    `json:"url,omitempty"` // the approving comment
	Time       time.Time `json:"time"`
	HeadSHA    string    `json:"head_sha"`
	PlanDigest string    `json:"plan_digest"`
	Policy     string    `json:"policy_digest"`
}

// Covers reports whether a applies to run. An empty field covers nothing.
func (a Approval) Covers(run Run) bool {
	return a.HeadSHA != "" && a.HeadSHA == run.HeadSHA &&
		a.PlanDigest != "" && a.PlanDigest == run.PlanDigest &&
		a.Policy != "" && a.Policy == run.Policy
}

// Equal reports whether a and b are the same approval by the same person.
func (a Approval) Equal(b Approval) bool {
	at, bt := a.Time, b.Time
	a.Time, b.Time = time.Time{}, time.Time{}
	return a == b && at.Equal(bt)
}
