// Package natstest runs three NATS servers for tests, in processes of their own, so
// that they can be killed.
package natstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"parley/engine/nats"
	"parley/internal/wire"
)

// memberOf names a file that says which server of a cluster this process is: tests
// start their own binary again.
const memberOf = "PARLEY_TEST_NATS_MEMBER"

type member struct {
	Dir, Name, Listen, Cluster string
	Routes                     []string
	Authority, Cert, Key       []byte
}

// serves says whether this process is a server of a cluster, and is one until the
// test ends.
func serves() bool {
	file := os.Getenv(memberOf)
	if file == "" {
		return false
	}
	if err := serve(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// VerifyTestMain runs a package's tests, or serves as one server of a [Cluster], and
// fails on goroutines that are left. Two of nats-server's are excused: a stream that a
// client makes while its server shuts down is opened after all others were closed, and
// its store then flushes until the process ends.
func VerifyTestMain(m *testing.M) {
	if serves() {
		return
	}
	const pkg = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(pkg+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(pkg+"/ats.Register.func1"))
}

func serve(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var m member
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	authority, err := nats.ParseAuthority(m.Authority)
	if err != nil {
		return err
	}
	key, err := x509.ParseECPrivateKey(m.Key)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(m.Cert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	_, err = nats.StartServer(nats.ServerOptions{Dir: m.Dir, Listen: m.Listen, Authority: authority, Certificate: tls.Certificate{Certificate: [][]byte{m.Cert}, PrivateKey: key},
		Cluster: &nats.ClusterOptions{Name: m.Name, Listen: m.Cluster, Routes: m.Routes, Roots: roots}})
	if err == nil {
		io.Copy(io.Discard, os.Stdin) // until the test ends, however it does
	}
	return err
}

// Cluster is three servers that keep each value three times.
type Cluster struct {
	Authority *nats.Authority
	URLs      []string
	Roots     *x509.CertPool
	PEM       []byte // of Roots

	t       testing.TB
	members map[string]member
	running map[string]*exec.Cmd
	conn    *client.Conn
}

// NewCluster starts three servers. They are killed when the test ends.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t, members: map[string]member{}, running: map[string]*exec.Cmd{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	c.Authority, err = nats.NewAuthority()
	must(err)
	secret, err := c.Authority.MarshalBinary()
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	leaf, err := x509.ParseCertificate(der)
	must(err)
	c.Roots, c.PEM = x509.NewCertPool(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.Roots.AddCert(leaf)
	private, err := x509.MarshalECPrivateKey(key)
	must(err)
	var routes []string
	for i := range 3 {
		m := member{Dir: t.TempDir(), Name: fmt.Sprint("m", i), Listen: freeAddress(t), Cluster: freeAddress(t), Authority: secret, Cert: der, Key: private}
		c.URLs, routes = append(c.URLs, "tls://"+m.Listen), append(routes, "tls://"+m.Cluster)
		c.members[m.Name] = m
	}
	t.Cleanup(func() {
		if c.conn != nil {
			c.conn.Close()
		}
		for _, name := range slices.Collect(maps.Keys(c.running)) {
			c.Kill(name)
		}
	})
	for name, m := range c.members {
		m.Routes = routes
		c.members[name] = m
		c.Start(name)
	}
	c.connect()
	return c
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// connect makes a connection of the cluster's own, which asks who leads.
func (c *Cluster) connect() {
	c.t.Helper()
	seed, public, err := nats.NewUser()
	if err != nil {
		c.t.Fatal(err)
	}
	token, err := c.Authority.Coordinator(public)
	if err != nil {
		c.t.Fatal(err)
	}
	c.conn, err = client.Connect(c.URLs[0], client.UserJWTAndSeed(token, string(seed)), client.CustomInboxPrefix("_I_coordinator"),
		client.Secure(&tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS13}), client.TLSHandshakeFirst(),
		client.RetryOnFailedConnect(true), client.MaxReconnects(-1), client.ReconnectWait(50*time.Millisecond),
		func(o *client.Options) error { o.Servers = c.URLs; return nil })
	if err != nil {
		c.t.Fatal(err)
	}
}

// AccountSeed is what the people who run a cluster hand to a coordinator.
func (c *Cluster) AccountSeed() []byte {
	c.t.Helper()
	var seeds struct {
		_                         struct{} `cbor:",toarray"`
		Operator, System, Account []byte
		Issuer                    string
	}
	data, err := c.Authority.MarshalBinary()
	if err == nil {
		err = wire.Unmarshal(data, &seeds)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return seeds.Account
}

// Start starts a server that is not running.
func (c *Cluster) Start(name string) {
	c.t.Helper()
	data, err := json.Marshal(c.members[name])
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), memberOf+"="+file)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running[name] = cmd
}

// Kill kills a server with SIGKILL.
func (c *Cluster) Kill(name string) {
	c.running[name].Process.Kill()
	c.running[name].Wait()
	delete(c.running, name)
}

// Leader waits until the bucket of a study has a running leader and two servers that
// follow it, and returns the leader's name; empty if that takes longer than a minute.
func (c *Cluster) Leader(study string) string {
	subject := "$JS.API.STREAM.INFO.KV_s" + study[:16]
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if name := c.leader(subject); c.running[name] != nil {
			return name
		}
		tick := time.NewTimer(20 * time.Millisecond)
		<-tick.C
	}
	return ""
}

func (c *Cluster) leader(subject string) string {
	msg, err := c.conn.Request(subject, nil, 2*time.Second)
	if err != nil {
		return ""
	}
	var info struct {
		Cluster struct {
			Leader   string `json:"leader"`
			Replicas []struct {
				Current bool `json:"current"`
			} `json:"replicas"`
		} `json:"cluster"`
	}
	if json.Unmarshal(msg.Data, &info) != nil || len(info.Cluster.Replicas) != 2 {
		return ""
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current {
			return ""
		}
	}
	return info.Cluster.Leader
}
