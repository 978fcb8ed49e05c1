// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A request is what shall run on which commit: what a job with phase trigger judged
// and hands to the next jobs as text, or what one job works out for itself.
//
// Between jobs it travels as an output of a job that runs no pull request's code, so
// it is as trustworthy as that job. It is read strictly all the same.
type request struct {
	Command string    `json:"command"` // "plan" (the workflow's own), "run", "approve" or "rerun"
	PR      int       `json:"pr"`
	Head    string    `json:"head"`
	Base    string    `json:"base"`
	Comment int64     `json:"comment,omitempty"` // that asked for it
	Plans   []planned `json:"plans"`
}

// A planned is one plan of a request, as it was written.
type planned struct {
	Name     string             `json:"name"`
	Document string             `json:"document"`
	File     string             `json:"file"` // what its problems are told of
	Approval *proposal.Approval `json:"approval,omitempty"`
}

const (
	maxRequest = 120 << 10 // one variable of a process's environment has at most 128 KiB
	maxPlans   = 16
)

var fullSHA = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func (r request) encode() (string, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > maxRequest {
		err = requestError(fmt.Errorf("the plans have %d bytes together, %d can be handed on", len(data), maxRequest))
	}
	return string(data), err
}

func readRequest(text string) (request, error) {
	var r request
	if len(text) > maxRequest {
		return r, requestError(fmt.Errorf("it is too long"))
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return request{}, requestError(err)
	}
	if d.More() || r.PR <= 0 || !fullSHA.MatchString(r.Head) || !fullSHA.MatchString(r.Base) || len(r.Plans) == 0 || len(r.Plans) > maxPlans {
		return request{}, requestError(fmt.Errorf("a field is missing or out of bounds"))
	}
	return r, nil
}

func requestError(err error) error {
	return &proposal.StopError{Code: "request.invalid", Message: "the input request cannot be used",
		Hint: "pass on what the trigger job made: request: ${{ needs.trigger.outputs.request }}", Err: err}
}
