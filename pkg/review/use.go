// SPDX-License-Identifier: Apache-2.0

package review

import "github.com/fumehood/fumehood/pkg/review/spend"

// A ModelUse says what asking a model took.
type ModelUse struct {
	Provider  string       `json:"provider"`
	Model     string       `json:"model"`
	Rounds    int          `json:"rounds"`
	Requests  int          `json:"requests"` // with those that failed
	Tokens    int64        `json:"tokens"`   // that the provider reports, or the most it can have used
	SentBytes int64        `json:"sent_bytes"`
	Spent     spend.Amount `json:"spent"` // what counts against the budget
	Priced    bool         `json:"priced"`
	Commands  int          `json:"commands"` // that the model proposed
	Ran       int          `json:"ran"`
	Left      int          `json:"left_out"` // findings that the maintainers' guidance leaves out
	Log       Run          `json:"log"`      // of the requests, and Session of the commands
	Session   *Run         `json:"session,omitempty"`
}
