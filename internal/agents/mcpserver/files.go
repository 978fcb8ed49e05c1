// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	readUsual  = 16 << 10 // bytes that read_file returns if no limit is given
	readMax    = 64 << 10
	maxListed  = 200 // files of one answer
	maxContent = 4 << 20
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"relative to the workspace, or the URI of an output"`
	Offset int    `json:"offset,omitempty" jsonschema:"first byte"`
	Limit  int    `json:"limit,omitempty" jsonschema:"bytes, 16384 if left out, at most 65536"`
}

type writeArgs struct {
	Path     string `json:"path" jsonschema:"relative to the workspace"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" jsonschema:"base64 for content that is not text"`
}

type listArgs struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"shell pattern that the whole path must match, for example src/*.go; * if left out"`
}

type diffArgs struct {
	Contents bool     `json:"contents,omitempty" jsonschema:"show the changed lines, as a patch"`
	Paths    []string `json:"paths,omitempty" jsonschema:"with contents: files and directories to compare; all if left out"`
}

type noArgs struct{}

// A content is the structured answer of read_file.
type content struct {
	Path      string `json:"path"`
	Bytes     int    `json:"total_bytes"`
	Offset    int    `json:"offset,omitempty"`
	Truncated bool   `json:"truncated"`
	Text      string `json:"text,omitempty"`
	Refused   string `json:"refused,omitempty"`
}

func (c *client) readFile(ctx context.Context, s *session, in readArgs) (*mcp.CallToolResult, any, error) {
	if in.Offset < 0 || in.Limit < 0 || in.Limit > readMax {
		return nil, nil, invalidArguments(fmt.Sprintf("offset and limit: must be from 0 on, and limit at most %d",
			readMax))
	}
	data, refused, err := c.readFileOrOutput(ctx, s, in.Path)
	if err != nil {
		return nil, nil, err
	}
	out := content{Path: shortenMessage(in.Path), Bytes: len(data), Offset: in.Offset, Refused: shortenMessage(refused)}
	if refused != "" {
		return toolResult("refused: "+out.Refused, out)
	}
	if mime := http.DetectContentType(data); in.Offset == 0 && isImage(mime) && len(data) <= maxImage {
		return toolResult(fmt.Sprintf("%s, %s", mime, text.Size(int64(len(data)))), out,
			&mcp.ImageContent{MIMEType: mime, Data: data})
	}
	return out.partAnswer(data, in)
}

// partAnswer returns the answer with the part of data that was requested.
func (out content) partAnswer(data []byte, in readArgs) (*mcp.CallToolResult, any, error) {
	limit := in.Limit
	if limit == 0 {
		limit = readUsual
	}
	begin := min(in.Offset, len(data))
	end := min(begin+limit, len(data))
	out.Truncated = end < len(data)
	out.Text = text.Excerpt(data[begin:end], nil, int64(end-begin), 4*readMax).Text
	words := fmt.Sprintf("%s, %s", out.Path, text.Size(int64(len(data))))
	if begin > 0 || out.Truncated {
		words += fmt.Sprintf(", bytes %d to %d", begin, end)
	}
	return toolResult(words+":\n"+fenceLines(out.Text), out)
}

// readFileOrOutput returns the bytes of a workspace file or of an output, or why they are refused.
func (c *client) readFileOrOutput(
	ctx context.Context, s *session, path string,
) (data []byte, refused string, err error) {
	if strings.HasPrefix(path, uriOutput) {
		whole, err := c.readOutput(path)
		return []byte(whole), "", err
	}
	data, out, err := s.Take(ctx, path)
	return data, out.Refused, err
}

func (c *client) writeFile(ctx context.Context, s *session, in writeArgs) (*mcp.CallToolResult, any, error) {
	data, err := decodeContent(in.Content, in.Encoding)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxContent {
		return nil, nil, invalidArguments(fmt.Sprintf("content: more than %s", proposal.Bytes(maxContent)))
	}
	out, err := s.Put(ctx, in.Path, data)
	if err != nil {
		return nil, nil, err
	}
	wrote := file{shortenMessage(out.Path), out.Bytes, shortenMessage(out.Refused)}
	return toolResult(wrote.String(), wrote)
}

// A listAnswer is the structured answer of list_files and diff.
type listAnswer struct {
	Total     int      `json:"total"`
	Truncated bool     `json:"truncated"`
	Files     []change `json:"files"`
}

type change struct {
	Path  string `json:"path"`
	Kind  string `json:"kind,omitempty"` // added, changed or removed
	Type  string `json:"type,omitempty"` // if not a file
	Bytes int64  `json:"bytes"`
	Note  string `json:"note,omitempty"` // what the patch lacks
}

func (c *client) listFiles(ctx context.Context, s *session, in listArgs) (*mcp.CallToolResult, any, error) {
	pattern := in.Pattern
	if pattern == "" {
		pattern = "*"
	}
	found, err := s.List(ctx, pattern)
	return answerChanges(found, err)
}

func (c *client) handleDiff(ctx context.Context, s *session, in diffArgs) (*mcp.CallToolResult, any, error) {
	if in.Contents {
		return s.patchAnswer(ctx, in.Paths)
	}
	if len(in.Paths) > 0 {
		return nil, nil, invalidArguments("paths: needs contents")
	}
	found, err := s.Changes(ctx)
	return answerChanges(found, err)
}

// A patch is the structured answer of diff with contents.
type patch struct {
	listAnswer
	Bytes int64  `json:"patch_bytes"`
	Full  string `json:"full_patch,omitempty"` // resource
}

// patchAnswer answers with the beginning of a patch, and with the resource that has the whole.
func (s *session) patchAnswer(ctx context.Context, paths []string) (*mcp.CallToolResult, any, error) {
	d, err := s.Diff(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	out := patch{listAnswer: listAnswer{Total: len(d.Files) + d.Omitted, Files: []change{}}, Bytes: d.Patch.Bytes}
	var whole strings.Builder
	for i, f := range d.Files {
		if i < maxListed {
			out.Files = append(out.Files, change{Path: shortenMessage(f.Path), Kind: f.Kind,
				Note: shortenMessage(f.Note)})
		}
		if whole.Len() < maxStdout {
			whole.WriteString(f.Text)
		}
	}
	out.Truncated = len(out.Files) < out.Total
	shown := text.Excerpt([]byte(whole.String()), nil, d.Patch.Bytes, maxStdout)
	words := fmt.Sprintf("%d of %d files, %s\n", len(out.Files), out.Total, text.Size(d.Patch.Bytes))
	if d.Patch.Bytes > 0 {
		words += fenceLines(shown.Text)
	}
	if shown.Omitted > 0 {
		out.Full = s.keepOutput(strings.TrimPrefix(filepath.Base(d.Patch.File), "~"),
			proposal.Stream{File: d.Patch.File, FileBytes: d.Patch.Bytes})
		words += "full patch: " + out.Full
	}
	return toolResult(words, out)
}

func answerChanges(found proposal.Changes, err error) (*mcp.CallToolResult, any, error) {
	if err != nil {
		return nil, nil, err
	}
	out := listAnswer{Total: len(found.Files) + found.Omitted, Files: []change{}}
	var words bytes.Buffer
	for _, f := range found.Files[:min(len(found.Files), maxListed)] {
		x := change{Path: shortenMessage(f.Path), Kind: f.Kind, Type: f.Type, Bytes: f.Bytes}
		if x.Type == "file" {
			x.Type = ""
		}
		out.Files = append(out.Files, x)
		fmt.Fprintln(&words, strings.TrimSpace(strings.Join([]string{x.Kind, x.Type, x.Path}, " ")), x.Bytes)
	}
	out.Truncated = len(out.Files) < out.Total
	head := fmt.Sprintf("%d of %d files", len(out.Files), out.Total)
	if len(out.Files) == 0 {
		return toolResult(head, out)
	}
	return toolResult(head+":\n"+fenceLines(words.String()), out)
}
