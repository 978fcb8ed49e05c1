// SPDX-License-Identifier: Apache-2.0

// Command cut makes testdata/github from the npm packages in which GitHub publishes
// the descriptions of its API. It is run by hand when a package is updated;
// testdata/github/README.md has the commands.
//
//	cut api      -from api.github.com.json -ops ops.txt -to openapi.json
//	cut webhooks -from schema.json -events events -to webhooks.json
//	cut events   -from index.json -to events
//
// The same input gives the same bytes. An entry of a list that the package does not
// have is an error; it is never left out.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := runCommand(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cut:", err)
		os.Exit(1)
	}
}

func runCommand(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("invalid command: want api, webhooks or events")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	from := flags.String("from", "", "`file` of the npm package")
	to := flags.String("to", "", "`file` or directory to write")
	ops := flags.String("ops", "", "`file` of operation ids, one a line")
	events := flags.String("events", "", "`directory` of payloads that the schema must describe")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "api":
		return cutAPI(*from, *ops, *to)
	case "webhooks":
		return cutWebhooks(*from, *events, *to)
	case "events":
		return deriveEvents(*from, *to)
	}
	return fmt.Errorf("invalid command %q: want api, webhooks or events", args[0])
}
