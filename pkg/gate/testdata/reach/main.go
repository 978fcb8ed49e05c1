// SPDX-License-Identifier: Apache-2.0

// Command reach measures one way to a server, for BenchmarkNetwork. It prints how many MiB
// a second the fastest of some long answers had, and what new connections with a short
// answer took, in milliseconds: the median and the tenth percentile, and the medians up to
// the end of the lookup, of the connection, and of the TLS handshake.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"time"
)

var (
	proxy = flag.String("proxy", "", "address of a CONNECT proxy")
	size  = flag.Int("size", 0, "bytes of a long answer; 0 for none")
	count = flag.Int("count", 0, "number of long answers or, without size, of connections")
	h2    = flag.Bool("h2", false, "use HTTP/2 over TLS")
)

func main() {
	flag.Parse()
	if err := measure(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(base string) error {
	t := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: *h2, DisableCompression: true}
	if *proxy != "" {
		t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: *proxy})
	}
	all, want := make([][]time.Duration, phases), max(*size, 1)
	for range *count {
		took, err := get(t, fmt.Sprint(base, "/", want), want)
		if err != nil {
			return err
		}
		for i := range all {
			all[i] = append(all[i], took[i])
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, took := range all {
		slices.Sort(took)
	}
	if *size > 0 {
		fmt.Println(float64(*size) / (1 << 20) / all[0][0].Seconds())
		return nil
	}
	half := *count / 2
	fmt.Println(0, ms(all[0][half]), ms(all[0][*count/10]), ms(all[1][half]), ms(all[2][half]), ms(all[3][half]))
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

const phases = 4

// get returns when a request had ended: all of it, the lookup, the connection, and the TLS
// handshake.
func get(t *http.Transport, from string, want int) (took [phases]time.Duration, err error) {
	begin := time.Now()
	ends := func(phase int) { took[phase] = time.Since(begin) }
	trace := httptrace.ClientTrace{
		DNSDone:          func(httptrace.DNSDoneInfo) { ends(1) },
		ConnectDone:      func(string, string, error) { ends(2) },
		TLSHandshakeDone: func(tls.ConnectionState, error) { ends(3) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), &trace), http.MethodGet, from, nil)
	if err != nil {
		return took, err
	}
	r, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return took, err
	}
	defer r.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 256<<10))
	if err != nil || int(n) != want || r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s, %d bytes: %v", from, r.Status, n, err)
	}
	ends(0)
	return took, err
}
