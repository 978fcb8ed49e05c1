// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

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
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	out := &limitedBuffer{left: MaxAnswer}
	cmd := exec.CommandContext(ctx, p.program)
	cmd.Env, cmd.Stdin, cmd.Stdout = p.env, bytes.NewReader(append(question, '\n')), out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return a, &Error{Message: "cannot start the command: " + innermostCause(err)}
	}
	if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended, and something that it started still has its output
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left
	return out.decodeAnswer(err)
}

// decodeAnswer decodes what the program printed, if it ended as it should.
func (l *limitedBuffer) decodeAnswer(err error) (a Answer, _ error) {
	switch {
	case l.left < 0:
		return a, &Error{Spent: true, Message: fmt.Sprintf("the answer is larger than %d bytes", MaxAnswer)}
	case err != nil:
		return a, unsuitableAnswer("the command failed: %s", innermostCause(err))
	}
	var line commandAnswer
	if strictjson.Decode(l.data, &line) != nil {
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

// limitedBuffer keeps at most left bytes and fails for more.
type limitedBuffer struct {
	data []byte
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too much output")
	}
	l.data = append(l.data, p...)
	return len(p), nil
}
