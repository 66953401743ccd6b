package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/federation/coordinator"
	"parley/federation/site"
)

// slowed is how many times as long as a quiet study one may take that somebody disturbs.
const slowed = 1.2

// against are those who disturb a study while they can: strangers hold connections on which they say nothing, and a
// member puts values of its own as fast as the broker takes them.
var against = map[string]func(ctx context.Context, f *coordinator.Folder, dir, address string) error{
	"strangers": strangers,
	"long":      flood(4 << 20),
	"short":     flood(200),
}

// strangers hold a thousand connections to the broker, and open each again that ends.
func strangers(ctx context.Context, _ *coordinator.Folder, _, address string) error {
	for range 1000 {
		go func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", address); err == nil {
					stop := context.AfterFunc(ctx, func() { c.Close() })
					io.Copy(io.Discard, c)
					stop()
					c.Close()
				}
				pause(ctx)
			}
		}()
	}
	return nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// flood lets a member that has joined put values of so many bytes over three connections.
func flood(size int) func(ctx context.Context, f *coordinator.Folder, dir, _ string) error {
	return func(ctx context.Context, f *coordinator.Folder, dir, _ string) error { return puts(ctx, f, dir, size) }
}

func puts(ctx context.Context, f *coordinator.Folder, dir string, size int) error {
	i, err := f.Invite("flood", time.Now().Add(time.Hour), false)
	if err != nil {
		return err
	}
	s, err := site.Join(ctx, filepath.Join(dir, "flood"), i, methods, nil)
	if err != nil {
		return err
	}
	key, err := nkeys.FromSeed(s.Secrets.User)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.Config.Roots))
	value := make([]byte, size)
	rand.Read(value)
	for range 3 {
		go func() {
			for ; ctx.Err() == nil; pause(ctx) {
				c, err := nats.Connect(s.Config.URLs[0], nats.NoReconnect(), nats.TLSHandshakeFirst(),
					nats.Secure(&tls.Config{RootCAs: roots}),
					nats.UserJWT(func() (string, error) { return s.Config.JWT, nil }, key.Sign))
				for err == nil && ctx.Err() == nil {
					err = c.Publish("$KV.control.answer.flood.0", value)
				}
				if c != nil {
					c.Close()
				}
			}
		}()
	}
	return nil
}

// disturbed measures a study in quiet and a second one while somebody disturbs it. It is an error if that slows it by
// more than a fifth.
func disturbed(ctx context.Context, o networkOptions, say func(format string, a ...any)) error {
	var took [2]time.Duration
	for i, who := range []string{"", o.against} {
		o.against = who
		r, err := measureNetwork(ctx, o, say)
		if err != nil {
			return err
		}
		took[i] = r.study
	}
	ratio := float64(took[1]) / float64(took[0])
	fmt.Printf("against %s: a study of %v in %v, %.2f times as long\n", o.against, took[0].Round(time.Millisecond),
		took[1].Round(time.Millisecond), ratio)
	if ratio > slowed {
		return fmt.Errorf("a study is slowed by more than %.0f %%", 100*(slowed-1))
	}
	return nil
}
