// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// A server that repeats what it was sent does not give the credential to the program, in any of
// these spellings, and however it splits them.
func TestEcho(t *testing.T) {
	lanetest.SkipShort(t)
	const token = `s3cret/val+ue "q`
	back := []byte(token)
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	for name, echo := range map[string]string{
		"as it is":      token,
		"the header":    "Authorization: Bearer " + token,
		"twice":         token + token,
		"JSON":          `{"a": "s3cret/val+ue \"q"}`,
		"JSON of PHP":   `s3cret\/val+ue "q`,
		"query":         "?a=" + url.QueryEscape(token),
		"path":          "/" + url.PathEscape(token),
		"hexadecimal":   hex.EncodeToString([]byte(token)),
		"HEXADECIMAL":   strings.ToUpper(hex.EncodeToString([]byte(token))),
		"base64":        base64.StdEncoding.EncodeToString([]byte(token)),
		"backwards":     string(back),
		"spelled":       "s 3 c r e t / v a l + u e   \" q",
		"cut off":       token[:len(token)-1],
		"almost before": token[:8] + token,
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, h2 %v", name, h2), func(t *testing.T) {
				w := newWorld(t, 443, intercept)
				w.https(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("Accept-Encoding") != "identity" {
						t.Errorf("the server saw %v", r.Header)
					}
					if name == "twice" {
						w.Header().Set("Content-Encoding", "Identity")
					}
					for i := range len(echo) {
						w.Write([]byte{echo[i]})
						if i%3 == 0 {
							http.NewResponseController(w).Flush()
						}
					}
				}))
				w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Value: "Bearer " + token}}
				w.start()
				r, _ := http.NewRequest("GET", "https://allowed.example/", nil)
				r.Header.Set("Accept-Encoding", "gzip, br")
				res, err := w.client(h2).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				if name == "cut off" {
					if string(body) != echo {
						t.Errorf("%q instead of %q", body, echo)
					}
					return
				}
				if len(body) != len(echo) || !bytes.Contains(body, []byte(strings.Repeat("*", len(token)))) || bytes.Contains(body, []byte(token)) || bytes.Equal(body, []byte(echo)) {
					t.Errorf("the program got %q", body)
				}
			})
		}
	}
}

// An event of a stream is not late: only what may be the beginning of a credential is held back.
func TestEchoStreams(t *testing.T) {
	w := newWorld(t, 443, intercept)
	seen, late := make(chan bool), false
	w.https(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "data: 1\n\n")
		http.NewResponseController(w).Flush()
		select {
		case <-seen:
		case <-time.After(time.Minute):
			late = true
		}
	}))
	w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Value: "Bearer " + value}}
	w.start()
	res, err := w.client(false).Get("https://allowed.example/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	event := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(res.Body, event); err != nil {
		t.Errorf("%q: %v", event, err)
	}
	close(seen)
	if _, err := io.Copy(io.Discard, res.Body); err != nil || late {
		t.Errorf("%v; the event came only with the end of the stream: %t", err, late)
	}
}

// Without a credential nothing is changed, and the encoding is the program's choice.
func TestNoEcho(t *testing.T) {
	w := newWorld(t, 443, intercept)
	w.https(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, value+" "+r.Header.Get("Accept-Encoding"))
	}))
	w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/mine", Header: "Authorization", Value: "Bearer " + value}}
	w.start()
	r, _ := http.NewRequest("GET", "https://allowed.example/", nil)
	r.Header.Set("Accept-Encoding", "br")
	res, err := w.client(false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != value+" br" {
		t.Errorf("%q, %v", body, err)
	}
}

// However a body arrives, the same bytes are masked, and no others.
func FuzzEcho(f *testing.F) {
	f.Add("Bearer abcdef", "x Bearer abcdef abcdef fedcba", uint8(1))
	f.Add("aaaaaa", "aaaaaaaaaaaaa aaaaa", uint8(3))
	f.Add("abcabcabd", "abcabcabcabd", uint8(4))
	f.Fuzz(func(t *testing.T, value, body string, chunk uint8) {
		patterns := valueSpellings(value)
		if len(value) > 100 || len(body) > 4<<10 || len(patterns) == 0 {
			return
		}
		var from io.Reader = strings.NewReader(body)
		if chunk > 0 {
			from = chunks{from, int(chunk)}
		}
		got, err := io.ReadAll(&maskingReader{ReadCloser: io.NopCloser(from), patterns: patterns})
		if want := maskedWhole(body, patterns); err != nil || string(got) != want {
			t.Fatalf("%q of %q: %q, want %q, %v", value, body, got, want, err)
		}
		late, err := io.ReadAll(&maskingReader{ReadCloser: io.NopCloser(iotest.DataErrReader(strings.NewReader(body))), patterns: patterns})
		if err != nil || !bytes.Equal(late, got) {
			t.Fatalf("%q at once, %q otherwise: %v", late, got, err)
		}
	})
}

// chunks returns at most n bytes at once.
type chunks struct {
	io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) { return c.Reader.Read(p[:min(len(p), c.n)]) }

func maskedWhole(body string, patterns [][]byte) string {
	out := []byte(body)
	for _, p := range patterns {
		for i := range len(body) {
			if strings.HasPrefix(body[i:], string(p)) {
				copy(out[i:], strings.Repeat("*", len(p)))
			}
		}
	}
	return string(out)
}

// A credential of the query is put there alone, encoded, and masked where it comes back.
func TestCredentialOfTheQuery(t *testing.T) {
	const secret = value + "+&x"
	w := newWorld(t, 443, intercept)
	w.https(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "b=%7e&key=" + url.QueryEscape(secret) + "&other=" + placeholder; r.URL.RawQuery != want || r.Header.Get("Authorization") != placeholder {
			t.Errorf("the server saw %s and %v", r.URL.RawQuery, r.Header)
		}
		w.Header().Set("Link", r.URL.String())
		fmt.Fprintf(w, "%s and %s", r.URL.RawQuery, r.FormValue("key"))
	}))
	w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Placeholder: placeholder, Query: "key", Value: secret}}
	w.start()
	r, _ := http.NewRequest("GET", "https://allowed.example/?b=%7e&key="+placeholder+"&other="+placeholder, nil)
	r.Header.Set("Authorization", placeholder)
	res, err := w.client(false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || bytes.Contains(body, []byte(value)) || !bytes.Contains(body, []byte("****")) || strings.Contains(res.Header.Get("Link"), value) {
		t.Errorf("the program got %q and %q, %v", body, res.Header, err)
	}
}

// A credential of another header is put there, and masked where it comes back.
func TestCredentialOfAHeader(t *testing.T) {
	w := newWorld(t, 443, intercept)
	w.https(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != value || r.Header.Get("Cookie") != "a="+placeholder {
			t.Errorf("the server saw %v", r.Header)
		}
		r.Header.Write(w)
	}))
	w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Placeholder: placeholder, Header: "x-api-key", Value: value}}
	w.start()
	r, _ := http.NewRequest("GET", "https://allowed.example/", nil)
	r.Header.Set("X-Api-Key", placeholder)
	r.Header.Set("Cookie", "a="+placeholder)
	res, err := w.client(false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || bytes.Contains(body, []byte(value)) || !bytes.Contains(body, []byte("X-Api-Key: ****")) {
		t.Errorf("the program got %q, %v", body, err)
	}
}
