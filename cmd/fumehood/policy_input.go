// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyInputCommand() *command {
	return &command{
		name:     "policy input",
		synopsis: "print what rules see: the input of each decision point, or its schema",
		usage: `[flags] ['COMMAND']

` + subjectUsage + `
examples:
  fumehood policy input 'go test ./...'
  fumehood policy input --point command 'go test ./...' > input.json
  fumehood policy input --over 'exec={"path": "/usr/bin/curl"}'
  fumehood policy input --schema command > command.schema.json
`,
		run: inputPolicy,
	}
}

func inputPolicy(c *invocation) int {
	var s subject
	var point, schema string
	f := c.Flags()
	s.define(f)
	f.StringVar(&point, "point", "", "print the input of this decision `point` alone, one document a line")
	f.StringVar(&schema, "schema", "", "print the JSON Schema of the input of this decision `point`")
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if schema != "" {
		if f.NArg() > 0 {
			return c.Misuse("--schema takes no command: a schema is that of every input")
		}
		return c.printSchema(schema)
	}
	if code, ok := s.read(c, f); !ok {
		return code
	}
	engine, err := newEngine(c.Ctx, policy.Options{})
	if err != nil {
		return c.Stop(err)
	}
	docs, err := s.Documents(engine, point)
	if err != nil {
		return c.Misuse(wrongPoint(err))
	}
	return c.printDocuments(docs, point != "")
}

func (c *invocation) printSchema(point string) int {
	data, err := policy.InputSchema(point)
	if err != nil {
		return c.Misuse(wrongPoint(err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", data)
	return exitOK
}

// wrongPoint says what is wrong with the name of a decision point, and what was meant.
func wrongPoint(err error) string {
	f := proposal.FailureOf(err)
	if f.Hint != "" {
		f.Message += ": " + f.Hint
	}
	return terminal.Line(f.Message)
}

func (c *invocation) printDocuments(docs []policy.Document, bare bool) int {
	for _, d := range docs {
		data, err := d.JSON()
		if err != nil {
			return c.Stop(err)
		}
		if !bare {
			var b bytes.Buffer
			if err := json.Indent(&b, data, "", "  "); err != nil {
				return c.Stop(err)
			}
			data = fmt.Appendf(nil, "{%q: %s}", d.Point, b.Bytes())
		}
		fmt.Fprintf(c.Stdout, "%s\n", terminal.JSON(data))
	}
	return exitOK
}
