// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"encoding/json"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// toolSeconds is the time that clients are configured to wait for one tool: dependencies
// may have to be installed first.
const toolSeconds = 1200

// clientConfigs are the documented forms of clients' configuration files.
var clientConfigs = map[string]func(command string, args []string) (any, string){
	"claude": func(command string, args []string) (any, string) {
		return map[string]any{"mcpServers": map[string]any{"fumehood": map[string]any{"type": "stdio",
			"command": command, "args": args, "timeout": toolSeconds * 1000}}}, ""
	},
	"codex": func(command string, args []string) (any, string) {
		return nil, fmt.Sprintf("[mcp_servers.fumehood]\ncommand = %q\nargs = [%s]\nrequired = true\nstartup_timeout_sec = 120\ntool_timeout_sec = %d\n", command, quotedList(args), toolSeconds)
	},
	"cursor": func(command string, args []string) (any, string) {
		return map[string]any{"mcpServers": map[string]any{"fumehood": map[string]any{"command": command,
			"args": args}}}, ""
	},
	"gemini": func(command string, args []string) (any, string) {
		return map[string]any{"mcpServers": map[string]any{"fumehood": map[string]any{"command": command, "args": args,
			"timeout": toolSeconds * 1000}}}, ""
	},
	"vscode": func(command string, args []string) (any, string) {
		return map[string]any{"servers": map[string]any{"fumehood": map[string]any{"type": "stdio", "command": command,
			"args": args}}}, ""
	},
}

// ClientNames returns the clients that ClientConfig knows, sorted.
func ClientNames() []string { return slices.Sorted(maps.Keys(clientConfigs)) }

// ClientConfig returns the configuration with which client starts the server in the
// directory where the client runs, with sudo if commands would not run as root otherwise.
// Its error is a *proposal.StopError.
func ClientConfig(client string, sudo bool) (string, error) {
	make, known := clientConfigs[client]
	if !known {
		return "", &proposal.StopError{Code: "mcp.client", Message: fmt.Sprintf("unknown client %q", client),
			Hint: "use one of " + strings.Join(ClientNames(), ", ")}
	}
	command, args := "fumehood", []string{"mcp", "--workspace", "."}
	if sudo {
		command, args = "sudo", append([]string{"-n", "fumehood"}, args...)
	}
	document, text := make(command, args)
	if document == nil {
		return text, nil
	}
	data, err := json.MarshalIndent(document, "", "  ")
	return string(data) + "\n", err
}

func quotedList(words []string) string {
	var list []string
	for _, w := range words {
		list = append(list, fmt.Sprintf("%q", w))
	}
	return strings.Join(list, ", ")
}
