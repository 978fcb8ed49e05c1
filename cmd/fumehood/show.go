// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/report/timeline"
)

func showCommand() *command {
	return &command{
		name:     "show",
		synopsis: "tell what happened in a run, in order, from its audit log",
		usage: `LOG [flags]

Times are UTC. Programs that ended well, files below the workspace, HOME and /tmp,
and what is done by habit and comes to nothing are left out unless --all is given. With --json each line is one object: an
entry, or one event of an entry; the last one is the verdict.

exit codes: 0 whole and sealed, 1 changed, cut off or not sealed, 3 cannot be read

examples:
  fumehood show audit.jsonl
  fumehood show audit.jsonl --id unit --all
  fumehood show audit.jsonl --json | jq 'select(.kind == "refused")'
`,
		run: showLog,
	}
}

func showLog(c *invocation) int {
	var trust audit.Trust
	var o timeline.Options
	f := c.Flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with, from the report")
	f.StringVar(&o.ID, "id", "", "show one proposal only")
	f.BoolVar(&o.All, "all", false, "show every event")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
	args, code, ok := c.ParseArgs(f, 1, "a log")
	if !ok {
		return code
	}
	log, err := audit.OpenFile(args[0])
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	found, err := timeline.Write(c.Stdout, log, trust, o)
	if err != nil {
		return c.Stop(err)
	}
	return codeOf(found)
}
