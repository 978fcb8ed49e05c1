// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"bytes"
	"context"
	"crypto/subtle"
	_ "embed" // bridge.py
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/agents/stdin"
	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// portBridge connects to one port of the sandbox's loopback interface. Policy decides this text with the port. Its
// input are messages: one byte of kind (o opens a connection, d is data, a says that data was taken, c closes), the
// connection's number and the length of the content, two bytes each. Its output are lines, which are searched for
// secrets as all output is: the connection's number, the length of the data, 0 at the connection's end, and the data,
// in which line ends and backslashes are escaped.
//
//go:embed bridge.py
var portBridge string

// A PortRange are ports of sandboxes that clients may reach.
type PortRange struct{ First, Last uint16 }

// ParsePorts reads ports and ranges, such as 3000,8000-8999.
func ParsePorts(list string) ([]PortRange, error) {
	var ports []PortRange
	for one := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(one, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err != nil || err2 != nil || first == 0 || last < first {
			return nil, fmt.Errorf("invalid port or range of ports %q", one)
		}
		ports = append(ports, PortRange{uint16(first), uint16(last)})
	}
	return ports, nil
}

// The bounds of a bridge. What all connections may have on their way must fit into what waits of a command's output,
// because the rest is dropped: see gate.WithOutput.
const (
	maxBridges     = 4     // of one sandbox
	maxConnections = 8     // of one bridge
	bridgeChunk    = 12288 // bytes of a message
	bridgeWindow   = 4     // messages of a connection on their way
)

// bridgeIdle is how long a bridge without connections stays.
const bridgeIdle = 30 * time.Second

// A bridge is a command in a sandbox through which connections reach one port.
type bridge struct {
	sandbox *sandbox
	port    uint16
	cancel  context.CancelFunc
	idle    *time.Timer
	stopped atomic.Bool // it takes no more connections
	failed  error       // why it ended, when ended is closed
	ended   chan struct{}

	sending sync.Mutex // guards input
	input   *stdin.Pipe

	mu    sync.Mutex
	count uint16
	conns map[uint16]*bridged
	line  []byte // of its output, incomplete
}

// bridged is one connection.
type bridged struct {
	net.Conn             // this end of a pipe, whose other end an HTTP client has
	received chan []byte // is closed when the connection is removed from the bridge
}

// portOfHost is a sandbox's host name: PORT-ID.localhost.
var portOfHost = pattern.New(`^([1-9][0-9]{0,4})-(sb[a-z0-9]{26})\.localhost$`)

// A portRequest names a port of a sandbox.
type portRequest struct {
	id   string
	port uint16
}

// findPortByHost returns the port of a sandbox that a host name names. A web page of the sandbox has it as its origin.
func (s *Server) findPortByHost(host string) (p portRequest, ok bool) {
	name, isHere := strings.CutSuffix(host, s.suffix)
	m := portOfHost.FindStringSubmatch(name)
	if !isHere || m == nil {
		return p, false
	}
	return s.parsePort(m[2], m[1])
}

// findPortByHeaders returns the port of a sandbox that a request names in its headers, as to E2B's one address for all
// sandboxes. ok is false for a request to the server itself.
func (s *Server) findPortByHeaders(h http.Header) (p portRequest, ok bool) {
	at := h.Get("E2b-Sandbox-Port")
	if at == envdPort || at == codePort {
		return p, false
	}
	return s.parsePort(h.Get("E2b-Sandbox-Id"), at)
}

func (s *Server) parsePort(id, port string) (p portRequest, ok bool) {
	n, err := strconv.ParseUint(port, 10, 16)
	return portRequest{id, uint16(n)}, err == nil && len(s.o.Ports) > 0
}

// servePorts passes requests for ports of sandboxes to them, and all others to next. Those that a web page has caused
// are refused, unless the page is of the port itself.
func (s *Server) servePorts(addr string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr)
	s.suffix = ":" + port
	own := localhttp.RefuseBrowserRequests(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := s.findPortByHeaders(r.Header); ok {
			s.servePort(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, isPort := s.findPortByHost(r.Host)
		origins := r.Header.Values("Origin")
		switch {
		case !isPort:
			own.ServeHTTP(w, r)
		case len(origins) > 0 && !slices.Equal(origins, []string{"http://" + r.Host}), isOfOtherPage(r):
			http.Error(w, "fumehood: requests from other origins are refused", http.StatusForbidden)
		default:
			s.servePort(w, r, p)
		}
	})
}

// isOfOtherPage reports whether a page of another origin loads something, such as a script, for which browsers send no
// Origin. A link to the port is not that.
func isOfOtherPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// servePort serves a request for a port, if the operator has opened it and the client may reach it.
func (s *Server) servePort(w http.ResponseWriter, r *http.Request, p portRequest) {
	s.mu.Lock()
	b := s.sandboxes[p.id]
	s.mu.Unlock()
	token := r.Header.Get("E2B-Traffic-Access-Token")
	switch {
	case b == nil:
		failPort(w, p.id, "The sandbox was not found")
	case !b.about.isPublic && subtle.ConstantTimeCompare([]byte(token), []byte(b.traffic)) != 1:
		failJSON(w, refuseRequest(unauthenticated, "the header E2B-Traffic-Access-Token is missing or wrong: "+
			"set it to trafficAccessToken, or create the sandbox with network.allowPublicTraffic"))
	case !slices.ContainsFunc(s.o.Ports, func(r PortRange) bool { return r.First <= p.port && p.port <= r.Last }):
		failJSON(w, refuseRequest(permissionDenied, "the port %d is not among those of --ports", p.port))
	default:
		s.serveRequest(w, r, b, failJSON, func(w http.ResponseWriter, r *http.Request, b *sandbox) error {
			b.forwardToPort(w, r, p.port)
			return nil
		})
	}
}

// failPort answers in the words of E2B's proxy.
func failPort(w http.ResponseWriter, id, message string) {
	status := http.StatusBadGateway
	sendAnswer(w, status, map[string]any{"sandboxId": id, "message": message, "code": status})
}

// forwardToPort forwards a request, or a connection that is upgraded, to a port of the sandbox's loopback interface.
// The tokens of the sandbox and the key stay here.
func (b *sandbox) forwardToPort(w http.ResponseWriter, r *http.Request, port uint16) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(int(port))})
			p.Out.Host = p.In.Host
			for _, name := range []string{"E2B-Traffic-Access-Token", "X-Access-Token", "X-API-KEY", "E2b-Sandbox-Id",
				"E2b-Sandbox-Port"} {
				p.Out.Header.Del(name)
			}
		},
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxCall,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.dialPort(ctx, port) }},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			var known *refusal
			var stop *proposal.StopError
			if errors.As(err, &known) || errors.As(err, &stop) {
				failJSON(w, err)
				return
			}
			failPort(w, b.id, "The sandbox is running but port is not open")
		},
	}
	proxy.ServeHTTP(w, r)
}

// dialPort connects to a port of the sandbox's loopback interface. That nothing listens there shows only when the
// connection ends.
func (b *sandbox) dialPort(ctx context.Context, port uint16) (net.Conn, error) {
	if err := b.waitForSetUp(ctx); err != nil {
		return nil, err
	}
	for range 3 { // the bridge that is found may end at the same time
		x, err := b.findBridge(port)
		if err != nil {
			return nil, err
		}
		if conn, err := x.openConnection(); conn != nil || err != nil {
			return conn, err
		}
	}
	return nil, refuseRequest(busy, "the connection to the port has ended: try again")
}

// findBridge returns the bridge to port, and starts it if there is none.
func (b *sandbox) findBridge(port uint16) (*bridge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.bridges[port]
	if before != nil && !before.stopped.Load() {
		return before, nil
	}
	if before == nil && len(b.bridges) >= maxBridges {
		return nil, refuseRequest(resourceExhausted, "the sandbox has connections to %d ports", maxBridges)
	}
	input, err := stdin.Open(b.gate)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	x := &bridge{sandbox: b, port: port, cancel: cancel, ended: make(chan struct{}), input: input,
		conns: map[uint16]*bridged{}}
	x.idle = time.AfterFunc(bridgeIdle, x.stopIfIdle)
	b.bridges[port] = x
	go x.run(input.WithInput(gate.WithOutput(ctx, x.readChunk)))
	return x, nil
}

// run runs the bridge's command to its end.
func (x *bridge) run(ctx context.Context) {
	p := proposal.Proposal{Argv: []string{"python3", "-c", portBridge, strconv.Itoa(int(x.port))}, Stdin: stdin.Later,
		Why: "getHost of the E2B SDK"}
	r, err := x.sandbox.proposeAfterSetUp(ctx, x.sandbox.runInBackground, p)
	switch {
	case err != nil:
	case !r.Runnable():
		err = refuseRequest(permissionDenied, "policy refuses the connection: %s", reasonsOf(r).joinLines())
	case !r.Result.Succeeded() && ctx.Err() == nil:
		err = refuseRequest(internal, "the connection to the port has ended: %s: %s", describeEnd(*r.Result),
			text.Inline(string(r.Result.Stderr.Head), 300))
	default:
		err = refuseRequest(busy, "the connection to the port has ended: try again")
	}
	x.sandbox.mu.Lock()
	if x.sandbox.bridges[x.port] == x {
		delete(x.sandbox.bridges, x.port)
	}
	x.sandbox.mu.Unlock()
	x.stop()
	x.input.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = err
	close(x.ended)
	x.endConnections()
}

// endConnections ends all connections. The caller holds mu.
func (x *bridge) endConnections() {
	for number, c := range x.conns {
		x.endConnection(number, c)
	}
}

// endConnection has deliver end when it has passed on what was received. The caller holds mu.
func (x *bridge) endConnection(number uint16, c *bridged) {
	if x.conns[number] != c {
		return
	}
	delete(x.conns, number)
	close(c.received)
	if len(x.conns) == 0 {
		x.idle.Reset(bridgeIdle)
	}
}

// stop kills the bridge's command.
func (x *bridge) stop() {
	x.stopped.Store(true)
	x.cancel()
}

func (x *bridge) stopIfIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.conns) == 0 {
		x.stop()
	}
}

// openConnection opens a connection. It returns nil if the bridge takes no more.
func (x *bridge) openConnection() (net.Conn, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped.Load() {
		return nil, nil
	}
	if len(x.conns) >= maxConnections {
		return nil, refuseRequest(resourceExhausted, "the port has %d connections at a time", maxConnections)
	}
	x.idle.Stop()
	ours, theirs := net.Pipe()
	for x.count++; x.conns[x.count] != nil; x.count++ {
	}
	number, c := x.count, &bridged{Conn: ours, received: make(chan []byte, bridgeWindow)}
	x.conns[number] = c
	go x.send(number, c)
	go x.deliver(number, c)
	return &portConn{theirs, x}, nil
}

// A portConn is a connection whose errors say why its bridge has ended.
type portConn struct {
	net.Conn
	x *bridge
}

func (c *portConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && errors.Is(err, io.EOF) {
		select {
		case <-c.x.ended:
			return 0, c.x.failed
		default:
		}
	}
	return n, err
}

// send sends what the client writes.
func (x *bridge) send(number uint16, c *bridged) {
	err := x.writeMessage('o', number, nil)
	buffer := make([]byte, bridgeChunk)
	for err == nil {
		var n int
		n, err = c.Read(buffer)
		if n > 0 {
			err = errors.Join(err, x.writeMessage('d', number, buffer[:n]))
		}
	}
	_ = x.writeMessage('c', number, nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.endConnection(number, c)
}

// deliver passes on what the port has sent until the connection ends.
func (x *bridge) deliver(number uint16, c *bridged) {
	for data := range c.received {
		if _, err := c.Write(data); err != nil || x.writeMessage('a', number, nil) != nil {
			break
		}
	}
	_ = c.Close() // which ends send
}

func (x *bridge) writeMessage(kind byte, number uint16, data []byte) error {
	message := binary.BigEndian.AppendUint16([]byte{kind}, number)
	message = append(binary.BigEndian.AppendUint16(message, uint16(len(data))), data...)
	x.sending.Lock()
	defer x.sending.Unlock()
	err := x.input.Write(message)
	if err != nil {
		x.stop() // a message may have been sent in part
	}
	return err
}

// readChunk reads the bridge's output, which the sandbox may have forged. A line in which something was redacted, as
// all other lines that are not data, ends the bridge: what is left of the data must not look whole.
func (x *bridge) readChunk(chunk proposal.Chunk) {
	if chunk.Stream != proposal.ChunkStdout {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.line = append(x.line, chunk.Data...)
	for {
		line, rest, whole := bytes.Cut(x.line, []byte("\n"))
		if !whole {
			break
		}
		x.line = rest
		if !x.readLine(line) {
			x.fail("what came from it is not data, or looks like a secret")
		}
	}
	if chunk.Dropped > 0 || chunk.Withheld != "" || len(x.line) > 3*bridgeChunk {
		x.fail("what came from it is not complete")
	}
}

func (x *bridge) fail(why string) {
	x.line = nil
	if x.stop(); len(x.conns) > 0 {
		x.sandbox.server.o.Notice("sandbox " + x.sandbox.id + ": connections to port " + strconv.Itoa(int(x.port)) +
			" ended: " + why)
	}
	x.endConnections()
}

// unescapeLine restores data of a bridge.
var unescapeLine = strings.NewReplacer(`\\`, `\`, `\n`, "\n")

// readLine reads one line, and reports whether it is data of a connection, or of one that has ended here.
func (x *bridge) readLine(line []byte) bool {
	parts := strings.SplitN(string(line), ":", 3)
	if len(parts) != 3 {
		return false
	}
	number, err := strconv.ParseUint(parts[0], 10, 16)
	data := []byte(unescapeLine.Replace(parts[2]))
	if err != nil || parts[1] != strconv.Itoa(len(data)) || len(data) > bridgeChunk {
		return false
	}
	c := x.conns[uint16(number)]
	switch {
	case c == nil:
	case len(data) == 0:
		x.endConnection(uint16(number), c)
	default:
		select {
		case c.received <- data:
		default: // more than the window
			return false
		}
	}
	return true
}
