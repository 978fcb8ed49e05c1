// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// random returns a text of n letters, the same for the same seed. Secrets are generated
// here, so that this file contains none.
func random(seed uint64, n int, from string) string {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

var (
	githubToken = "ghp" + "_" + random(1, 36, letters)
	awsKey      = "AK" + "IA" + random(2, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	slackToken  = "xoxb" + "-123456789012-123456789012-" + random(3, 24, letters)
	privateKey  = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + random(4, 64, letters) + "\n" + random(5, 64, letters) +
		"\n-----END " + "RSA PRIVATE KEY-----\n"
)

func scanner(t testing.TB) *Scanner {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// wrapped returns base64 in lines of 76, as in MIME.
func wrapped(s string) string {
	var b strings.Builder
	for text := encode(s); text != ""; {
		n := min(76, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

func fully(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
	}
	return b.String()
}

type request struct {
	url    string
	header http.Header
	body   string
}

var requests = []struct {
	name string
	request
	want []proposal.EgressSecret
}{
	{"nothing", request{"/v1/things?a=b", http.Header{"Accept": {"*/*"}}, `{"text":"the token of a parser is a word"}`}, nil},
	{"body", request{"/", nil, `{"text":"` + githubToken + `"}`}, found1("github-pat", "body")},
	{"form", request{"/", nil, "text=" + awsKey + "&x=1"}, found1("aws-access-token", "body")},
	{"query", request{"/collect?token=" + githubToken + "&x=1", nil, ""}, found1("github-pat", "url")},
	{"path", request{"/collect/" + awsKey + "/x", nil, ""}, found1("aws-access-token", "url")},
	{"header", request{"/", http.Header{"X-Note": {githubToken}}, ""}, found1("github-pat", "header")},
	{"header's name", request{"/", http.Header{githubToken: {"x"}}, ""}, found1("github-pat", "header")},
	{"second value of a header", request{"/", http.Header{"X-Note": {"a", slackToken}}, ""}, found1("slack-bot-token", "header")},
	{"percent", request{"/x?t=" + fully(githubToken), nil, ""}, found1("github-pat", "url")},
	{"percent in a body", request{"/", nil, "t=" + url.QueryEscape(privateKey) + "&x=1"}, found1("private-key", "body")},
	{"base64", request{"/", nil, `{"blob":"` + encode("my key: "+githubToken) + `"}`}, found1("github-pat", "body")},
	{"base64 of URLs", request{"/x?d=" + base64.RawURLEncoding.EncodeToString([]byte("k=>?>?"+githubToken+"\n")), nil, ""}, found1("github-pat", "url")},
	{"base64 after a path", request{"/v1/abc/" + encode("."+githubToken), nil, ""}, found1("github-pat", "url")},
	{"base64 in lines", request{"/", nil, wrapped(strings.Repeat("harmless text. ", 9) + githubToken + " and more of it")}, found1("github-pat", "body")},
	{"base64 in a JSON string", request{"/", nil, strings.ReplaceAll(wrapped(strings.Repeat("x y z. ", 10)+privateKey), "\n", `\n`)}, found1("private-key", "body")},
	{"base64 with its = escaped", request{"/x?d=" + url.QueryEscape(encode("a "+githubToken)), nil, ""}, found1("github-pat", "url")},
	{"private key", request{"/", nil, privateKey}, found1("private-key", "body")},
	{"the library's comment counts for nothing", request{"/", nil, githubToken + " # gitleaks" + ":allow"}, found1("github-pat", "body")},
	{"among bytes that are no text", request{"/", nil, "\xff\xfe\x00" + githubToken + "\x80"}, found1("github-pat", "body")},
	{"at the end of the first part", request{"/", nil, strings.Repeat("x ", MaxBody/2-20) + githubToken}, found1("github-pat", "body")},
	{"after the first part", request{"/", nil, strings.Repeat("x ", MaxBody/2) + githubToken}, nil},
	{"a low entropy is none", request{"/", nil, "ghp" + "_" + strings.Repeat("a", 36)}, nil},
	{"too long a URL", request{"/?" + strings.Repeat("a ", maxHead), nil, ""}, found1(Unscanned, "url")},
}

func found1(rule, where string) []proposal.EgressSecret {
	return []proposal.EgressSecret{{Rule: rule, Where: where}}
}

func TestScan(t *testing.T) {
	s := scanner(t)
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			got := s.Scan(c.url, c.header, []byte(c.body))
			if diff := cmp.Diff(c.want, specific(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// specific removes the finds of the generic key or token rule.
func specific(list []proposal.EgressSecret) []proposal.EgressSecret {
	var kept []proposal.EgressSecret
	for _, s := range list {
		if s.Rule != "generic-api-key" {
			kept = append(kept, s)
		}
	}
	return kept
}

// The current formats of large providers' keys are found whole, whatever follows them.
func TestProviderKeys(t *testing.T) {
	const hex, upper, words = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", letters + "_-"
	r := redactor(t)
	for i, c := range []struct{ rule, prefix, rest string }{
		{"openai-api-key", "sk-proj-", random(1, 156, words)},
		{"openai-api-key", "sk-proj-", random(2, 48, letters)},
		{"openai-api-key", "sk-svcacct-", random(3, 74, words) + "T3Blbk" + "FJ" + random(4, 74, words)},
		{"openai-api-key", "sk-admin-", random(5, 58, words) + "T3Blbk" + "FJ" + random(6, 58, words)},
		{"anthropic-api-key", "sk-ant-api03-", random(7, 93, words) + "AA"},
		{"anthropic-api-key", "sk-ant-admin01-", random(8, 95, letters)},
		{"anthropic-api-key", "sk-ant-oat01-", random(9, 95, words)},
		{"openrouter-api-key", "sk-or-v1-", random(10, 64, hex)},
		{"gcp-api-key", "AIza", random(11, 35, letters)},
		{"gcp-api-key", "AQ.Ab", random(12, 48, letters)},
		{"github-pat", "ghp_", random(13, 36, letters)},
		{"github-fine-grained-pat", "github_pat_", random(14, 22, letters) + "_" + random(15, 59, letters)},
		{"github-app-token", "ghs_", random(16, 36, letters)},
		{"github-app-token", "ghs_", random(17, 9, hex) + "_" + random(18, 60, letters) + "." + random(19, 300, words) + "." + random(20, 86, letters)},
		{"aws-access-token", "AKIA", random(21, 16, upper)},
		{"aws-access-token", "ASIA", random(22, 16, upper)},
		{"slack-bot-token", "xoxb-", "123456789012-123456789012-" + random(23, 24, letters)},
		{"slack-app-token", "xapp-", "1-A0" + random(24, 9, upper) + "-1234567890123-" + random(25, 64, hex)},
		{"stripe-access-token", "sk_live_", random(26, 99, letters)},
		{"stripe-webhook-secret", "whsec_", random(27, 32, letters)},
		{"huggingface-access-token", "hf_", random(28, 34, letters)},
		{"npm-access-token", "npm_", random(29, 36, letters)},
		{"pypi-upload-token", "pypi-", "AgEIcHlwaS5vcmc" + random(30, 120, words)},
		{"xai-api-key", "xai-", random(31, 80, letters)},
		{"groq-api-key", "gsk_", random(32, 52, letters)},
		{"replicate-api-token", "r8_", random(33, 37, letters)},
		{"databricks-api-token", "dapi", random(34, 32, hex)},
		{"nvidia-api-key", "nvapi-", random(35, 64, letters)},
		{"e2b-api-key", "e2b_", random(36, 40, hex)},
	} {
		for _, around := range [][2]string{{"", ""}, {"a ", " b"}, {"export X=", "\n"}, {`{"key": "`, `", "x": 1}`}, {"?key=", "&x=1"}, {"(", ")"}, {"<k>", "</k>"}, {"['", "']"}} {
			text := around[0] + c.prefix + c.rest + around[1]
			want := around[0] + "[redacted " + c.rule + "]" + around[1]
			if out, _ := r.Text([]byte(text)); string(out) != want {
				t.Errorf("%d: %q became %q", i, text, out)
			}
		}
		placeholder := c.prefix + strings.Repeat("x", len(c.rest))
		if out, _ := r.Text([]byte(placeholder)); string(out) != placeholder {
			t.Errorf("the placeholder %q became %q", placeholder, out)
		}
	}
}

func TestScanGeneric(t *testing.T) {
	got := scanner(t).Scan("/", http.Header{"X-Api-Key": {random(9, 40, letters)}}, nil)
	if diff := cmp.Diff(found1("generic-api-key", "header"), got); diff != "" {
		t.Error(diff)
	}
}

// Scan finds nothing in the result of Redact, which has the same length and keeps
// everything that is not a secret.
func TestRedact(t *testing.T) {
	s := scanner(t)
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(c.body)
			header := c.header.Clone()
			url, masked, out := s.Redact(c.url, c.header, body)
			if got := s.Scan(url, masked, out); len(got) > 0 && len(c.url) <= maxHead {
				t.Errorf("still found: %v in %q %v %q", got, url, masked, out)
			}
			if len(url) != len(c.url) || len(out) != len(c.body) {
				t.Errorf("lengths %d and %d, want %d and %d", len(url), len(out), len(c.url), len(c.body))
			}
			if c.want == nil && (url != c.url || string(out) != c.body) {
				t.Errorf("%q and %q were changed to %q and %q", c.url, c.body, url, out)
			}
			if !cmp.Equal(header, c.header) || string(body) != c.body {
				t.Error("the request itself was changed")
			}
		})
	}
}

func TestRedactKeepsTheRest(t *testing.T) {
	s := scanner(t)
	url, header, body := s.Redact("/a/b?token="+githubToken+"&page=2",
		http.Header{"Accept": {"text/html"}, "X-Note": {"see " + slackToken}}, []byte(`{"user":"ada","text":"`+githubToken+`","n":1}`))
	stars := strings.Repeat("*", len(githubToken))
	if want := "/a/b?token=" + stars + "&page=2"; url != want {
		t.Errorf("got %q, want %q", url, want)
	}
	if want := `{"user":"ada","text":"` + stars + `","n":1}`; string(body) != want {
		t.Errorf("got %q, want %q", body, want)
	}
	if header.Get("Accept") != "text/html" || !strings.HasPrefix(header.Get("X-Note"), "see ***") {
		t.Errorf("got %v", header)
	}
}

// Every pattern compiles, and every keyword has the form that candidates needs.
func TestRules(t *testing.T) {
	s := scanner(t)
	if len(s.rules) < 200 {
		t.Fatalf("%d rules", len(s.rules))
	}
	for i := range s.rules {
		r := &s.rules[i]
		if n := r.pattern().NumSubexp(); r.Group > n {
			t.Errorf("%s: group %d of %d", r.ID, r.Group, n)
		}
		for j := range r.Allow {
			r.Allow[j].patterns()
		}
		for _, word := range r.Keywords {
			if word == "" || word != lowerASCII(word) {
				t.Errorf("%s: keyword %q", r.ID, word)
			}
		}
	}
}

// hardest returns a body that activates every rule.
func hardest(s *Scanner) string {
	words := strings.Join(s.keywords, "=\"") + "=\" "
	return strings.Repeat(words, MaxBody/len(words)+1)[:MaxBody]
}

func TestTimeIsBounded(t *testing.T) {
	lanetest.SkipShort(t)
	s := scanner(t)
	list := s.findSecrets(hardest(s), maxFound, timeBudget{limit: -1})
	if len(list) != 1 || list[0].rule != Unscanned {
		t.Errorf("out of time: got %v", list)
	}
	for _, text := range []string{hardest(s), strings.Repeat("key=abcdefghij1", MaxBody)[:MaxBody], strings.Repeat("tokenkeysecretapi", MaxBody)[:MaxBody]} {
		clock := cputime.Start()
		s.Scan("/", nil, []byte(text))
		if d := clock.Stop(); d > 3*patience {
			t.Errorf("%.40q: one scan took %v of a processor", text, d)
		} else {
			t.Logf("%.40q: %v", text, d)
		}
	}
}

// More calls than there are slots all end, and find what they must.
func TestManyAtOnce(t *testing.T) {
	s := scanner(t)
	results := make(chan int)
	for range 16 {
		go func() { results <- len(specific(s.Scan("/?t="+awsKey, nil, []byte(githubToken)))) }()
	}
	for range 16 {
		if n := <-results; n != 2 {
			t.Errorf("found %d, want 2", n)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range requests {
		if len(c.url)+len(c.body) < 4096 {
			f.Add(c.url, c.body)
		}
	}
	s := scanner(f)
	f.Fuzz(func(t *testing.T, url, body string) {
		u, _, b := s.Redact(url, nil, []byte(body))
		if len(u) != len(url) || len(b) != len(body) {
			t.Fatalf("lengths changed: %q %q", u, b)
		}
		if left := s.Scan(u, nil, b); len(left) > 0 && len(url) <= maxHead {
			t.Fatalf("still found %v in %q %q", left, u, b)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	s := scanner(b)
	text := strings.Repeat(`{"id":17,"name":"the quick brown fox","note":"jumps over"},`, MaxBody)[:MaxBody]
	for name, body := range map[string]string{"json": text, "hardest": hardest(s), "base64": encode(text)[:MaxBody]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(MaxBody)
			for b.Loop() {
				s.Scan("/v1/things?page=2", http.Header{"User-Agent": {"bench"}}, []byte(body))
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}
