// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// A ClientApproval is the answer of the program that uses a session, such as an MCP client,
// to what policy asks. It proves that the program answered, not that a person did. It is
// bound to one proposal, one policy, one session and the state of its workspace; any change
// voids it.
type ClientApproval struct {
	Client   string    `json:"client"` // the name that the program gives itself; untrusted text
	Time     time.Time `json:"time"`
	Session  string    `json:"session"`         // Run.ID
	Proposal string    `json:"proposal_digest"` // Proposal.Digest
	Policy   string    `json:"policy_digest"`
	// After is the number of commands that had run and of files that had been put into the
	// workspace when the question was asked.
	After int `json:"after"`
}

// Covers reports whether a is an answer to exactly what asked is about. An empty field
// covers nothing.
func (a ClientApproval) Covers(asked ClientApproval) bool {
	asked.Client, asked.Time = a.Client, a.Time
	return a.Client != "" && a.Session != "" && a.Proposal != "" && a.Policy != "" && a == asked
}

// Digest returns "sha256:" and the lower-case hex SHA-256 of p without its ID, as JSON.
func (p Proposal) Digest() string {
	p.ID = ""
	data, err := json.Marshal(p)
	if err != nil {
		return "" // covers nothing
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
