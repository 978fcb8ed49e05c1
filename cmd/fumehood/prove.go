// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func proveDoor() *door {
	return &door{
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

func proveEntry(c *call) int {
	var trust audit.Trust
	f := c.flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with")
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 2 {
		return c.misuse("prove needs a log and an id")
	}
	n, err := findEntry(args[0], args[1], trust)
	if err != nil {
		return c.stopped(err)
	}
	log, err := os.Open(args[0])
	if err != nil {
		return c.stopped(unreadable(args[0], err))
	}
	defer log.Close()
	proof, err := audit.Prove(log, trust, n)
	if errors.Is(err, audit.ErrNoEntry) {
		err = noEntry(args[1])
	}
	if err != nil {
		return c.stopped(err)
	}
	if _, err := c.stdout.Write(proof); err != nil {
		return c.stopped(err)
	}
	return exitOK
}

// findEntry returns the number of the last entry of kind result, else decision,
// whose body names the proposal.
func findEntry(path, id string, trust audit.Trust) (int64, error) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	log, err := os.Open(path)
	if err != nil {
		return 0, unreadable(path, err)
	}
	defer log.Close()
	found, _, err := audit.Find(log, trust, func(e audit.Entry) bool {
		var body struct {
			ID string `json:"id"`
		}
		return (e.Kind == "result" || e.Kind == "decision") && json.Unmarshal(e.Body, &body) == nil && body.ID == id
	})
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, noEntry(id)
	}
	return found[len(found)-1], nil
}

// parseOne reads flags that may stand before or after one positional argument.
func (c *call) parseOne(f *flag.FlagSet, what string) (string, int, bool) {
	args, code, ok := c.parseMixed(f)
	if !ok {
		return "", code, false
	}
	if len(args) != 1 {
		return "", c.misuse(c.door.name + " needs " + what), false
	}
	return args[0], exitOK, true
}

func noEntry(id string) error {
	return &proposal.StopError{Code: "audit.no-entry", Message: fmt.Sprintf("the log holds no proposal or entry %q", id),
		Hint: "ids and numbers are in the log and in the report"}
}
