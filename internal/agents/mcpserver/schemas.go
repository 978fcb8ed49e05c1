// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// toolFormats are the forms in which providers' APIs take the definitions of tools. They
// are those of OpenAI's Chat Completions and Responses, Anthropic's Messages and Gemini's
// generateContent.
var toolFormats = map[string]func([]*mcp.Tool) any{
	"openai-chat": func(tools []*mcp.Tool) any {
		return mapTools(tools, func(t *mcp.Tool) any {
			return map[string]any{"type": "function", "function": functionSchema(t, "parameters")}
		})
	},
	"openai": func(tools []*mcp.Tool) any {
		return mapTools(tools, func(t *mcp.Tool) any {
			f := functionSchema(t, "parameters")
			f["type"] = "function"
			return f
		})
	},
	"anthropic": func(tools []*mcp.Tool) any {
		return mapTools(tools, func(t *mcp.Tool) any { return functionSchema(t, "input_schema") })
	},
	"gemini": func(tools []*mcp.Tool) any {
		return []any{map[string]any{"functionDeclarations": mapTools(tools,
			func(t *mcp.Tool) any { return functionSchema(t, "parametersJsonSchema") })}}
	},
}

// ToolFormats returns the formats of ToolDefinitions, sorted.
func ToolFormats() []string { return slices.Sorted(maps.Keys(toolFormats)) }

// ToolDefinitions returns the definitions of the server's tools as JSON, in a format that a
// provider's API takes: the same names, descriptions and schemas as over MCP. Its error is a
// *proposal.StopError if the format is unknown.
func ToolDefinitions(ctx context.Context, format string) ([]byte, error) {
	form, known := toolFormats[format]
	if !known {
		return nil, &proposal.StopError{Code: "mcp.format", Message: fmt.Sprintf("unknown format %q", format),
			Hint: "use one of " + strings.Join(ToolFormats(), ", ")}
	}
	tools, err := listTools(ctx)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(form(tools))
	return b.Bytes(), err
}

// listTools returns the tools as a client sees them.
func listTools(ctx context.Context) ([]*mcp.Tool, error) {
	here, there := mcp.NewInMemoryTransports()
	server, err := New(Options{}).mcp.Connect(ctx, there, nil)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "fumehood"}, nil).Connect(ctx, here, nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	r, err := client.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	return r.Tools, nil
}

func mapTools(tools []*mcp.Tool, f func(*mcp.Tool) any) []any {
	var list []any
	for _, t := range tools {
		list = append(list, f(t))
	}
	return list
}

func functionSchema(t *mcp.Tool, schema string) map[string]any {
	return map[string]any{"name": t.Name, "description": t.Description, schema: t.InputSchema}
}
