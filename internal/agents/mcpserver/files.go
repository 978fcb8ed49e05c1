// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
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
	Path   string `json:"path" jsonschema:"relative to the workspace, or an output's URI"`
	Line   int    `json:"line,omitempty" jsonschema:"first line, from 1"`
	Lines  int    `json:"lines,omitempty"`
	Offset int    `json:"offset,omitempty" jsonschema:"instead of lines: first byte"`
	Limit  int    `json:"limit,omitempty" jsonschema:"bytes, 16384 if left out, at most 65536"`
}

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old" jsonschema:"text that occurs once"`
	New  string `json:"new"`
	All  bool   `json:"all,omitempty" jsonschema:"replace each"`
}

type writeArgs struct {
	Path     string `json:"path" jsonschema:"relative to the workspace"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" jsonschema:"base64, or left out for text"`
}

type listArgs struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"of the whole path, as src/**/*.go; * if left out"`
}

type diffArgs struct {
	Contents bool     `json:"contents,omitempty" jsonschema:"show a patch"`
	Paths    []string `json:"paths,omitempty" jsonschema:"with contents: files and directories"`
}

type noArgs struct{}

func (c *client) readFile(ctx context.Context, s *session, in readArgs) (*mcp.CallToolResult, any, error) {
	if err := in.checkRange(); err != nil {
		return nil, nil, err
	}
	data, copied, err := c.readFileOrOutput(ctx, s, in.Path)
	if err != nil {
		return nil, nil, err
	}
	if mime := http.DetectContentType(data); in.Offset == 0 && isImage(mime) && len(data) <= maxImage {
		words := fmt.Sprintf("%s, %s", mime, text.Size(int64(len(data))))
		if copied != "" {
			words += ": " + copied
		}
		return toolResult(words, &mcp.ImageContent{MIMEType: mime, Data: data})
	}
	return toolResult(in.describePart(data))
}

// checkRange refuses a part that no file has.
func (in readArgs) checkRange() error {
	switch {
	case in.Offset < 0 || in.Limit < 0 || in.Limit > readMax:
		return invalidArguments(fmt.Sprintf("offset and limit: must be from 0 on, and limit at most %d", readMax))
	case in.Line < 0 || in.Lines < 0 || (in.Line > 0 || in.Lines > 0) && in.Offset > 0:
		return invalidArguments("line and lines: must be from 1 on, and without offset")
	}
	return nil
}

// describePart returns the answer with the part of data that was requested.
func (in readArgs) describePart(data []byte) string {
	words := fmt.Sprintf("%s, %s", shortenMessage(in.Path), text.Size(int64(len(data))))
	part, whole := data[min(in.Offset, len(data)):], "bytes %d to %d"
	begin := len(data) - len(part)
	if in.Line > 0 || in.Lines > 0 {
		lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		first := min(max(in.Line, 1)-1, len(lines))
		last := len(lines)
		if in.Lines > 0 {
			last = first + min(in.Lines, last-first)
		}
		part = bytes.Join(lines[first:last], nil)
		words += fmt.Sprintf(", lines %d to %d of %d", first+1, last, len(lines))
		begin, whole = 0, "of these, bytes %d to %d"
	}
	end := min(cmp.Or(in.Limit, readUsual), len(part))
	if begin > 0 || end < len(part) {
		words += ", " + fmt.Sprintf(whole, begin, begin+end)
	}
	return words + ":\n" + fenceLines(text.Excerpt(part[:end], nil, int64(end), 4*readMax).Text)
}

// readFileOrOutput returns the bytes of a workspace file or of an output, and where the host has a copy of the file.
func (c *client) readFileOrOutput(
	ctx context.Context, s *session, path string,
) (data []byte, copied string, err error) {
	if strings.HasPrefix(path, uriOutput) {
		whole, err := c.readOutput(path)
		return []byte(whole), "", err
	}
	data, out, err := s.Take(ctx, path)
	if err == nil && out.Refused != "" {
		return nil, "", fileError("read", path, out.Refused)
	}
	if dir := s.Artifacts(); dir != "" && out.File != "" {
		copied = filepath.Join(dir, out.File)
	}
	return data, copied, err
}

// fileError says why a file of the workspace cannot be read or written.
func fileError(verb, path, why string) error {
	return &proposal.StopError{Code: "mcp.file", Message: fmt.Sprintf("cannot %s %q: %s", verb, path, why),
		Hint: "list_files shows the files of the workspace"}
}

func (c *client) writeFile(ctx context.Context, s *session, in writeArgs) (*mcp.CallToolResult, any, error) {
	data, err := decodeContent(in.Content, in.Encoding)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxContent {
		return nil, nil, invalidArguments(fmt.Sprintf("content: more than %s", proposal.Bytes(maxContent)))
	}
	if err := s.setup.runBefore(ctx, c.ctx, s, proposal.Proposal{}); err != nil {
		return nil, nil, err
	}
	out, err := s.Put(ctx, in.Path, data)
	if err != nil {
		return nil, nil, err
	}
	if out.Refused != "" {
		return nil, nil, fileError("write", in.Path, out.Refused)
	}
	return toolResult(file{Path: shortenMessage(out.Path), Bytes: out.Bytes}.String())
}

// editFile replaces text of a file that is UTF-8, exactly.
func (c *client) editFile(
	ctx context.Context, s *session, in editArgs,
) (*mcp.CallToolResult, any, error) {
	if in.Old == "" || in.Old == in.New {
		return nil, nil, invalidArguments("old: must not be empty, and not new")
	}
	data, out, err := s.Take(ctx, in.Path)
	switch {
	case err != nil:
		return nil, nil, err
	case out.Refused != "":
		return nil, nil, fileError("edit", in.Path, out.Refused)
	case len(out.Redacted) > 0:
		return nil, nil, fileError("edit", in.Path,
			"parts of it are redacted, and an edit would write the redacted text; change it with a command")
	}
	count := bytes.Count(data, []byte(in.Old))
	switch {
	case count == 0:
		return nil, nil, invalidArguments(fmt.Sprintf("old: %q does not have this text; read_file shows what it has",
			in.Path))
	case count > 1 && !in.All:
		return nil, nil, invalidArguments(fmt.Sprintf("old: %q has this text %d times; add lines around it, or set all",
			in.Path, count))
	}
	return c.writeFile(ctx, s, writeArgs{Path: in.Path, Content: strings.ReplaceAll(string(data), in.Old, in.New)})
}

func (c *client) listFiles(ctx context.Context, s *session, in listArgs) (*mcp.CallToolResult, any, error) {
	pattern := in.Pattern
	if pattern == "" {
		pattern = "*"
	}
	found, err := s.List(ctx, pattern)
	if !strings.HasPrefix(pattern, gitDir) {
		found.Files = slices.DeleteFunc(found.Files, func(f proposal.Change) bool {
			return f.Path == gitDir || strings.HasPrefix(f.Path, gitDir+"/")
		})
	}
	return answerChanges(found, err)
}

// gitDir is listed only for a pattern that names it.
const gitDir = ".git"

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

// patchAnswer answers with the beginning of a patch, and with the resource that has the whole.
func (s *session) patchAnswer(ctx context.Context, paths []string) (*mcp.CallToolResult, any, error) {
	d, err := s.Diff(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	var whole, words strings.Builder
	fmt.Fprintf(&words, "%d files, a patch of %s\n", len(d.Files)+d.Omitted, text.Size(d.Patch.Bytes))
	for i, f := range d.Files {
		if f.Note != "" && i < maxListed { // of what the patch lacks
			fmt.Fprintf(&words, "%s %s: %s\n", f.Kind, shortenMessage(f.Path), shortenMessage(f.Note))
		}
		if whole.Len() < maxStdout {
			whole.WriteString(f.Text)
		}
	}
	shown := text.Excerpt([]byte(whole.String()), nil, d.Patch.Bytes, maxStdout)
	if d.Patch.Bytes > 0 {
		words.WriteString(fenceLines(shown.Text))
	}
	if shown.Omitted > 0 {
		words.WriteString("full patch: " + s.keepOutput(strings.TrimPrefix(filepath.Base(d.Patch.File), "~"),
			proposal.Stream{File: d.Patch.File, FileBytes: d.Patch.Bytes}))
	}
	return toolResult(words.String())
}

func answerChanges(found proposal.Changes, err error) (*mcp.CallToolResult, any, error) {
	if err != nil {
		return nil, nil, err
	}
	listed := found.Files[:min(len(found.Files), maxListed)]
	head := fmt.Sprintf("%d of %d files", len(listed), len(found.Files)+found.Omitted)
	if len(listed) == 0 {
		return toolResult(head)
	}
	var words strings.Builder
	for _, f := range listed {
		if f.Kind != "" {
			words.WriteString(f.Kind + " ")
		}
		if f.Type != "file" {
			words.WriteString(f.Type + " ")
		}
		fmt.Fprintln(&words, shortenMessage(f.Path), f.Bytes)
	}
	return toolResult(head + ":\n" + fenceLines(words.String()))
}
