// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/export"
)

func proveCommand() *command {
	return &command{
		name:     "prove",
		synopsis: "print a proof that an entry is in an audit log; verify --proof checks it without the log",
		usage: `LOG ID [flags]

ID is a proposal's id (then its result, or else its decision, is proved) or an
entry's number.

examples:
  fumehood prove audit.jsonl unit > unit.tlog-proof
  fumehood verify --proof unit.tlog-proof --key "$(jq -r .audit.key report.json)"
  fumehood prove audit.jsonl 7
`,
		run: proveEntry,
	}
}

func proveEntry(c *invocation) int {
	var trust audit.Trust
	f := c.Flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with")
	args, code, ok := c.ParseArgs(f, 2, "a log and an id")
	if !ok {
		return code
	}
	log, err := audit.OpenFile(args[0])
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	proof, err := export.Prove(log, trust, args[1])
	if err == nil {
		_, err = c.Stdout.Write(proof)
	}
	if err != nil {
		return c.Stop(err)
	}
	return exitOK
}
