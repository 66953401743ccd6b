// Package natstest runs three nats-server processes for tests, as the administrators of a
// cluster would: with the configuration in deploy, and accounts that are not Parley's.
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
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"parley/engine/nats"
)

// VerifyTestMain runs a package's tests, and fails on goroutines that are left. Two of
// nats-server's are excused: a stream that a client makes while its server shuts down is opened
// after all others were closed, and its store then flushes until the process ends.
func VerifyTestMain(m *testing.M) {
	const pkg = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(pkg+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(pkg+"/ats.Register.func1"))
}

// module is what the program of a server is built from.
const module = "github.com/nats-io/nats-server/v2"

// Build builds a server of a version, or of the one in go.mod if it is empty, and returns the
// path of the program.
func Build(t testing.TB, version string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, module)
	if version != "" {
		cmd = exec.Command("go", "install", module+"@"+version)
		cmd.Env = append(os.Environ(), "GOBIN="+dir)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building nats-server %s: %v\n%s", version, err, out)
	}
	return filepath.Join(dir, "nats-server")
}

// Cluster is three servers that keep each value three times.
type Cluster struct {
	Program   string          // the next server to be started
	Authority *nats.Authority // of the account that Parley has
	URLs      []string
	Roots     *x509.CertPool
	PEM       []byte // of Roots

	t       testing.TB
	account nkeys.KeyPair
	folders map[string]string // by name of a server: where its configuration is
	running map[string]*exec.Cmd
	conn    *client.Conn
}

// NewCluster starts three servers. They are killed when the test ends. root is the repository's,
// program that of [Build].
func NewCluster(t testing.TB, root, program string) *Cluster {
	t.Helper()
	c := &Cluster{Program: program, t: t, folders: map[string]string{}, running: map[string]*exec.Cmd{}}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "nats-server.conf"))
	c.must(err)
	parts := strings.SplitN(string(text), "\n\n", 3)
	if len(parts) != 3 {
		t.Fatal("deploy/nats-server.conf is no heading, a paragraph of what differs, and the rest")
	}
	shared := t.TempDir()
	values := c.certify(shared)
	system, tokens := c.accounts(filepath.Join(shared, "operator.jwt"))
	values["OPERATOR"], values["SYSTEM"] = filepath.Join(shared, "operator.jwt"), system
	var servers, routes []string
	for range 3 {
		a := c.freeAddress()
		servers, routes = append(servers, a), append(routes, "tls://"+a)
	}
	values["ROUTES"] = routes
	for i, a := range servers {
		name, dir := fmt.Sprint("m", i), t.TempDir()
		clients := c.freeAddress()
		c.URLs, c.folders[name] = append(c.URLs, "tls://"+clients), dir
		values["NAME"], values["CLIENTS"], values["SERVERS"], values["FOLDER"] = name, clients, a,
			filepath.Join(dir, "store")
		var first strings.Builder
		for key, value := range values {
			quoted, err := json.Marshal(value)
			c.must(err)
			fmt.Fprintf(&first, "%s: %s\n", key, quoted)
		}
		c.must(os.WriteFile(filepath.Join(dir, "nats-server.conf"), []byte(first.String()+"\n"+parts[2]), 0o600))
		c.must(os.Mkdir(filepath.Join(dir, "jwt"), 0o700))
		for public, token := range tokens {
			c.must(os.WriteFile(filepath.Join(dir, "jwt", public+".jwt"), []byte(token), 0o600))
		}
		c.Start(name)
	}
	t.Cleanup(func() {
		if c.conn != nil {
			c.conn.Close()
		}
		for _, name := range slices.Collect(maps.Keys(c.running)) {
			c.Kill(name)
		}
	})
	c.connect()
	return c
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// certify makes a certificate that all servers have, and returns where it is.
func (c *Cluster) certify(dir string) map[string]any {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	c.must(err)
	leaf, err := x509.ParseCertificate(der)
	c.must(err)
	private, err := x509.MarshalECPrivateKey(key)
	c.must(err)
	c.Roots, c.PEM = x509.NewCertPool(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.Roots.AddCert(leaf)
	certificate, secret := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	c.must(os.WriteFile(certificate, c.PEM, 0o600))
	c.must(os.WriteFile(secret, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	return map[string]any{"CERTIFICATE": certificate, "AUTHORITY": certificate, "KEY": secret}
}

// accounts makes an operator, whose token it writes to a file, and tokens of two accounts by
// their keys: the system's, and the one for Parley.
func (c *Cluster) accounts(file string) (system string, tokens map[string]string) {
	c.t.Helper()
	operator, err1 := nkeys.CreateOperator()
	own, err2 := nkeys.CreateAccount()
	account, err3 := nkeys.CreateAccount()
	for _, err := range []error{err1, err2, err3} {
		c.must(err)
	}
	c.account = account
	public := func(k nkeys.KeyPair) string {
		p, err := k.PublicKey()
		c.must(err)
		return p
	}
	sc, ac := jwt.NewAccountClaims(public(own)), jwt.NewAccountClaims(public(account))
	sc.Name, ac.Name = "system", "study centre"
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit,
		Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit}
	tokens = map[string]string{}
	for _, claims := range []*jwt.AccountClaims{sc, ac} {
		token, err := claims.Encode(operator)
		c.must(err)
		tokens[claims.Subject] = token
	}
	oc := jwt.NewOperatorClaims(public(operator))
	oc.Name, oc.SystemAccount = "institution", sc.Subject
	token, err := oc.Encode(operator)
	c.must(err)
	c.must(os.WriteFile(file, []byte(token), 0o600))
	c.Authority, err = nats.AccountAuthority("", c.AccountSeed())
	c.must(err)
	return sc.Subject, tokens
}

// AccountSeed is what the people who run a cluster hand to a coordinator.
func (c *Cluster) AccountSeed() []byte {
	c.t.Helper()
	seed, err := c.account.Seed()
	c.must(err)
	return seed
}

func (c *Cluster) freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	defer l.Close()
	return l.Addr().String()
}

// connect makes a connection of the cluster's own, which asks who leads.
func (c *Cluster) connect() {
	c.t.Helper()
	seed, public, err := nats.NewUser()
	c.must(err)
	token, err := c.Authority.Coordinator(public)
	c.must(err)
	c.conn, err = client.Connect(c.URLs[0], client.UserJWTAndSeed(token, string(seed)),
		client.CustomInboxPrefix("_I_coordinator"),
		client.Secure(&tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS13}), client.TLSHandshakeFirst(),
		client.RetryOnFailedConnect(true), client.MaxReconnects(-1), client.ReconnectWait(50*time.Millisecond),
		func(o *client.Options) error { o.Servers = c.URLs; return nil })
	c.must(err)
}

// Names are those of the servers.
func (c *Cluster) Names() []string { return slices.Sorted(maps.Keys(c.folders)) }

// Start starts a server that is not running. What it writes stays in its folder.
func (c *Cluster) Start(name string) {
	c.t.Helper()
	cmd := exec.Command(c.Program, "-c", "nats-server.conf", "-l", "nats-server.log")
	cmd.Dir = c.folders[name]
	c.must(cmd.Start())
	c.running[name] = cmd
}

// Process is the number of a server's process.
func (c *Cluster) Process(name string) int { return c.running[name].Process.Pid }

// Kill kills a server with SIGKILL.
func (c *Cluster) Kill(name string) { c.end(name, syscall.SIGKILL) }

// Stop lets a server end in its own time.
func (c *Cluster) Stop(name string) { c.end(name, syscall.SIGTERM) }

func (c *Cluster) end(name string, signal syscall.Signal) {
	c.running[name].Process.Signal(signal)
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
		<-time.After(20 * time.Millisecond)
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
