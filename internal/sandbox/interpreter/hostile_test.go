// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A hostile program that replaces the interpreter: what it sends is ignored, or ends the interpreter.
func TestHostileProgram(t *testing.T) {
	long := strings.Repeat("x", MaxMessage+10) + "\n"
	for name, test := range map[string]struct {
		send  string // NONCE is replaced
		want  string // events
		cause string
		most  int
	}{
		"forged done without nonce": {`{"kind":"done","ms":1}` + "\n" + `{"kind":"stdout","nonce":"NONCE","text":"ok"}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "ok", "", 1},
		"done of an older cell":     {`{"kind":"done","nonce":"00","ms":1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"long line":                 {long + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"no messages":               {"\n\x00\n[]\nnull\n{\"kind\":\"x\"}\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 5},
		"end in a line":             {`{"kind":"done","nonce":"NONCE"`, "", "died", 0},
		"numbers":                   {`{"kind":"done","nonce":"NONCE","ms":1e999}` + "\n" + `{"kind":"stdout","nonce":"NONCE","omitted":-1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":-1}` + "\n", "", "died", 3},
		"a result that is no image": {`{"kind":"result","nonce":"NONCE","data":{"image/png":"<script>"}}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
		"a second hello":            {`{"kind":"hello","nonce":"NONCE","protocol":1}` + "\n" + `{"kind":"done","nonce":"NONCE","ms":1}` + "\n", "", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			i := against(t, test.send)
			text := ""
			o, err := i.Execute(timeout(t, 10*time.Second), Cell{}, func(e Event) { text += e.Text })
			var died *DiedError
			if errors.As(err, &died) != (test.cause == "died") || (err != nil && died == nil) || text != test.want || o.Ignored != test.most {
				t.Errorf("%q, %+v, %v", text, o, err)
			}
		})
	}
}

// against starts an Interpreter whose peer answers the first request with text and ends.
func against(t *testing.T, text string) *Interpreter {
	inside, in := io.Pipe()
	out, outside := io.Pipe()
	go func() {
		defer outside.Close()
		fmt.Fprintln(outside, `{"kind":"hello","protocol":1,"language":"python"}`)
		line, _ := bufio.NewReader(inside).ReadBytes('\n')
		var r request
		_ = json.Unmarshal(line, &r)
		_, _ = io.WriteString(outside, strings.ReplaceAll(text, "NONCE", r.Nonce))
	}()
	i, err := Start(timeout(t, 10*time.Second), in, out, Options{Language: Python, Interrupt: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// A program that ends at once, or says something else, is an error of the start.
func TestHello(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "no hello\n": "interpreter.start", `{"kind":"hello","protocol":2,"language":"python"}` + "\n": "interpreter.start",
		`{"kind":"hello","protocol":1,"language":"node"}` + "\n": "interpreter.start", `{"kind":"done"}` + "\n": "interpreter.start",
	} {
		_, in := io.Pipe()
		_, err := Start(timeout(t, 5*time.Second), in, io.NopCloser(strings.NewReader(text)), Options{Language: Python, Interrupt: func() error { return nil }})
		var died *DiedError
		if code(err) != want || errors.As(err, &died) != (want == "") {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, in := io.Pipe()
	silent, _ := io.Pipe()
	if _, err := Start(timeout(t, 50*time.Millisecond), in, silent, Options{Language: Python, Interrupt: func() error { return nil }}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := Start(context.Background(), in, silent, Options{Language: Python}); code(err) != "interpreter.start" {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"kind":"hello","protocol":1,"language":"python","version":"3"}`, `{"kind":"result","nonce":"a","data":{"text/plain":"1","application/json":"{}"}}`,
		`{"kind":"error","name":"E","value":"v","traceback":"t"}`, `{"kind":"done","ms":1.5}`, `{"kind":"stdout","text":"\ud800","late":true,"omitted":3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data)
		if err != nil {
			return
		}
		if !kinds[m.Kind] || m.Omitted < 0 || len(m.Data) > maxForms {
			t.Errorf("%+v", m)
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeMessage(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// No line is longer than the limit, and no later line is lost.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 2)
	f.Fuzz(func(t *testing.T, data []byte, max int) {
		if max < 1 || max > 1<<20 {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			got, err := readLine(r, max)
			if len(got) > max {
				t.Fatalf("%d bytes", len(got))
			}
			if len(line) < max && !bytes.Equal(got, line) {
				t.Fatalf("%q, not %q (%v)", got, line, err)
			}
		}
	})
}

func code(err error) string {
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	return ""
}

func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
