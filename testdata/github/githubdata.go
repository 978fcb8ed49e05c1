// SPDX-License-Identifier: Apache-2.0

// Package githubdata holds what GitHub itself says about its API, cut to what
// fumehood uses: the description of the REST API and of the webhooks, and event
// payloads. README.md says where it comes from and how it is made again.
package githubdata

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// OpenAPI is the description of the REST operations in ops.txt.
//
//go:embed openapi.json
var OpenAPI []byte

// Webhooks is the JSON Schema of the payloads in events: one definition for each
// event and action, as "issue_comment$created".
//
//go:embed webhooks.json
var Webhooks []byte

//go:embed events
var events embed.FS

// Event returns a payload by its name without ".json", as in
// "pull_request.opened.fork". It panics when there is none.
func Event(name string) []byte {
	data, err := events.ReadFile("events/" + name + ".json")
	if err != nil {
		panic(fmt.Sprintf("githubdata: no event %q", name))
	}
	return data
}

// Events lists the names of all payloads, in order.
func Events() []string {
	var names []string
	list, err := fs.ReadDir(events, "events")
	if err != nil {
		panic(fmt.Sprintf("githubdata: internal error: %v", err))
	}
	for _, entry := range list {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}
