// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/replay"
	"github.com/fumehood/fumehood/pkg/report/progress"
)

func policyReplayCommand() *command {
	return &command{
		name:     "policy replay",
		synopsis: "decide past runs again, and say what would change",
		usage: `LOG|REPORT|FOLDER… [flags]

Reads audit logs, reports, and folders of them. Each proposal is decided again under the
policies that the flags name, and so is each program and connection of the commands that
would still run; limits that would be others are a change too. A log that does not verify is refused.

exit codes: 0 nothing changes that --fail-on names, 1 something does, 3 the past or the
policy cannot be read

examples:
  fumehood policy replay ~/.local/state/fumehood --policy ./policy
  fumehood policy replay audit.jsonl --organisation ./org --fail-on looser
  fumehood policy replay runs/ --policy ./policy --json | jq '.changes[] | select(.to.effect == "deny")'
`,
		run: replayPast,
	}
}

// A reading is what the flags of replay and suggest say of the past.
type reading struct {
	key        string
	unverified bool
}

func (of *reading) define(f *flag.FlagSet) {
	f.StringVar(&of.key, "key", "", "verifier `key` that every log must be signed with (default: the log's own)")
	f.BoolVar(&of.unverified, "unverified", false, "also read what comes before the fault of a log that does not verify")
}

func (of *reading) read(paths []string) (replay.Past, error) {
	return replay.Read(paths, replay.Options{Parse: gate.Analyze, Key: of.key, Unverified: of.unverified})
}

func replayPast(c *invocation) int {
	var policies policyFlags
	var of reading
	var asJSON bool
	failOn := "any"
	f := c.Flags()
	policies.define(f)
	of.define(f)
	f.StringVar(&failOn, "fail-on", failOn, "exit with 1 at a change that is `any`, stricter (or allow->deny), looser (or deny->allow), or none")
	f.BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	paths, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return c.Misuse("policy replay needs a log, a report or a folder of them")
	}
	fails := replay.FailOn(failOn)
	if fails == nil {
		return c.Misuse(fmt.Sprintf("--fail-on takes any, stricter, looser or none, not %q", failOn))
	}
	past, outcome, err := c.again(paths, of, &policies)
	if err != nil {
		return c.Stop(err)
	}
	if asJSON {
		err = c.Print(outcome.JSON(past))
	} else {
		err = c.printOutcome(past, outcome)
	}
	switch {
	case err != nil:
		return c.Stop(err)
	case slices.ContainsFunc(outcome.Changes, fails):
		return exitRefused
	}
	return exitOK
}

// again reads the past and decides it once more.
func (c *invocation) again(paths []string, of reading, policies *policyFlags) (replay.Past, replay.Outcome, error) {
	// Every decision leaves much behind and the heap is small: collected as it grows by
	// half, a third of the time would go into that.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	engine, err := policies.engine(c.Ctx)
	if err != nil {
		return replay.Past{}, replay.Outcome{}, err
	}
	past, err := of.read(paths)
	if err != nil {
		return past, replay.Outcome{}, err
	}
	outcome, err := replay.Again(c.Ctx, past, engine, progress.New(c.Stderr).Proposals(past.Proposals()))
	c.Warn(engine.Warnings()...)
	return past, outcome, err
}

func (c *invocation) printOutcome(past replay.Past, o replay.Outcome) error {
	c.Note(past.Notes()...)
	if speed := o.Speed(); speed != "" {
		progress.New(c.Stderr).Detail(speed)
	}
	return o.Write(c.Stdout)
}
