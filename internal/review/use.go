// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"

	"github.com/fumehood/fumehood/internal/review/spend"
)

// A ModelUse says what asking a model took.
type ModelUse struct {
	Provider  string       `json:"provider"`
	Model     string       `json:"model"`
	Rounds    int          `json:"rounds"`
	Requests  int          `json:"requests"` // with those that failed
	SentBytes int64        `json:"sent_bytes"`
	Whole     WholeFiles   `json:"whole_files"`
	Spent     spend.Amount `json:"spent"` // what counts against the budget
	Priced    bool         `json:"priced"`
	Commands  int          `json:"commands"` // that the model proposed
	Ran       int          `json:"ran"`
	Once      bool         `json:"once,omitempty"` // nothing could run while it was asked: see Find
	Left      int          `json:"left_out"`       // findings that the maintainers' guidance leaves out
	Log       Run          `json:"log"`            // of the requests, and Session of the commands
	Session   *Run         `json:"session,omitempty"`
}

// describe describes u in one line.
func (u ModelUse) describe() string {
	cost := "price not known"
	if u.Priced {
		cost = u.Spent.USD.String()
	}
	line := fmt.Sprintf("%s %s: %s, %s, %d tokens, %d bytes sent, ", u.Provider, u.Model,
		countNoun(u.Rounds, "round", "rounds"), countNoun(u.Requests, "request", "requests"), u.Spent.Tokens,
		u.SentBytes)
	if u.Once {
		line += cost
	} else {
		line += fmt.Sprintf("%s (%d bytes) besides the diff, %s; %d of %s ran",
			countNoun(u.Whole.Files, "whole file", "whole files"), u.Whole.Bytes, cost, u.Ran,
			countNoun(u.Commands, "command", "commands"))
	}
	if u.Left > 0 {
		line += "; " + countNoun(u.Left, "finding is", "findings are") + " left out by the configuration"
	}
	return line
}
