package nats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// Who is connected when the broker's certificate ends stays so, and whoever comes is told why it cannot. With a new one
// of the same authority all go on.
func TestWhenACertificateEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	authority := testkit.Get(x509.ParseCertificate(w.cert.Certificate[0]))(t)
	until := func(end time.Time) {
		leaf := *authority
		leaf.NotAfter, leaf.IsCA = end, false
		key := testkit.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		der := testkit.Get(x509.CreateCertificate(rand.Reader, &leaf, authority, key.Public(), w.cert.PrivateKey))(t)
		w.server.options.Certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
		testkit.Do(t, w.server.Restart())
	}
	end := time.Now().Add(5 * time.Second)
	until(end)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	after := put(t, c, wire.TaskKey(study, "north"), "task", 0)
	eventually(t, "the site is connected", s.Connected)
	time.Sleep(time.Until(end.Add(time.Second)))
	after = put(t, c, wire.TaskKey(study, "north"), "after the end", after)
	holds(t, s, wire.TaskKey(study, "north"), "after the end")
	if c.Begun() != 1 || s.Begun() != 1 {
		t.Errorf("%d and %d connections", c.Begun(), s.Begun())
	}
	late := w.connect(w.siteOptions("south"))
	eventually(t, "who comes is told", func() bool { return strings.Contains(late.Trouble(), "is not valid") })
	until(authority.NotAfter)
	eventually(t, "who came late is connected", late.Connected)
	put(t, c, wire.TaskKey(study, "north"), "with a new one", after)
	holds(t, s, wire.TaskKey(study, "north"), "with a new one")
}
