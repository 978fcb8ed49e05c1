// SPDX-License-Identifier: Apache-2.0

package points

// A Trigger is a request for an action on a pull request: the input of policy's
// decision point fumehood.trigger. Every field is a fact from an API, never a
// claim in a comment.
type Trigger struct {
	Command string      `json:"command" enum:"order"` // the command in the comment, without /fumehood
	Event   string      `json:"event"`                // GitHub's event name
	Actor   Actor       `json:"actor"`                // the account that asks
	PR      TriggerPR   `json:"pr"`                   // the pull request
	Runs    TriggerRuns `json:"runs"`                 // how many there were
	// Bots are the user IDs of the bots that may propose; bots are never
	// identified by name.
	Bots []int64 `json:"bots"`
}

// An Actor is the author of the comment.
type Actor struct {
	Login      string `json:"login"`                        // its name
	ID         int64  `json:"id"`                           // its number
	Type       string `json:"type" enum:"account"`          // GitHub's
	Permission string `json:"permission" enum:"permission"` // in the repository
	Author     bool   `json:"author"`                       // of the pull request
}

// A TriggerPR is the pull request of a Trigger.
type TriggerPR struct {
	Number int    `json:"number"`             // of the pull request
	State  string `json:"state" enum:"state"` // of the pull request
	Draft  bool   `json:"draft"`              // it is a draft
	Locked bool   `json:"locked"`             // its conversation is locked
	Fork   bool   `json:"fork"`               // its code comes from another repository, or from one that is gone
	Head   string `json:"head"`               // full SHA, as the API currently reports
}

// TriggerRuns count earlier runs, and contain the run budgets.
type TriggerRuns struct {
	PR     int `json:"pr"`      // on this pull request
	Day    int `json:"day"`     // in this repository since midnight UTC
	MaxPR  int `json:"max_pr"`  // the budget
	MaxDay int `json:"max_day"` // the budget
}
