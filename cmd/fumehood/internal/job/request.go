// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Request says what to run on which commit. A job with phase trigger hands it to the
// next jobs as text; a job that does everything makes its own.
//
// Between jobs it is passed as an output of a job that runs no code of the pull request,
// so it is as trustworthy as that job. It is read strictly all the same.
type Request struct {
	Command string    `json:"command"` // "plan" (the workflow's own), "run", "approve", "rerun" or "review"
	PR      int       `json:"pr"`
	Head    string    `json:"head"`
	Base    string    `json:"base"`
	HeadRef string    `json:"head_ref,omitempty"` // branch names, untrusted
	BaseRef string    `json:"base_ref,omitempty"`
	Comment int64     `json:"comment,omitempty"` // the id of the one that requested it
	Plans   []Planned `json:"plans"`             // none for review: a later job proposes the plan
}

// reviewCommand is the command whose plan or findings the workflow's reviewer proposes, after the
// comment was checked.
const reviewCommand = "review"

// bounded reports whether r has as many plans as its command needs.
func (r Request) bounded() bool {
	if r.Command == reviewCommand {
		return len(r.Plans) == 0
	}
	return len(r.Plans) > 0 && len(r.Plans) <= maxPlans
}

// A Planned is one plan of a Request, as it was written.
type Planned struct {
	Name     string             `json:"name"`
	Document string             `json:"document"`
	File     string             `json:"file"` // what messages about the document call it
	Approval *proposal.Approval `json:"approval,omitempty"`
}

const (
	maxRequest = 120 << 10 // one variable of a process's environment has at most 128 KiB
	maxPlans   = 16
)

var fullSHA = pattern.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func (r Request) encode() (string, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > maxRequest {
		err = requestError(fmt.Errorf("the plans have %d bytes, the maximum is %d", len(data), maxRequest))
	}
	return string(data), err
}

func decodeRequest(text string) (Request, error) {
	var r Request
	if len(text) > maxRequest {
		return r, requestError(fmt.Errorf("it is too long"))
	}
	if err := strictjson.Decode([]byte(text), &r); err != nil {
		return Request{}, requestError(err)
	}
	if r.PR <= 0 || !fullSHA.MatchString(r.Head) || !fullSHA.MatchString(r.Base) || !r.bounded() {
		return Request{}, requestError(fmt.Errorf("a field is missing or out of bounds"))
	}
	return r, nil
}

func requestError(err error) error {
	return &proposal.StopError{Code: "request.invalid", Message: "invalid input request",
		Hint: "pass the trigger job's output: request: ${{ needs.trigger.outputs.request }}", Err: err}
}
