// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func verifyCommand() *command {
	return &command{
		name:     "verify",
		synopsis: "say whether an audit log is whole and unchanged, or what is wrong first",
		usage: `LOG [flags]
       fumehood verify --proof FILE --key KEY [flags]

With --proof, verify checks a proof that fumehood prove printed, without the log.

exit codes: 0 whole and sealed, or a valid proof, 1 changed, cut off or not sealed,
or an invalid proof, 3 cannot be read

examples:
  fumehood verify audit.jsonl
  fumehood verify audit.jsonl --key "$(jq -r .audit.key report.json)"
  fumehood verify --proof unit.tlog-proof --key "$(jq -r .audit.key report.json)"
`,
		run: verifyLog,
	}
}

func verifyLog(c *invocation) int {
	var trust audit.Trust
	var proof string
	var asJSON bool
	f := c.Flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with, from the report")
	f.StringVar(&trust.Checkpoint, "checkpoint", "", "checkpoint that the log must hold, from the report")
	f.StringVar(&proof, "proof", "", "check the proof in this `file` instead of a log")
	f.BoolVar(&asJSON, "json", false, "print the finding as JSON")
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	trust.Checkpoint = endLine(trust.Checkpoint)
	switch {
	case proof != "" && (len(args) > 0 || trust.Key == ""):
		return c.Misuse("verify --proof needs --key and no log")
	case proof != "":
		return c.verifyProof(proof, trust, asJSON)
	case len(args) != 1:
		return c.Misuse("verify needs a log")
	}
	log, err := audit.OpenFile(args[0])
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	found := audit.Inspect(log, trust)
	if asJSON {
		err = json.NewEncoder(c.Stdout).Encode(found)
	} else {
		_, err = fmt.Fprintln(c.Stdout, terminal.Line(found.String()))
	}
	if err != nil {
		return c.Stop(err)
	}
	return codeOf(found)
}

// endLine adds the newline that ends a signed note, which a shell's $(…) takes.
func endLine(checkpoint string) string {
	if checkpoint == "" || strings.HasSuffix(checkpoint, "\n") {
		return checkpoint
	}
	return checkpoint + "\n"
}

// codeOf is the exit code for what was found in a log.
func codeOf(found audit.Finding) int {
	switch {
	case found.Unread():
		return exitStopped
	case found.Complete():
		return exitOK
	}
	return exitRefused
}

// verifyProof checks the proof in the file at path against the trusted key.
func (c *invocation) verifyProof(path string, trust audit.Trust, asJSON bool) int {
	data, err := audit.ReadProof(path)
	if err != nil {
		return c.Stop(err)
	}
	proved, wrong := audit.CheckProof(data, trust)
	switch {
	case asJSON && wrong != nil:
		err = json.NewEncoder(c.Stdout).Encode(map[string]string{"error": wrong.Error()})
	case asJSON:
		err = json.NewEncoder(c.Stdout).Encode(proved)
	case wrong != nil:
		_, err = fmt.Fprintln(c.Stdout, terminal.Line(wrong.Error()))
	default:
		sentence, entry, _ := strings.Cut(proved.String(), "\n")
		_, err = fmt.Fprintf(c.Stdout, "%s\n%s\n", terminal.Line(sentence), terminal.Line(entry))
	}
	if err != nil {
		return c.Stop(err)
	}
	if wrong != nil {
		return exitRefused
	}
	return exitOK
}
