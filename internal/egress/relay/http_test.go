// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ways are the ways in which a request can be sent: in clear, or intercepted with
// either HTTP version.
var ways = []struct {
	name   string
	scheme string
	port   int
	d      proposal.EgressDecision
	h2     bool
}{
	{"clear", "http", 80, allow, false},
	{"intercepted HTTP/1", "https", 443, intercept, false},
	{"intercepted HTTP/2", "https", 443, intercept, true},
}

// each runs f in every way, with h as the server.
func each(t *testing.T, h http.Handler, f func(t *testing.T, w *world, c *http.Client, base string)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t, way.port, way.d)
			if way.scheme == "http" {
				w.http(h)
			} else {
				w.https(h)
			}
			w.start()
			f(t, w, w.client(way.h2), way.scheme+"://allowed.example")
		})
	}
}

func TestRequest(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header()["X-Two"] = []string{"a", "b"}
		fmt.Fprintf(w, "%s %s host=%s ua=%q", r.Method, r.RequestURI, r.Host, r.UserAgent())
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		res, body := get(t, c, base+"/@scope%2fname//x/?q=1;2&%zz=%")
		want := `GET /@scope%2fname//x/?q=1;2&%zz=% host=allowed.example ua="Go-http-client/`
		if !strings.HasPrefix(body, want) {
			t.Errorf("the server was asked %q, want %q…", body, want)
		}
		if got := res.Header["X-Two"]; len(got) != 2 || res.Header.Get("Alt-Svc") != "" {
			t.Errorf("headers that came: %v", res.Header)
		}
		e := w.questions(points.EgressRequest)[0]
		if e.Path != "/@scope/name/x/" || e.Query != 11 || !e.Escaped || e.Method != "GET" || e.Size != 0 || e.Name != "allowed.example" {
			t.Errorf("asked about %+v", e)
		}
		f := w.reported(points.EgressRequest, 1)[0]
		if f.Code != "" || f.Status != 200 || f.Sent < 50 || f.Received < int64(len(body)) {
			t.Errorf("reported %+v", f)
		}
	})
}

func TestRequestsAreDeniedOneByOne(t *testing.T) {
	var touched atomic.Int32
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { touched.Add(1) })
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		touched.Store(0)
		w.policy = func(e proposal.Egress) proposal.EgressDecision {
			if e.Method == "GET" {
				return allow
			}
			return deny
		}
		for range 2 {
			if res, body := get(t, c, base+"/"); res.StatusCode != 200 {
				t.Errorf("GET gave %d %q", res.StatusCode, body)
			}
			res, err := c.Post(base+"/upload", "text/plain", strings.NewReader("what is mine"))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 403 || res.Header.Get(RefusedHeader) != "test.deny" {
				t.Errorf("POST gave %d %v", res.StatusCode, res.Header)
			}
			want := "fumehood: refused POST " + base + "/upload\nnot here (test.deny)\nhint: ask nicely\n"
			if string(text) != want {
				t.Errorf("it says %q, want %q", text, want)
			}
		}
		if n := touched.Load(); n != 2 {
			t.Errorf("the server saw %d requests, want 2", n)
		}
		flows := w.reported(points.EgressRequest, 4)
		if flows[1].Code != "policy" || flows[1].Status != 403 || flows[1].Sent != 0 {
			t.Errorf("reported %+v", flows[1])
		}
	})
}

func TestPolicyThatErrsRefuses(t *testing.T) {
	each(t, http.NotFoundHandler(), func(t *testing.T, w *world, c *http.Client, base string) {
		w.policy = func(proposal.Egress) proposal.EgressDecision {
			return proposal.EgressDecision{Effect: proposal.Allow, Reason: &proposal.Reason{Rule: "error"}}
		}
		if res, _ := get(t, c, base+"/"); res.StatusCode != 403 {
			t.Errorf("gave %d", res.StatusCode)
		}
	})
}

func TestHostMustBeTheName(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served "+r.Host) })
	tests := []struct {
		host string
		want int
	}{
		{"allowed.example", 200},
		{"ALLOWED.example", 200},
		{"allowed.example:PORT", 200},
		{"allowed.example:8080", 403},
		{"allowed.example.", 403},
		{"other.example", 403},
		{"sub.allowed.example", 403},
		{"allowed.example.other.example", 403},
		{"127.0.0.1", 403},
	}
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		for _, test := range tests {
			r, _ := http.NewRequest("GET", base+"/", nil)
			r.Host = strings.Replace(test.host, "PORT", fmt.Sprint(w.port), 1)
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != test.want {
				t.Errorf("host %q gave %d %q, want %d", test.host, res.StatusCode, body, test.want)
			}
			if test.want == 403 && res.Header.Get(RefusedHeader) != "egress.mismatch" {
				t.Errorf("host %q: refused for %q", test.host, res.Header.Get(RefusedHeader))
			}
		}
	})
}

func TestRedirectPassesUnharmed(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://other.example/denied?x=1", http.StatusFound)
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		res, _ := get(t, c, base+"/")
		if res.StatusCode != 302 || res.Header.Get("Location") != "https://other.example/denied?x=1" {
			t.Errorf("gave %d %q", res.StatusCode, res.Header.Get("Location"))
		}
	})
}

func TestBigBodiesStream(t *testing.T) {
	size := int64(sample.Rounds(t, 32, 8, 1)) << 20
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		sum := sha256.New()
		n, _ := io.Copy(io.MultiWriter(sum, w), r.Body)
		w.Header().Set(http.TrailerPrefix+"X-Sum", fmt.Sprintf("%d %x", n, sum.Sum(nil)))
	})
	data := make([]byte, size)
	rand.Read(data)
	want := fmt.Sprintf("%d %x", size, sha256.Sum256(data))
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		r, _ := http.NewRequest("PUT", base+"/", io.MultiReader(bytes.NewReader(data)))
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		sum := sha256.New()
		n, err := io.Copy(sum, res.Body)
		if got := fmt.Sprintf("%d %x", n, sum.Sum(nil)); got != want || err != nil {
			t.Errorf("came back: %s, %v; want %s", got, err, want)
		}
		if got := res.Trailer.Get("X-Sum"); got != want {
			t.Errorf("trailer %q, want %q", got, want)
		}
		f := w.reported(points.EgressRequest, 1)[0]
		if f.Sent < size || f.Received < size || f.Egress.Size != -1 {
			t.Errorf("reported %+v", f)
		}
	})
}

// A server answers each line as it arrives: nothing may wait for the end of the
// body.
func TestBothWaysAtOnce(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.EnableFullDuplex()
		w.WriteHeader(200)
		control.Flush()
		buffer := make([]byte, 100)
		for {
			n, err := r.Body.Read(buffer)
			if n > 0 {
				w.Write(bytes.ToUpper(buffer[:n]))
				control.Flush()
			}
			if err != nil {
				return
			}
		}
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		body, feed := io.Pipe()
		r, _ := http.NewRequest("POST", base+"/", body)
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for _, word := range []string{"one", "two", "three"} {
			io.WriteString(feed, word)
			back := make([]byte, len(word))
			if _, err := io.ReadFull(res.Body, back); err != nil || string(back) != strings.ToUpper(word) {
				t.Fatalf("%q came back as %q, %v", word, back, err)
			}
		}
		feed.Close()
	})
}

func TestRequestTrailers(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, r.Trailer.Get("X-Sum"))
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		r, _ := http.NewRequest("POST", base+"/", io.MultiReader(strings.NewReader("data")))
		r.Trailer = http.Header{"X-Sum": {"at the end"}}
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); string(body) != "at the end" {
			t.Errorf("the server saw the trailer %q", body)
		}
	})
}

func TestContinue(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			http.Error(w, "too big", http.StatusRequestEntityTooLarge)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		for path, want := range map[string]int{"/yes": 200, "/no": 413} {
			asked := false
			r, _ := http.NewRequest("POST", base+path, strings.NewReader(strings.Repeat("x", 5<<20)))
			r.Header.Set("Expect", "100-continue")
			r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got100Continue: func() { asked = true }}))
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want || want == 200 && !asked {
				t.Errorf("%s: status %d, continue %v", path, res.StatusCode, asked)
			}
		}
	})
}

func TestEventsArriveAsTheyAreSent(t *testing.T) {
	next := make(chan struct{})
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		res, err := c.Get(base + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for i := range 3 {
			want := fmt.Sprintf("data: %d\n\n", i)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
				t.Fatalf("event %d: %q, %v", i, got, err)
			}
			next <- struct{}{}
		}
	})
}

func TestBudgetHoldsOverConnections(t *testing.T) {
	lanetest.SkipShort(t)
	var received atomic.Int64
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Add(n)
	})
	each(t, server, func(t *testing.T, w *world, c *http.Client, base string) {
		received.Store(0)
		w.mu.Lock()
		w.connect.Most = 1 << 20
		w.mu.Unlock()
		refused := false
		for range 20 {
			res, err := c.Post(base+"/", "application/octet-stream", bytes.NewReader(make([]byte, 200<<10)))
			if err != nil {
				refused = true
				continue
			}
			refused = refused || res.Header.Get(RefusedHeader) == "egress.limit"
			res.Body.Close()
			c.CloseIdleConnections()
		}
		for end := time.Now().Add(time.Minute); received.Load() < 400<<10 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		if n := received.Load(); n > 1<<20 || n < 400<<10 || !refused {
			t.Errorf("%d bytes of bodies arrived, refused %v", n, refused)
		}
	})
}

func TestUpstreamsCertificateIsVerified(t *testing.T) {
	another, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		roots *CA
		named string
	}{
		"another name": {serverCA, "other.example"},
		"another CA":   {another, "allowed.example"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 443, intercept)
			w.certificate = test.named
			w.https(http.NotFoundHandler())
			w.options.Roots = x509.NewCertPool()
			w.options.Roots.AddCert(test.roots.cert)
			w.start()
			res, body := get(t, w.client(false), "https://allowed.example/")
			if res.StatusCode != 502 || res.Header.Get(RefusedHeader) != "egress.certificate" {
				t.Errorf("gave %d %q", res.StatusCode, body)
			}
			if f := w.reported(points.EgressRequest, 1)[0]; f.Code != "certificate" {
				t.Errorf("reported %+v", f)
			}
		})
	}
}
