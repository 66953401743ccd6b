package nats

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions say how a server within this program runs.
type ServerOptions struct {
	Dir               string          // JetStream's folder
	Listen, WebSocket string          // host:port; port 0 chooses one; empty: not offered
	Certificate       tls.Certificate // of both
	Authority         *Authority      // of [NewAuthority]
	Revoked           []string        // public keys of users
	Log               func(line string)
}

// Server is a NATS server within this program.
type Server struct {
	mu      sync.Mutex
	options ServerOptions
	running *server.Server // nil when stopped
	addr    string
	ws      string

	greetings greetings         // of strangers
	suspended []string          // users who are refused for a while
	sent      map[uint64]sentBy // by connection, when [Server.Usage] was asked last:
	asked     time.Time         // then
	total     [2]int64          // of connections and of messages, then
	places    int               // connections at once
	stored    uint64            // when [Server.Stored] was asked last, and the next revision in each bucket then:
	next      map[string]uint64
}

const (
	maxClosed   = 4096 // connections that are remembered
	helloWithin = 4    // seconds: a connection that does not say who it is ends then
	// What may wait to be stored in one bucket: more is refused, and those whose it is try again. Else what one end has
	// sent in a second holds up all others for as long as it takes to store it.
	maxWaiting, maxWaitingBytes = 1024, 64 << 20
)

// How long a server may take to be ready: it reads its folder first.
const readyWithin = 2 * time.Minute

// StartServer starts a server. It offers nothing in plain text, and nothing to
// look at but what connections of the authority's users see.
func StartServer(o ServerOptions) (*Server, error) {
	if o.Authority == nil || o.Dir == "" {
		return nil, errors.New("a broker needs a folder and an authority")
	}
	o.Revoked = slices.Clone(o.Revoked)
	s := &Server{places: maxConnections, options: o, addr: o.Listen, ws: o.WebSocket,
		greetings: greetings{by: map[netip.Prefix]int{}}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

// serverOptions makes what NATS wants to know. Every start needs its own, since
// the server changes them.
func (s *Server) serverOptions() (*server.Options, error) {
	operator, system, accounts, err := s.options.Authority.trust(slices.Concat(s.options.Revoked, s.suspended))
	if err != nil {
		return nil, err
	}
	resolver := &server.MemAccResolver{}
	for public, claims := range accounts {
		if err := resolver.Store(public, claims); err != nil {
			return nil, err
		}
	}
	secure := &tls.Config{Certificates: []tls.Certificate{s.options.Certificate}, MinVersion: tls.VersionTLS13,
		SessionTicketsDisabled: true, // no end uses them
		GetConfigForClient:     s.greetings.admit}
	o := &server.Options{
		ServerName: "parley", NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		TrustedOperators: []*jwt.OperatorClaims{operator}, SystemAccount: system, AccountResolver: resolver,
		// Acknowledged means on the disk; the default is two minutes later.
		JetStream: true, StoreDir: s.options.Dir, SyncAlways: true,
		StreamMaxBufferedMsgs: maxWaiting, StreamMaxBufferedSize: maxWaitingBytes,
		MaxPayload: maxMessage + room,
		// The token of a site with the longest name has about 2 kB.
		MaxControlLine: 16 << 10,
		MaxConn:        s.places, MaxSubs: 256, MaxClosedClients: maxClosed,
		AuthTimeout: helloWithin, TLSTimeout: helloWithin,
		// A client that has been silent for so long is asked once, and disconnected after as long again. Those
		// of this program ping more often, so nobody asks while a long value keeps an answer back.
		PingInterval: pingEvery + pingEvery/8, MaxPingsOut: 1,
		WriteDeadline: time.Minute, // slow lines: a message may have 4 MiB
		DontListen:    s.addr == "",
	}
	if s.addr != "" {
		if o.Host, o.Port, err = hostPort(s.addr); err != nil {
			return nil, err
		}
		o.TLSConfig, o.TLSHandshakeFirst = secure, true
	}
	if s.ws != "" {
		if o.Websocket.Host, o.Websocket.Port, err = hostPort(s.ws); err != nil {
			return nil, err
		}
		o.Websocket.TLSConfig = secure.Clone()
		o.Websocket.HandshakeTimeout = helloWithin * time.Second
	}
	return o, nil
}

func hostPort(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err = cmp.Or(err, bad); err != nil {
		return "", 0, fmt.Errorf("listening on %q: %w\n  hint: HOST:PORT, such as 0.0.0.0:4222", address, err)
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

// start is called with the lock held.
func (s *Server) start() error {
	o, err := s.serverOptions()
	if err != nil {
		return err
	}
	// NATS would end the process for some of what goes wrong here.
	for _, address := range []string{s.addr, s.ws} {
		if address == "" {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("starting the broker: %w", err)
		}
		l.Close()
	}
	ns, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("starting the broker: %w", err)
	}
	log := &serverLog{say: s.options.Log}
	ns.SetLoggerV2(log, false, false, false)
	// The account must be known before anybody connects: NATS tries out its folder
	// when it first hears of it, by removing it, and meanwhile others make streams.
	if _, err := ns.LookupAccount(s.options.Authority.issuer); err != nil {
		ns.Shutdown()
		return fmt.Errorf("starting the broker: %w", err)
	}
	ns.Start()
	ready := ns.ReadyForConnections(readyWithin)
	if fatal := log.failed(); fatal != "" || !ready || !ns.JetStreamEnabled() {
		ns.Shutdown()
		ns.WaitForShutdown()
		if fatal == "" {
			fatal = "it was not ready in time"
		}
		return fmt.Errorf("starting the broker in %s: %s", s.options.Dir, fatal)
	}
	if a := ns.Addr(); a != nil {
		s.addr = a.String()
	}
	if s.ws != "" {
		u, err := url.Parse(ns.WebsocketURL())
		if err != nil {
			ns.Shutdown()
			return err
		}
		s.ws = u.Host
	}
	s.running, s.sent = ns, nil // numbers of connections begin anew
	go s.keepPlaces(ns, s.places)
	return nil
}

// Addr is where NATS clients connect, as host:port; empty if it is not offered.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Revoke disconnects users and refuses them from now on, whatever tokens they
// have or get. It lasts as long as this Server: whoever starts the next one gives
// the keys in its options.
func (s *Server) Revoke(public ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuse(slices.Concat(s.options.Revoked, public), s.suspended)
}

// Suspend disconnects users and refuses them, and none whom an earlier call has suspended and this one does not name.
func (s *Server) Suspend(public ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuse(s.options.Revoked, public)
}

// refuse makes these the users who are refused; the caller holds s.mu.
func (s *Server) refuse(revoked, suspended []string) error {
	claims, err := s.options.Authority.endsClaims(slices.Concat(revoked, suspended))
	if err != nil {
		return err
	}
	s.options.Revoked, s.suspended = revoked, suspended
	if s.running == nil {
		return nil
	}
	encoded, err := claims.Encode(s.options.Authority.operator)
	if err != nil {
		return err
	}
	if err := s.running.AccountResolver().Store(claims.Subject, encoded); err != nil {
		return err
	}
	account, err := s.running.LookupAccount(claims.Subject)
	if err != nil {
		return err
	}
	s.running.UpdateAccountClaims(account, claims)
	return nil
}

// Restart stops the server and starts it on the same ports and folder. After a
// full disk JetStream takes no value until then, even when there is room again. It
// may be called again if it fails.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	return s.start()
}

// Stop ends the server after it has written what it has taken.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

func (s *Server) stop() {
	if s.running == nil {
		return
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

var errStopped = errors.New("the broker within this program is stopped")

// connect connects to the server that runs now.
func (s *Server) connect() (net.Conn, error) {
	s.mu.Lock()
	ns := s.running
	s.mu.Unlock()
	if ns == nil {
		return nil, errStopped
	}
	return ns.InProcessConn()
}

// serverLog passes on what of the server's log a person should see.
type serverLog struct {
	say   func(line string)
	mu    sync.Mutex
	fatal string
}

func (l *serverLog) line(format string, v []any) string {
	line := strings.TrimSpace(fmt.Sprintf(format, v...))
	if l.say != nil {
		l.say("broker: " + line)
	}
	return line
}

func (l *serverLog) failed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *serverLog) Noticef(string, ...any)         {}
func (l *serverLog) Debugf(string, ...any)          {}
func (l *serverLog) Tracef(string, ...any)          {}
func (l *serverLog) Warnf(string, ...any)           {}
func (l *serverLog) Errorf(format string, v ...any) { l.line(format, v) }

// Fatalf does not end the process, as NATS expects: it is part of another program.
func (l *serverLog) Fatalf(format string, v ...any) {
	line := l.line(format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		l.fatal = line
	}
}
