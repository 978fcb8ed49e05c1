// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyInputDoor() *door {
	return &door{
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

func inputPolicy(c *call) int {
	var s subject
	var point, schema string
	f := c.flags()
	s.define(f)
	f.StringVar(&point, "point", "", "print the input of this decision `point` alone, one document a line")
	f.StringVar(&schema, "schema", "", "print the JSON Schema of the input of this decision `point`")
	if code, ok := c.parse(f); !ok {
		return code
	}
	if schema != "" {
		if f.NArg() > 0 {
			return c.misuse("--schema takes no command: a schema is that of every input")
		}
		return c.printSchema(schema)
	}
	if code, ok := s.read(c, f); !ok {
		return code
	}
	engine, err := newEngine(c.ctx, policy.Options{})
	if err != nil {
		return c.stopped(err)
	}
	docs := s.documents(engine)
	if point != "" {
		if _, err := policy.InputSchema(point); err != nil {
			return c.misuse(noPoint(err))
		}
		docs = slices.DeleteFunc(docs, func(d policy.Document) bool {
			return strings.TrimPrefix(d.Point, "fumehood.") != strings.TrimPrefix(point, "fumehood.")
		})
		if len(docs) == 0 {
			return c.misuse(fmt.Sprintf("nothing of what is asked about has an input of %s: try --over '%s={}'", point, strings.TrimPrefix(point, "fumehood.")))
		}
	}
	return c.printDocuments(docs, point != "")
}

func (c *call) printSchema(point string) int {
	data, err := policy.InputSchema(point)
	if err != nil {
		return c.misuse(noPoint(err))
	}
	fmt.Fprintf(c.stdout, "%s\n", data)
	return exitOK
}

// noPoint says what is wrong with the name of a decision point, and what was meant.
func noPoint(err error) string {
	f := proposal.FailureOf(err)
	return terminal.Line(f.Message + ": " + f.Hint)
}

// documents are those of all that is asked about.
func (s *subject) documents(e *policy.Engine) []policy.Document {
	var docs []policy.Document
	for _, p := range s.proposals {
		docs = append(docs, e.Inputs(p, gate.Analyze(p))...)
	}
	for _, in := range s.inputs {
		if doc, ok := e.InputOf(in); ok {
			docs = append(docs, doc)
		}
	}
	return docs
}

func (c *call) printDocuments(docs []policy.Document, bare bool) int {
	for _, d := range docs {
		data, err := d.JSON()
		if err != nil {
			return c.stopped(err)
		}
		if !bare {
			var b bytes.Buffer
			if err := json.Indent(&b, data, "", "  "); err != nil {
				return c.stopped(err)
			}
			data = fmt.Appendf(nil, "{%q: %s}", d.Point, b.Bytes())
		}
		fmt.Fprintf(c.stdout, "%s\n", terminal.JSON(data))
	}
	return exitOK
}
