package nats

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/net/http/httpproxy"

	"parley/engine/wire"
)

var _ wire.Wire = (*Conn)(nil)

// Options say how one end connects.
type Options struct {
	// tls://host:port, nats://host:port (TLS after the server's greeting), wss://host:port; tried in turn
	URLs   []string
	Server *Server        // instead of URLs: within this process, without sockets; survives Restart
	Roots  *x509.CertPool // who may have signed the server's certificate; nil: whom the system trusts
	JWT    string         // of an [Authority]
	Seed   []byte         // of [NewUser]
	Name   string         // site, guest_ID, or coordinator, as in the JWT
	// Replicas above 0 let this end make the buckets that are missing, on so many
	// servers each. A coordinator makes them; a site may not.
	Replicas int
	Proxy    func(*url.URL) (*url.URL, error) // nil: as HTTPS_PROXY and NO_PROXY say
	// connections and refusals, in plain words; may be nil; called one at a time
	Log func(line string)
}

// Roots reads those of [Options] from PEM; nil, and so whom the system trusts, if it is empty.
func Roots(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, errors.New("the pinned certificate cannot be read")
	}
	return p, nil
}

// Conn is one end's connection. It connects again for ever when it is lost. Its
// methods may be called at the same time.
type Conn struct {
	o       Options
	key     nkeys.KeyPair
	stopped context.CancelFunc
	done    chan struct{} // closed when the loop has ended
	ctx     context.Context
	t       traffic
	slots   chan struct{} // values on their way
	begun   atomic.Int64  // connections so far
	within  atomic.Int64  // how long a request may take now, if more than requestWithin
	again   time.Duration // after how long a value is looked at without a wake
	log     sync.Mutex

	mu      sync.Mutex
	jwt     string
	nc      *nats.Conn                    // nil: not connected
	up      chan struct{}                 // closed when connected
	trouble map[string]string             // by address: why there is no connection to it
	pending map[string]map[*call]struct{} // by subject
	watched map[string]*watch             // by subject of the wake
	heard   time.Time                     // when the last wake came
	stored  map[string]time.Time          // by bucket: when the broker last acknowledged a put of this end
	most    map[place]int                 // bytes of a value: see Limit
	putting map[string][]*putting         // by bucket, while something is put there: see together
}

const (
	requestWithin = 5 * time.Second // one request, of a short value
	requestMost   = time.Minute     // a reply that keeps coming
	slowest       = 128 << 10       // bytes a second that a line should carry: longer values have longer
	atOnce        = 15              // values on their way: below what a server keeps for a connection, 64 MiB
	backOff       = 250 * time.Millisecond
	backOffMost   = 30 * time.Second
	lookAgain     = time.Minute
)

// pingEvery is how often an end pings; tests do so more often. Firewalls may forget a line after a minute.
var pingEvery = 40 * time.Second

var errSilent = errors.New("nothing has come in for too long: the line is open at this end only")

// Connect returns at once, and connects behind the scenes. An error is one of the
// options only.
func Connect(o Options) (*Conn, error) {
	return connect(o, lookAgain)
}

func connect(o Options, again time.Duration) (*Conn, error) {
	key, err := o.check()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	// Ends that hear of something together do not look together, nor do those come back so that lost the same server.
	jitter := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	again += time.Duration(jitter.Int64N(int64(again/2))) - again/4
	c := &Conn{
		o: o, key: key, jwt: o.JWT, again: again, ctx: ctx, stopped: stop, done: make(chan struct{}),
		slots: make(chan struct{}, atOnce), up: make(chan struct{}), trouble: map[string]string{},
		pending: map[string]map[*call]struct{}{}, watched: map[string]*watch{}, stored: map[string]time.Time{},
		most: map[place]int{}, putting: map[string][]*putting{},
	}
	go c.run(jitter)
	return c, nil
}

func (o *Options) check() (nkeys.KeyPair, error) {
	if (o.Server == nil) == (len(o.URLs) == 0) {
		return nil, errors.New("connecting to the broker: no address was given\n  hint: tls://HOST:PORT or " +
			"wss://HOST:PORT")
	}
	for _, address := range o.URLs {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || u.Scheme != "tls" && u.Scheme != "nats" && u.Scheme != "wss" ||
			u.User != nil {
			return nil, fmt.Errorf("connecting to the broker: %.200q is no address of one\n  hint: tls://HOST:PORT or "+
				"wss://HOST:PORT", address)
		}
	}
	public, err := PublicOf(o.Seed)
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	claims, err := jwt.DecodeUserClaims(o.JWT)
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: reading the token: %w", err)
	}
	if claims.Subject != public || claims.Name != o.Name {
		return nil, fmt.Errorf("connecting to the broker: the token is for %q with another key or name than those "+
			"of %q", claims.Name, o.Name)
	}
	if o.Proxy == nil {
		f := httpproxy.FromEnvironment().ProxyFunc()
		o.Proxy = f
	}
	return nkeys.FromSeed(o.Seed)
}

// run keeps a connection until Close.
func (c *Conn) run(jitter *rand.Rand) {
	defer close(c.done)
	for wait := backOff; ; {
		for _, u := range c.addresses() {
			if c.session(u) {
				wait = backOff
			}
			if c.ctx.Err() != nil {
				return
			}
		}
		t := time.NewTimer(wait/2 + time.Duration(jitter.Int64N(int64(wait))))
		select {
		case <-t.C:
		case <-c.ctx.Done():
			t.Stop()
			return
		}
		wait = min(2*wait, backOffMost)
	}
}

// session connects once and stays until the connection is lost; it returns
// whether there was one. Each has a new client of NATS that does not reconnect by
// itself, so that nothing is sent later than its caller believes.
func (c *Conn) session(address string) (connected bool) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	d := &dialer{ctx: ctx, server: c.o.Server, proxy: c.o.Proxy, t: &c.t}
	closed := make(chan struct{})
	nc, err := nats.Connect(address, c.clientOptions(address, d, closed)...)
	if d.err != nil {
		err = d.err
	}
	if err == nil {
		err = c.subscribe(nc)
		if err != nil {
			nc.Close()
		}
	}
	if err != nil {
		c.fail(address, c.explain(address, err))
		return false
	}
	c.begin(nc, address)
	silent := make(chan struct{})
	go c.watchLine(ctx, silent)
	select {
	case <-closed:
		err = nc.LastError()
	case <-silent:
		err = errSilent
		cancel() // the socket first: what is to be written could not be
		<-closed
	case <-c.ctx.Done():
		nc.Close()
		<-closed
	}
	if err == nil || errors.Is(err, nats.ErrPermissionViolation) {
		err = errors.New("the connection broke")
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the other end closed it")
	}
	c.fail(address, c.explain(address, err))
	return true
}

func (c *Conn) clientOptions(address string, d *dialer, closed chan struct{}) []nats.Option {
	o := []nats.Option{
		nats.Name("parley " + c.o.Name), nats.CustomInboxPrefix(inbox(c.o.Name)), nats.NoEcho(),
		nats.NoReconnect(), nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
		// see watchLine
		nats.Timeout(connectWithin), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(math.MaxInt),
		nats.UserJWT(c.credentials, c.key.Sign),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.refused(err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	}
	if d.server != nil {
		return append(o, nats.InProcessServer(d))
	}
	o = append(o, nats.SetCustomDialer(d), nats.Secure(&tls.Config{RootCAs: c.o.Roots, MinVersion: tls.VersionTLS13}))
	if strings.HasPrefix(address, "tls:") {
		o = append(o, nats.TLSHandshakeFirst())
	}
	return o
}

// watchLine closes silent if nothing comes in for longer than two pings and an answer, or the longest value on its way
// on a slow line, take. The client of NATS would count pings, which wait behind such a value.
func (c *Conn) watchLine(ctx context.Context, silent chan struct{}) {
	last, heard := c.t.in.Load(), time.Now()
	for {
		before := time.Now()
		select {
		case <-time.After(pingEvery / 2):
		case <-ctx.Done():
			return
		}
		// This program, or its machine, may have stood still itself.
		if in := c.t.in.Load(); in != last || time.Since(before) > pingEvery {
			last, heard = in, time.Now()
		}
		c.mu.Lock()
		longest := 0
		for _, calls := range c.pending {
			for call := range calls {
				longest = max(longest, call.size)
			}
		}
		c.mu.Unlock()
		if time.Since(heard) > 2*pingEvery+2*requestWithin+time.Duration(longest)*time.Second/slowest {
			close(silent)
			return
		}
	}
}

func (c *Conn) credentials() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jwt, nil
}

// subscribe asks for the wakes of what this end may read.
func (c *Conn) subscribe(nc *nats.Conn) error {
	subject := "w.>"
	switch {
	case strings.HasPrefix(c.o.Name, guest):
		subject = place{control, "task." + c.o.Name}.wake()
	case c.o.Name != coordinator:
		subject = place{"*", "task." + c.o.Name}.wake()
	}
	if _, err := nc.Subscribe(subject, c.woken); err != nil {
		return err
	}
	return nc.FlushTimeout(connectWithin)
}

// begin makes a connection the one that is used.
func (c *Conn) begin(nc *nats.Conn, address string) {
	c.mu.Lock()
	c.nc = nc
	c.begun.Add(1)
	clear(c.trouble)
	close(c.up)
	for _, w := range c.watched { // wakes may have been missed
		w.signal(0)
	}
	c.mu.Unlock()
	if c.o.Server != nil {
		address = "this program"
	}
	c.say("connected to the broker at " + address)
}

// fail records why there is no connection, and says so if that is news.
func (c *Conn) fail(address, trouble string) {
	c.mu.Lock()
	was, same := c.nc != nil, c.trouble[address] == trouble
	if was {
		c.nc, c.up = nil, make(chan struct{})
		for _, calls := range c.pending {
			for call := range calls {
				call.cancel(errBroke)
			}
		}
	}
	c.trouble[address] = trouble
	c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil || same:
	case was:
		c.say("the connection to the broker is lost, trying again: " + trouble)
	default:
		c.say("cannot connect to the broker, trying again: " + trouble)
	}
}

var quoted = regexp.MustCompile(`"(\S+)"`)

// refused takes in what the server says beside its answers.
func (c *Conn) refused(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return // the end of a connection tells what it is about
	}
	m := quoted.FindStringSubmatch(err.Error())
	if len(m) < 2 {
		return
	}
	reason := fmt.Errorf("%w: %s may not use %s\n  hint: the token that the coordinator has signed says what it may",
		errRefused, c.o.Name, m[1])
	c.mu.Lock()
	for call := range c.pending[m[1]] {
		call.cancel(reason)
	}
	c.mu.Unlock()
	c.say(reason.Error())
}

func (c *Conn) say(line string) {
	if c.o.Log == nil {
		return
	}
	c.log.Lock()
	defer c.log.Unlock()
	c.o.Log(line)
}

// Connected says whether there is a connection now.
func (c *Conn) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nc != nil
}

// Begun is how many connections there have been: after another one, the broker may have lost what was put before.
func (c *Conn) Begun() int64 { return c.begun.Load() }

// Trouble says why there is no connection, for each address; nothing if there is
// one.
func (c *Conn) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nc != nil {
		return ""
	}
	var all []string
	for _, u := range c.addresses() {
		if t := c.trouble[u]; t != "" {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return "not connected yet"
	}
	return strings.Join(all, "\n")
}

// addresses are those that are tried in turn.
func (c *Conn) addresses() []string {
	if c.o.Server != nil {
		return []string{"nats://in-process"}
	}
	return c.o.URLs
}

// Bytes counts what has passed at the socket, encryption and all.
func (c *Conn) Bytes() (in, out uint64) { return c.t.in.Load(), c.t.out.Load() }

// SetCredentials gives a new token, which the next connection uses.
func (c *Conn) SetCredentials(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jwt = token
}

// Close ends the connection and all that waits for it.
func (c *Conn) Close() {
	c.stopped()
	<-c.done
}

// connection waits for a connection, but not long.
func (c *Conn) connection(ctx context.Context) (*nats.Conn, error) {
	t := time.NewTimer(requestWithin)
	defer t.Stop()
	for {
		c.mu.Lock()
		nc, up := c.nc, c.up
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return nil, errClosed
		case nc != nil:
			return nc, nil
		}
		select {
		case <-up:
		case <-t.C:
			return nil, fmt.Errorf("there is no connection to the broker: %s", c.Trouble())
		case <-c.ctx.Done():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errClosed = errors.New("the connection to the broker was closed by this program")
