// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"bytes"
	"context"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An entry is a file as the SDK knows it.
type entry struct {
	Name        string            `json:"name"`
	Type        string            `json:"type,omitempty"`
	Path        string            `json:"path"`
	Size        string            `json:"size,omitempty"`
	Mode        uint32            `json:"mode"`
	Permissions string            `json:"permissions"`
	Owner       string            `json:"owner"`
	Group       string            `json:"group"`
	Modified    string            `json:"modifiedTime,omitempty"`
	Target      string            `json:"symlinkTarget,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`

	below string // the path below the directory that was listed
	stamp string // changes when the content does
}

// entryFormat is what find prints of a file, each field with a NUL behind it.
const (
	entryFormat = `%y\0%s\0%m\0%M\0%u\0%g\0%T@\0%l\0%P\0`
	entryFields = 9
)

// statFormat is the same for stat, which may describe a file in a place whose tree may not be read.
const statFormat = `%F\0%s\0%a\0%A\0%U\0%G\0%Y\0\0\0`

var fileTypes = map[string]string{"f": "FILE_TYPE_FILE", "d": "FILE_TYPE_DIRECTORY", "l": "FILE_TYPE_SYMLINK",
	"regular file": "FILE_TYPE_FILE", "regular empty file": "FILE_TYPE_FILE", "directory": "FILE_TYPE_DIRECTORY",
	"symbolic link": "FILE_TYPE_SYMLINK"}

const typeDirectory = "FILE_TYPE_DIRECTORY"

// parseEntries reads what find printed about files at and below dir. The sandbox's own processes name files, so
// nothing of it is trusted.
func parseEntries(out []byte, dir place) ([]entry, error) {
	fields := strings.Split(strings.ToValidUTF8(string(out), "\uFFFD"), "\x00")
	var list []entry
	for ; len(fields) > entryFields; fields = fields[entryFields:] {
		f := fields[:entryFields]
		size, err := strconv.ParseInt(f[1], 10, 64)
		mode, err2 := strconv.ParseUint(f[2], 8, 16)
		seconds, err3 := strconv.ParseFloat(f[6], 64)
		if err != nil || err2 != nil || err3 != nil || size < 0 || math.Abs(seconds) > math.MaxInt32 {
			return nil, refuseRequest(internal, "the list of files cannot be read")
		}
		below := path.Clean("/" + f[8])[1:]
		at := dir.join(below)
		if fileTypes[f[0]] == typeDirectory && size == 0 {
			size = 4096 // as of other file systems
		}
		e := entry{Name: path.Base(at.shown), Type: fileTypes[f[0]], Path: at.shown, Size: strconv.FormatInt(size, 10),
			Mode: uint32(mode), Permissions: f[3], Owner: userName(f[4]), Group: userName(f[5]),
			Modified: time.UnixMilli(int64(seconds * 1000)).UTC().Format(time.RFC3339Nano), below: below,
			stamp: f[0] + f[1] + " " + f[6]}
		if f[7] != "" {
			e.Target = f[7]
			if !path.IsAbs(e.Target) {
				e.Target = path.Join(path.Dir(at.shown), e.Target)
			}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		return slices.Compare(strings.Split(a.below, "/"), strings.Split(b.below, "/"))
	})
	return list, nil
}

// userName is the SDK's name of the sandbox's user.
func userName(name string) string {
	if name == "fumehood" {
		return "user"
	}
	return name
}

// maxEntriesOut bounds what find prints.
const maxEntriesOut = 8 << 20

// listFiles returns the files at p and below. If p is a link, it is followed.
func (b *sandbox) listFiles(ctx context.Context, p place, depth uint32) ([]entry, error) {
	return b.describeFiles(ctx, p, depth, "find", "-H", p.argument(), "-maxdepth", strconv.Itoa(int(depth)), "-printf",
		entryFormat)
}

// describeFiles returns the files at p, down to depth, that a command describes.
func (b *sandbox) describeFiles(ctx context.Context, p place, depth uint32, argv ...string) ([]entry, error) {
	r, err := b.runForFiles(ctx, "files", proposal.Proposal{Argv: argv})
	if err != nil {
		return nil, err
	}
	if r.Result.Stderr.Bytes > 0 && strings.Contains(string(r.Result.Stderr.Head), "No such file or directory") &&
		r.Result.Stdout.Bytes == 0 {
		return nil, refuseRequest(notFound, "there is no file %q", text.Inline(p.shown, 200))
	}
	if r.Result.Stdout.Bytes == 0 && p.rel != "" {
		return b.listBySession(ctx, p, depth)
	}
	if r.Result.Stdout.Bytes > maxEntriesOut {
		return nil, refuseRequest(resourceExhausted, "there are too many files: list parts of the directory")
	}
	var out bytes.Buffer
	passStream(r.Result.Stdout, func(data []byte) { out.Write(data) })
	list, err := parseEntries(out.Bytes(), p)
	for i := range list {
		list[i].Metadata = b.metadata.of(list[i].Path)
	}
	return list, err
}

// sessionTypes are what the session calls the types of files.
var sessionTypes = map[string]string{"file": "FILE_TYPE_FILE", "dir": typeDirectory, "symlink": "FILE_TYPE_SYMLINK"}

// literal is a pattern that matches name alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// listBySession is describeFiles for a sandbox without GNU's find, whose session knows less: no modes, owners and
// times. It does not follow links.
func (b *sandbox) listBySession(ctx context.Context, p place, depth uint32) ([]entry, error) {
	var list []entry
	dirs, pattern := map[string]bool{path.Dir(p.rel): true}, literal.Replace(p.rel)
	for level := uint32(0); level <= depth && len(dirs) > 0; level++ {
		found, err := b.session.List(ctx, pattern)
		switch {
		case err != nil:
			return nil, b.endOnError(err)
		case found.Omitted > 0:
			return nil, refuseRequest(resourceExhausted, "there are too many files: list parts of the directory")
		case level == 0 && len(found.Files) == 0:
			return nil, refuseRequest(notFound, "there is no file %q", text.Inline(p.shown, 200))
		}
		below := map[string]bool{}
		for _, f := range found.Files {
			if level > 0 && !dirs[path.Dir(f.Path)] {
				continue // behind a link
			}
			name := strings.TrimPrefix(path.Join("/", f.Path), path.Join("/", p.rel))
			at := p.join(strings.TrimPrefix(name, "/"))
			below[f.Path] = f.Type == "dir"
			list = append(list, entry{Name: path.Base(at.shown), Type: sessionTypes[f.Type], Path: at.shown,
				Size: strconv.FormatInt(f.Bytes, 10), below: strings.TrimPrefix(name, "/"),
				stamp: strconv.FormatInt(f.Bytes, 10)})
		}
		dirs, pattern = below, path.Join(pattern, "*")
	}
	return list, nil
}

// statFile returns the file at p, which must be there.
func (b *sandbox) statFile(ctx context.Context, p place) (entry, error) {
	argv := []string{"find", p.argument(), "-maxdepth", "0", "-printf", entryFormat}
	if p.rel == "" {
		argv = []string{"stat", "--printf=" + statFormat, "--", p.argument()}
	}
	list, err := b.describeFiles(ctx, p, 0, argv...)
	if err == nil && len(list) != 1 {
		err = refuseRequest(internal, "the file cannot be described")
	}
	if err != nil {
		return entry{}, err
	}
	return list[0], nil
}

// statIfThere is statFile; its entry has no Path if there is no such file.
func (b *sandbox) statIfThere(ctx context.Context, p place) (entry, error) {
	e, err := b.statFile(ctx, p)
	if err != nil && refusalOf(err).code == notFound {
		return entry{}, nil
	}
	return e, err
}
