package nats

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// connectWithin is how long it may take to be connected, with all handshakes.
const connectWithin = 15 * time.Second

// traffic counts what passes at the socket, encryption included.
type traffic struct{ in, out atomic.Uint64 }

// counted is a connection that counts, and is read from a reader.
type counted struct {
	net.Conn
	t    *traffic
	from io.Reader
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.t.in.Add(uint64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.t.out.Add(uint64(n))
	return n, err
}

// dialer makes the socket of one try to connect. NATS's client calls it, and
// replaces some of its errors by one that says nothing; so the error is kept.
type dialer struct {
	ctx    context.Context // ends the connection, too
	server *Server         // nil: by address
	proxy  func(*url.URL) (*url.URL, error)
	t      *traffic
	err    error
	stop   func() bool
}

// Dial implements NATS's CustomDialer.
func (d *dialer) Dial(_, address string) (net.Conn, error) {
	return d.keep(d.dial(address))
}

// InProcessConn implements NATS's InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) {
	return d.keep(d.server.connect())
}

func (d *dialer) keep(c net.Conn, err error) (net.Conn, error) {
	d.err = err
	if err != nil {
		return nil, err
	}
	// Handshakes end in time; the client takes the deadline away after them.
	c.SetDeadline(time.Now().Add(connectWithin))
	d.stop = context.AfterFunc(d.ctx, func() { c.Close() })
	if counting, ok := c.(*counted); ok {
		return counting, nil
	}
	return &counted{c, d.t, c}, nil
}

func (d *dialer) dial(address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, connectWithin)
	defer cancel()
	via, err := d.proxy(&url.URL{Scheme: "https", Host: address})
	if err != nil {
		return nil, fmt.Errorf("looking for a proxy: %w", err)
	}
	if via == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	c, err := d.tunnel(ctx, via, address)
	if err != nil {
		return nil, fmt.Errorf("through the proxy %s: %w", via.Redacted(), err)
	}
	return c, nil
}

// tunnel asks an HTTP proxy to connect to an address.
func (d *dialer) tunnel(ctx context.Context, via *url.URL, address string) (_ net.Conn, err error) {
	port := via.Port()
	switch {
	case via.Scheme != "http" && via.Scheme != "https":
		return nil, fmt.Errorf("it is of another kind\n  hint: http://HOST:PORT or https://HOST:PORT")
	case port == "" && via.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if via.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address,
		Header: http.Header{"User-Agent": {"parley"}}}
	if u := via.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := request.Write(c); err != nil {
		return nil, err
	}
	// No more is read of a proxy's answer than an answer may be long.
	ahead := bufio.NewReader(io.LimitReader(c, 64<<10))
	response, err := http.ReadResponse(ahead, request)
	if err != nil {
		return nil, fmt.Errorf("it does not answer as a proxy: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusProxyAuthRequired:
		return nil, fmt.Errorf("it wants a name and password (%s)\n  hint: HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT",
			response.Status)
	default:
		return nil, fmt.Errorf("it refuses to connect to %s (%s)\n  hint: ask those who run it to allow CONNECT to "+
			"this address", address, response.Status)
	}
	first, _ := ahead.Peek(ahead.Buffered())
	return &counted{c, d.t, io.MultiReader(bytes.NewReader(first), c)}, nil
}

// Dial opens the socket that an end would connect by, and nothing more, for whoever
// looks for what stands in its way. proxy says through which proxy, as in [Options].
func Dial(ctx context.Context, address string, proxy func(*url.URL) (*url.URL, error)) (net.Conn, error) {
	d := &dialer{ctx: ctx, proxy: proxy, t: new(traffic)}
	return d.dial(address)
}
