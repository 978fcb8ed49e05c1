// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// refused fails unless err is for the client.
func refused(t *testing.T, err error) {
	t.Helper()
	var r *refusal
	if !errors.As(err, &r) || statuses[r.code] < 400 {
		t.Fatalf("not a refusal: %v", err)
	}
}

// A frame that is accepted is the whole request, and what it starts is in the workspace.
func FuzzStart(f *testing.F) {
	for _, message := range []string{startEcho, `{}`, `{"process":{"cmd":"ls","args":["-l"],"envs":{"A":"b"},"cwd":"/workspace/x"},"tag":"t","stdin":false}`, `{"process":null}`, `[]`, `{"pty":{}}`} {
		f.Add([]byte(framed(message)))
	}
	f.Add([]byte("\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		message, err := parseFrame(data)
		if err != nil {
			refused(t, err)
			return
		}
		if framed(string(message)) != string(data) {
			t.Fatalf("%q is not %q", message, data)
		}
		in, err := decodeStrictly[startRequest](message)
		if err != nil {
			refused(t, err)
			return
		}
		p, err := in.toProposal(0)
		switch {
		case err != nil:
			refused(t, err)
		case p.Run == "" && len(p.Argv) == 0 && !strings.HasSuffix(in.Process.Args[2], p.Run):
			t.Fatalf("%+v proposes %+v", in, p)
		case path.IsAbs(p.Cwd) || strings.HasPrefix(path.Clean(p.Cwd), ".."):
			t.Fatalf("cwd %q", p.Cwd)
		}
	})
}

// A path is absolute and clean, and below the workspace what is relative to it stays there.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"", ".", "a", "/home/user", "/workspace/a", "/home/usera", "/home/user/../a", "../a", "a/../../b", "~", "~/a", "/", "//workspace/a", "a*[b]?\\", "a\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := findPlace(name)
		if err != nil {
			refused(t, err)
			return
		}
		if !path.IsAbs(p.shown) || p.shown != path.Clean(p.shown) || strings.ContainsRune(p.shown, 0) {
			t.Fatalf("%q becomes %+v", name, p)
		}
		if p.rel != "" && (path.IsAbs(p.rel) || p.rel != path.Clean(p.rel) || p.rel == ".." || strings.HasPrefix(p.rel, "../")) {
			t.Fatalf("%q becomes %+v", name, p)
		}
		if a := p.argument(); strings.HasPrefix(a, "-") || slices.Contains(shellOperators, a) {
			t.Fatalf("%q is the argument %q", name, a)
		}
		if again, err := findPlace(p.shown); err != nil || again != p {
			t.Fatalf("%q becomes %+v, and that %+v, %v", name, p, again, err)
		}
	})
}

// The files of a form are not larger than the form.
func FuzzForm(f *testing.F) {
	f.Add([]byte(formOf("a", "b/c")), "x", "")
	f.Add([]byte(formOf("a")), "x", "b")
	f.Add([]byte("--x\r\n\r\n\r\n--x--"), "x", "")
	f.Add([]byte(formOf("../a")), "", "")
	f.Fuzz(func(t *testing.T, data []byte, boundary, only string) {
		u := &uploads{}
		if err := u.addForm(bytes.NewReader(data), boundary, only); err != nil {
			refused(t, err)
			return
		}
		size := 0
		for _, file := range u.small {
			if file.place.isRoot() {
				t.Fatalf("path %+v", file.place)
			}
			size += len(file.data)
		}
		if len(u.small) == 0 || len(u.small) > maxFiles || size > len(data) {
			t.Fatalf("%d files of %d bytes in %d", len(u.small), size, len(data))
		}
	})
}

// What find prints is read whole or refused, whatever the names of files are.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("d\x000\x00755\x00drwxr-xr-x\x00fumehood\x00fumehood\x001.5\x00\x00\x00l\x003\x00777\x00lrwxrwxrwx\x00a\x00b\x00-1\x00../x\x00a/b\x00"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, out []byte) {
		dir := place{shown: home, rel: "."}
		list, err := parseEntries(out, dir)
		if err != nil {
			refused(t, err)
			return
		}
		for _, e := range list {
			if e.Path != home && !strings.HasPrefix(e.Path, home+"/") {
				t.Fatalf("%q is not below", e.Path)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The requests of the API and of the code interpreter.
func FuzzRequests(f *testing.F) {
	for _, text := range []string{`{"templateID":"base","metadata":{"a":"b"},"envVars":{"A":"b"},"timeout":300,"secure":true}`, `{"timeout":-1}`, `{"code":"1","context_id":"python","env_vars":{}}`, `{"code":"x","language":"JS"}`, `{"language":"r"}`, `null`, ``} {
		f.Add([]byte(text), "a=b&c=d")
	}
	f.Add([]byte(`{}`), "%zz")
	f.Fuzz(func(t *testing.T, data []byte, query string) {
		if in, err := readNewSandbox(data); err != nil {
			refused(t, err)
		} else if err := in.refuseUnsupported(false); err != nil {
			refused(t, err)
		} else if in.Volumes != nil || len(in.wishes) > maxWishes || len(in.Metadata)+len(in.EnvVars) > 2*maxEntries {
			t.Fatalf("accepted %+v", in)
		}
		b := &sandbox{contexts: newContexts()}
		if in, err := decodeStrictly[cell](data); err != nil {
			refused(t, err)
		} else if p, _, _, err := b.proposeCell(in); err != nil {
			refused(t, err)
		} else if _, keeps := interpreter.LanguageOf(p.Language); p.Code != dedentCode(in.Code) || (p.Context != "") != keeps {
			t.Fatalf("%+v proposes %+v", in, p)
		}
		b.about.Metadata = map[string]string{"a": "b"}
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if wanted, err := readFilter(q); err != nil {
			refused(t, err)
		} else {
			wanted(b)
		}
	})
}

// Whatever a cell shows is one line of JSON, and cannot be another event.
func FuzzResult(f *testing.F) {
	f.Add("text/plain", "1", true)
	f.Add("application/json", `{"type":"end_of_execution"}`, false)
	f.Add("type", "error", false)
	f.Add("is_main_result", "x", false)
	f.Add(tableType, `{"schema":{"fields":[{"name":"index"},{"name":"a"}],"primaryKey":["index"]},"data":[{"index":0,"a":1}]}`, true)
	f.Add("x/json", "{\"a\":\n1}", true)
	f.Fuzz(func(t *testing.T, kind, form string, main bool) {
		data, err := json.Marshal(resultOf(proposal.Display{Value: main, Forms: map[string]string{kind: form}}))
		if err != nil || strings.Contains(string(data), "\n") {
			t.Fatalf("%q, %v", data, err)
		}
		var event struct {
			Type string `json:"type"`
			Main bool   `json:"is_main_result"`
		}
		if err := json.Unmarshal(data, &event); err != nil || event.Type != "result" || event.Main != main {
			t.Fatalf("%s: %v", data, err)
		}
	})
}
