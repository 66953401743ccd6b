//go:build long

package federation_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// However much a site sends, the broker keeps a bounded amount, and the studies of
// the others go on.
func TestSiteThatFloods(t *testing.T) {
	t.Parallel()
	w, evil, want := disturbed(t, 20)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(evil.Config.Roots))
	address := strings.TrimPrefix(evil.Config.URLs[0], "tls://")
	long, whole := make([]byte, 9<<20), make([]byte, 4<<20)
	rand.Read(whole)
	for range 3 {
		closed := make(chan error, 1)
		r := w.raw(evil, nats.SetCustomDialer(greedy{pool, address}),
			nats.ClosedHandler(func(c *nats.Conn) { closed <- c.LastError() }))
		r.Publish("$KV.control.answer.west", long) // an error if it is closed meanwhile
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Fatal("a message of 9 MiB was taken")
		}
	}
	digest := must(plan("disturbed", 20, 3, sites...).Digest()).String()
	broker := filepath.Join(w.co.Path, "broker")
	before, most, sent := sizeOf(broker), int64(0), 0
	r := w.raw(evil)
	deadline := time.Now().Add(5 * time.Second)
	flood := func(i int) {
		for _, b := range []string{"control", bucket(digest)} {
			subject := fmt.Sprintf("$KV.%s.answer.west.%d", b, i%16)
			// the study's is there when it has begun
			if _, err := r.Request(subject, whole, 5*time.Second); err != nil {
				r.FlushTimeout(5 * time.Second)
			}
			sent += len(whole)
		}
		most = max(most, sizeOf(broker)-before)
	}
	i := 0
	w.goesWell(20, want, func(context.Context, int) { flood(i); i++ })
	for ; time.Now().Before(deadline); i++ {
		flood(i)
	}
	t.Logf("%d MiB were sent, and %d MiB kept", sent>>20, most>>20)
	// 16 values of two buckets, and what is replaced is not yet cleared away
	if bound := int64(2 * 3 * 16 * len(whole)); most > bound {
		t.Errorf("the broker's folder grew by %d MiB, above %d", most>>20, bound>>20)
	}
}
