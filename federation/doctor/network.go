package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"

	"parley/engine/nats"
)

// address is one way to the broker.
type address struct {
	url  *url.URL
	host string // and port
	via  *url.URL
}

func parseAddress(text string, o Options) (a address, err error) {
	if a.url, err = url.Parse(text); err != nil {
		return a, err
	}
	if a.url.Hostname() == "" {
		return a, fmt.Errorf("%q is no address", text)
	}
	port := a.url.Port()
	if port == "" {
		port = map[string]string{"wss": "443"}[a.url.Scheme]
	}
	if port == "" {
		port = "4222"
	}
	a.host = net.JoinHostPort(a.url.Hostname(), port)
	a.via, err = o.Proxy(&url.URL{Scheme: "https", Host: a.host})
	return a, err
}

// way looks at one address from below: its name, the proxy before it, its port, and
// who holds the certificate there. It ends where something fails.
func way(ctx context.Context, text string, roots *x509.CertPool, o Options) (r Report) {
	a, err := parseAddress(text, o)
	if err != nil {
		return Report{fail("names", "look at HTTPS_PROXY, NO_PROXY and the addresses in the folder", err)}
	}
	r = append(r, name(ctx, a.url.Hostname(), a.via != nil, o))
	if r[0].Result == failed {
		return r
	}
	return append(r, touch(ctx, a, roots, o)...)
}

// touch connects to an address, and looks at who answers.
func touch(ctx context.Context, a address, roots *x509.CertPool, o Options) (r Report) {
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	c, err := nats.Dial(ctx, a.host, o.Proxy)
	if err != nil {
		return append(r, unreachable(a, err))
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if a.via != nil {
		r = append(r, ok("proxy", "%s connects to %s", a.via.Redacted(), a.host))
	} else {
		r = append(r, ok("ports", "%s answers; no proxy is used", a.host))
	}
	state, err := shake(c, a)
	// in place of TLS
	if full := (tls.RecordHeaderError{}); errors.As(err, &full) &&
		strings.HasPrefix(string(full.RecordHeader[:]), "-ERR") {
		return append(r, fail("connections", "the coordinator's people look who holds so many; it takes others as "+
			"soon as some end", fmt.Errorf("%s takes no more connections: all that it may have are used up", a.host)))
	}
	if waited := net.Error(nil); errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.As(err, &waited) && waited.Timeout() {
		return append(r, fail("connections", "the coordinator's people look whether its connections, or its file "+
			"handles, are used up; or something on the way does not let this kind of connection through: try the "+
			"wss:// address",
			fmt.Errorf("%s accepts a connection, and says nothing in it: %w", a.host, err)))
	}
	if err != nil {
		return append(r, fail("tls", "something on the way may not let this kind of connection through, or another "+
			"program answers there: try the wss:// address", fmt.Errorf("%s does not speak TLS as a broker does: %w",
			a.host, err)))
	}
	found := judge(a, state, roots, time.Now())
	r = append(r, found)
	if found.Result != failed && a.url.Scheme == "wss" {
		if f, known := clock(ctx, state, a); known {
			r = append(r, f)
		}
	}
	return r
}

// name looks a host up. Through a proxy it is the proxy that must know it.
func name(ctx context.Context, host string, proxied bool, o Options) Finding {
	if net.ParseIP(host) != nil {
		return ok("names", "%s is an address", host)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	found, err := o.Lookup(ctx, host)
	switch {
	case err == nil:
		return ok("names", "%s is %s", host, strings.Join(found, ", "))
	case proxied:
		return note("names", "%s is not known here (%v); the proxy looks it up", host, err)
	}
	return fail("names", "ask who runs the network for this name; if others are reached through a proxy only, set "+
		"HTTPS_PROXY", fmt.Errorf("%s is not known here: %w", host, err))
}

// unreachable says why there is no socket.
func unreachable(a address, err error) Finding {
	if a.via != nil {
		return fail("proxy", hinted(err, "compare HTTPS_PROXY with what who runs the network says; NO_PROXY names "+
			"what is reached directly"), fmt.Errorf("%s: %w", a.host, err))
	}
	fix := "is the coordinator serving? Ask who runs the network to let this machine connect to " + a.host +
		"; or set HTTPS_PROXY"
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		fix = "a firewall may drop this: ask who runs the network to let this machine connect to " + a.host +
			"; or set HTTPS_PROXY"
	}
	return fail("ports", fix, fmt.Errorf("%s cannot be reached: %w", a.host, err))
}

// session is a TLS connection, whoever holds its certificate.
type session struct {
	*tls.Conn
	tls.ConnectionState
}

// shake begins TLS as the broker's clients do, but takes any certificate, to look
// at it.
func shake(c net.Conn, a address) (s session, err error) {
	if a.url.Scheme == "nats" { // it greets in plain text first
		if _, err := readLine(c); err != nil {
			return s, err
		}
	}
	// judge verifies
	s.Conn = tls.Client(c, &tls.Config{ServerName: a.url.Hostname(), InsecureSkipVerify: true,
		MinVersion: tls.VersionTLS12})
	if err := s.Conn.Handshake(); err != nil {
		return s, err
	}
	s.ConnectionState = s.Conn.ConnectionState()
	return s, nil
}

// readLine reads no byte beyond the line: those after it are of TLS.
func readLine(c net.Conn) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < 64<<10; line = append(line, b[0]) {
		if _, err := c.Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
	}
	return "", errors.New("it does not greet as a broker")
}

// judge says whose certificate it is. roots are those that the coordinator's
// invitation has pinned, nil for the system's.
func judge(a address, s session, roots *x509.CertPool, now time.Time) Finding {
	if len(s.PeerCertificates) == 0 {
		return fail("tls", "ask the coordinator", errors.New(a.host+" shows no certificate"))
	}
	leaf := s.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: a.url.Hostname(), Roots: roots, Intermediates: between,
		CurrentTime: now})
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return fail("tls", "if this is a proxy that opens encrypted connections, ask who runs it to leave "+a.host+
			" alone; otherwise ask the coordinator whether it has another key",
			fmt.Errorf("the certificate of %s was issued by %q, and not by whom this end trusts", a.host,
				leaf.Issuer.String()))
	case errors.As(err, &host):
		return fail("tls", "the coordinator lists the names in use in hosts of its coordinator.json, and serves again",
			fmt.Errorf("the certificate of %s is for other names: %w", a.host, err))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail("tls", "compare the clock of this machine; the coordinator has a new certificate each time it "+
			"starts", fmt.Errorf("the certificate of %s is valid from %s to %s", a.host, day(leaf.NotBefore),
			day(leaf.NotAfter)))
	case err != nil:
		return fail("tls", "ask the coordinator", fmt.Errorf("the certificate of %s: %w", a.host, err))
	case s.Version < tls.VersionTLS13:
		return fail("tls", "the broker must offer TLS 1.3",
			fmt.Errorf("%s speaks %s only", a.host, tls.VersionName(s.Version)))
	}
	whose := "the pinned authority"
	if roots == nil {
		whose = "an authority that this system trusts (" + leaf.Issuer.String() + ")"
	}
	return ok("tls", "%s speaks %s; its certificate is of %s, until %s", a.host, tls.VersionName(s.Version), whose,
		day(leaf.NotAfter))
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// clock compares this machine's clock with the server's, if it tells its time.
func clock(ctx context.Context, s session, a address) (Finding, bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.host+"/", nil)
	if err != nil || request.Write(s.Conn) != nil {
		return Finding{}, false
	}
	response, err := http.ReadResponse(bufio.NewReader(s.Conn), request)
	if err != nil {
		return Finding{}, false
	}
	defer response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	return skew(time.Now(), date, a.host), err == nil
}

// skew judges a difference of clocks, which is in nobody's way: time limits are
// counted by one machine's clock each.
func skew(here, there time.Time, who string) Finding {
	d := here.Sub(there).Round(time.Second)
	switch {
	case d.Abs() <= 5*time.Second:
		return ok("clock", "it agrees with that of %s within seconds", who)
	case d > 0:
		return note("clock", "it is %s ahead of that of %s; nothing depends on it but the times in logs, and expiry", d,
			who)
	}
	return note("clock", "it is %s behind that of %s; nothing depends on it but the times in logs, and expiry", -d, who)
}

// token says whether credentials are still good, by this machine's clock.
func token(text string, now time.Time) Finding {
	claims, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return fail("credentials", "bring site.json back from a backup, or ask for an invitation that replaces this "+
			"site's keys", fmt.Errorf("the token cannot be read: %w", err))
	}
	if claims.Expires == 0 {
		return ok("credentials", "the token is for %s, and does not expire", claims.Name)
	}
	until := time.Unix(claims.Expires, 0)
	if !now.Before(until) {
		return fail("credentials", "ask the coordinator for an invitation that replaces this site's keys (parley "+
			"coordinator invite --replace)", fmt.Errorf("the token was good until %s",
			until.UTC().Format(time.RFC3339)))
	}
	return ok("credentials", "the token is for %s, until %s; it is renewed while the site serves", claims.Name,
		until.UTC().Format(time.RFC3339))
}

// ways looks at every address, and calls accept for those that lead to the broker.
// One that works is enough: what is wrong with others is then worth knowing only.
func ways(ctx context.Context, urls []string, roots *x509.CertPool, o Options,
	accept func(url string) (Report, bool)) (r Report) {
	good := false
	for _, u := range urls {
		found := way(ctx, u, roots, o)
		if found.OK() {
			more, accepted := accept(u)
			found, good = append(found, more...), good || accepted
		}
		r = append(r, found...)
	}
	if !good || r.OK() {
		return r
	}
	for i, f := range r {
		if f.Result == failed {
			r[i] = note(f.Check, "%s; another address works", f.Found)
		}
	}
	return r
}

// knock connects to one address with credentials, and hands over the connection.
func knock(ctx context.Context, n nats.Options, o Options,
	use func(context.Context, *nats.Conn) Report) (Report, bool) {
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	said := make(chan struct{}, 1)
	n.Proxy = o.Proxy
	n.Log = func(string) {
		select {
		case said <- struct{}{}:
		default:
		}
	}
	c, err := nats.Connect(n)
	if err != nil {
		return Report{fail("broker", hinted(err, "bring the folder's files back from a backup"), err)}, false
	}
	defer c.Close()
	select {
	case <-said:
	case <-ctx.Done():
	}
	if !c.Connected() {
		trouble := errors.New(c.Trouble())
		return Report{fail("broker", hinted(trouble, "ask the coordinator's people what the broker's log says"),
			trouble)}, false
	}
	r := use(ctx, c)
	return r, r.OK()
}

// unique leaves out what was found twice.
func unique(r Report) Report {
	var list Report
	for _, f := range r {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}
