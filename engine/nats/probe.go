package nats

import (
	"context"
	"net"
	"net/url"
)

// Dial opens the socket that an end would connect by, and nothing more, for whoever
// looks for what stands in its way. proxy says through which proxy, as in [Options].
func Dial(ctx context.Context, address string, proxy func(*url.URL) (*url.URL, error)) (net.Conn, error) {
	d := &dialer{ctx: ctx, proxy: proxy, t: new(traffic)}
	return d.dial(address)
}
