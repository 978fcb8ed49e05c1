// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A proposeArgs is what run and check take: the fields of a plan's proposal.
type proposeArgs struct {
	Command string            `json:"command,omitempty" jsonschema:"shell text; or argv"`
	Argv    []string          `json:"argv,omitempty"`
	Cwd     string            `json:"cwd,omitempty" jsonschema:"relative to the workspace"`
	Env     map[string]string `json:"env,omitempty"`
	Stdin   string            `json:"stdin,omitempty"`
	Timeout string            `json:"timeout,omitempty" jsonschema:"as 90s"`
	Limits  map[string]any    `json:"limits,omitempty" jsonschema:"cpus, memory, pids, disk, files, output, as {\"memory\": \"2GiB\"}"`
	Network []string          `json:"network,omitempty" jsonschema:"host or host:port that it needs"`
	Outputs []string          `json:"outputs,omitempty" jsonschema:"workspace files or globs to export"`
	Cache   bool              `json:"cache,omitempty" jsonschema:"take a kept result; only for the first command"`
	Why     string            `json:"why,omitempty"`

	Background bool `json:"background,omitempty" jsonschema:"go on after the call; see process"`
	Input      bool `json:"input,omitempty" jsonschema:"process writes its stdin"`
}

// A snippet is what run_code takes.
type snippet struct {
	Language string `json:"language" jsonschema:"python, javascript, bash, sh; without variables: r, java, ruby, deno"`
	Code     string `json:"code"`
	Context  string `json:"context,omitempty" jsonschema:"has its own variables"`
	Timeout  string `json:"timeout,omitempty" jsonschema:"as 90s"`
	Why      string `json:"why,omitempty"`
}

// A question is what check takes: what decisions depend on.
type question struct {
	Command  string            `json:"command,omitempty" jsonschema:"or argv, commands or code"`
	Commands []string          `json:"commands,omitempty" jsonschema:"shell texts, each decided alone"`
	Argv     []string          `json:"argv,omitempty"`
	Language string            `json:"language,omitempty"`
	Code     string            `json:"code,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Network  []string          `json:"network,omitempty"`
}

// proposalFields returns a proposal of a plan with the fields of args that are set.
func proposalFields(id string, args any) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	if text, given := fields["command"]; given {
		fields["run"] = text
		delete(fields, "command")
	}
	for _, own := range []string{"commands", "context", "background", "input"} {
		delete(fields, own)
	}
	fields["id"], err = json.Marshal(id)
	return fields, errors.Join(err, replaceCode(fields))
}

// replaceCode replaces code of a language without state by its command.
func replaceCode(fields map[string]json.RawMessage) error {
	var p proposal.Proposal
	if json.Unmarshal(fields["language"], &p.Language) != nil || json.Unmarshal(fields["code"], &p.Code) != nil {
		return nil // what is wrong is found later
	}
	p, is := interpreter.CommandOf(p)
	if !is {
		return nil
	}
	delete(fields, "language")
	delete(fields, "code")
	var err error
	if p.Run != "" {
		fields["run"], err = json.Marshal(p.Run)
	} else {
		fields["argv"], err = json.Marshal(p.Argv)
	}
	return err
}

// decodeProposal reads tool arguments as strictly as a plan. Its error is a *proposal.StopError that
// says which argument is wrong, and why.
func decodeProposal(id string, args any) (proposal.Proposal, error) {
	fields, err := proposalFields(id, args)
	if err != nil {
		return proposal.Proposal{}, invalidArguments("the arguments are not JSON")
	}
	data, err := json.Marshal(map[string]any{"schema": proposal.PlanSchema, "proposals": []any{fields}})
	if err != nil {
		return proposal.Proposal{}, invalidArguments("the arguments are not JSON")
	}
	p, problems := plan.Decode(data, "arguments.json")
	if problems = append(problems, p.Refused()...); len(problems) > 0 {
		return proposal.Proposal{}, invalidArguments(describeArgument(problems[0]))
	}
	return p.Proposals[0], nil
}

func invalidArguments(message string) error {
	return &proposal.StopError{Code: "mcp.arguments", Message: "invalid arguments: " + message,
		Hint: "fix them and call the tool again; nothing ran"}
}

// describeArgument names a problem's place as the tool's caller knows it.
func describeArgument(p proposal.Problem) string {
	path := strings.TrimPrefix(strings.TrimPrefix(p.Path, "proposals[0]"), ".")
	if rest, is := strings.CutPrefix(path, "run"); is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
		path = "command" + rest
	}
	if path == "" {
		return strings.ReplaceAll(p.Message, "run (shell text)", "command (shell text)")
	}
	return path + ": " + p.Message
}
