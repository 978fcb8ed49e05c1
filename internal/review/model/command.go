// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
)

// commandProvider runs a program of the operator for each request. It gets one line of JSON on
// its standard input, and writes one line of JSON:
//
//	{"model":"…","system":"…","turns":[{"model":false,"text":"…"}],"schema":{…},"max_output_tokens":8192}
//	{"text":"…","stop":"complete","input_tokens":1200,"output_tokens":300}
//
// Its environment has only the named variables. It runs on the host, as this user, and what it
// prints elsewhere is lost. When the request ends, it and what it started in its process group
// are killed.
type commandProvider struct {
	program string
	env     []string
}

// commandQuestion and commandAnswer are the lines.
type commandQuestion struct {
	Model     string          `json:"model"`
	System    string          `json:"system"`
	Turns     []Turn          `json:"turns"`
	Schema    json.RawMessage `json:"schema"`
	MaxOutput int64           `json:"max_output_tokens"`
}

type commandAnswer struct {
	Text   string `json:"text"`
	Stop   Stop   `json:"stop"`
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
}

func (p *commandProvider) Ask(ctx context.Context, r Request) (a Answer, err error) {
	question, err := json.Marshal(commandQuestion{r.Model, r.System, r.Turns, r.Schema, r.MaxOutput})
	if err != nil {
		return a, err
	}
	program := process.Program{Path: p.program, Env: p.env, Timeout: maxCall, MaxOutput: MaxAnswer}
	out, _, err := program.Run(ctx, append(question, '\n'))
	switch {
	case errors.Is(err, process.ErrNotStarted):
		return a, &Error{Message: innermostCause(err)}
	case errors.Is(err, process.ErrTooMuchOutput):
		return a, &Error{Spent: true, Message: fmt.Sprintf("the answer is larger than %d bytes", MaxAnswer)}
	case err != nil:
		return a, unsuitableAnswer("the command failed: %s", innermostCause(err))
	}
	var line commandAnswer
	if strictjson.Decode(out, &line) != nil {
		return a, unsuitableAnswer("the command's answer is not one line of JSON with text and stop")
	}
	a = Answer{Text: line.Text, Stop: Other, Input: -1, Output: -1}
	if slices.Contains([]Stop{Complete, Length, Refusal, Filter, TooLong}, line.Stop) {
		a.Stop = line.Stop
	}
	if line.Input != nil && line.Output != nil {
		a.Input, a.Output = *line.Input, *line.Output
	}
	return a, nil
}
