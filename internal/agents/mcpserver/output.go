// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The resources.
const (
	uriRules  = "fumehood://policy/rules"
	uriReport = "fumehood://session/report"
	uriLog    = "fumehood://session/log"
	uriOutput = "fumehood://output/"
)

const (
	maxResource = 1 << 20 // bytes read of a file for one resource
	maxKept     = 1000    // outputs that stay readable, the newest
)

func (s *Server) addResources() {
	add := func(uri, name, mime, description string, read func(*client) (string, error)) {
		s.mcp.AddResource(&mcp.Resource{URI: uri, Name: name, MIMEType: mime, Description: description},
			s.resourceHandler(mime, func(c *client, _ string) (string, error) { return read(c) }))
	}
	add(uriRules, "policy rules", "text/markdown", "The rules that decide commands",
		func(*client) (string, error) { return s.readRules() })
	add(uriReport, "session report", "application/json", "The report of the session that ended last",
		(*client).readReport)
	add(uriLog, "session log", "application/jsonl", "The end of the tamper-evident log of the session",
		(*client).readLogEnd)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: uriOutput + "{id}", Name: "output",
		MIMEType: "text/plain", Description: "The whole of an output that an answer cut"},
		s.resourceHandler("text/plain", (*client).readOutput))
}

// resourceHandler returns a handler that reads a text resource of the client.
func (s *Server) resourceHandler(mime string, read func(c *client, uri string) (string, error)) mcp.ResourceHandler {
	return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c, err := s.ensureClient(req.Session, userOf(req.Extra))
		if err != nil {
			return nil, clientError(err)
		}
		content, err := read(c, req.Params.URI)
		if err != nil {
			return nil, clientError(err)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mime,
			Text: content}}}, nil
	}
}

func (s *Server) readRules() (string, error) {
	if s.o.Rules == nil {
		return "", noResource(uriRules)
	}
	return s.o.Rules()
}

func noResource(uri string) error {
	return &proposal.StopError{Code: "mcp.resource",
		Message: fmt.Sprintf("there is no resource %s", text.Inline(uri, 100)),
		Hint:    "list the resources; outputs of an ended session are gone"}
}

// readReport returns the sealed report, or what is known of the open session.
func (c *client) readReport() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && c.session == nil {
		data, err := report.JSON(c.last.report)
		return string(text.EscapeJSON(data)), err
	}
	state := map[string]any{"open": c.session != nil, "proposals": c.proposed}
	if c.session != nil {
		state["session"], state["log"] = c.session.ID(), c.session.Log()
	}
	data, err := json.Marshal(state)
	return string(data), err
}

// readLogEnd returns the end of the open session's log, or of the last one's.
func (c *client) readLogEnd() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := ""
	switch {
	case c.session != nil:
		name = c.session.Log()
	case c.last != nil:
		name = c.last.log
	default:
		return "", noResource(uriLog)
	}
	data, err := readEnd(name, maxResource)
	return string(text.EscapeJSON(data)), err
}

// readEnd reads the last whole lines of a file, at most max bytes.
func readEnd(name string, max int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= max {
		return readAll(f, max, err)
	}
	data := make([]byte, max)
	if _, err := f.ReadAt(data, info.Size()-max); err != nil {
		return nil, err
	}
	_, lines, _ := strings.Cut(string(data), "\n")
	return []byte(lines), nil
}

func readAll(r io.Reader, max int64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, max))
}

// keepOutput remembers a stream and returns the URI of its resource.
func (s *session) keepOutput(id string, o proposal.Stream) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= maxKept {
		delete(s.outputs, s.names[0])
		s.names = s.names[1:]
	}
	s.outputs[id] = o
	s.names = append(s.names, id)
	return uriOutput + id
}

// readOutput returns the whole of an output, at most maxResource bytes of its beginning and its
// end, made safe to display.
func (c *client) readOutput(uri string) (string, error) {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return "", noResource(uri)
	}
	s.mu.Lock()
	o, kept := s.outputs[strings.TrimPrefix(uri, uriOutput)]
	s.mu.Unlock()
	if !kept {
		return "", noResource(uri)
	}
	f, err := os.Open(o.File) // our redactor wrote it
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := readAll(f, maxResource, nil)
	return text.Excerpt(head, nil, max(o.FileBytes, int64(len(head))), maxResource).Text, err
}
