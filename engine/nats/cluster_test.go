package nats

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/engine/wire"
)

// memberOf names a file that says which server of a cluster this process is: the
// tests start themselves, so that a server can be killed.
const memberOf = "PARLEY_TEST_NATS_MEMBER"

type member struct {
	Dir, Name, Listen, Cluster string
	Routes                     []string
	Authority, Cert, Key       []byte
}

func serveMember(file string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	data, err := os.ReadFile(file)
	fail(err)
	var m member
	fail(json.Unmarshal(data, &m))
	authority, err := ParseAuthority(m.Authority)
	fail(err)
	key, err := x509.ParseECPrivateKey(m.Key)
	fail(err)
	leaf, err := x509.ParseCertificate(m.Cert)
	fail(err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	_, err = StartServer(ServerOptions{Dir: m.Dir, Listen: m.Listen, Authority: authority, Certificate: tls.Certificate{Certificate: [][]byte{m.Cert}, PrivateKey: key},
		Cluster: &ClusterOptions{Name: m.Name, Listen: m.Cluster, Routes: m.Routes, Roots: roots}})
	fail(err)
	io.Copy(io.Discard, os.Stdin) // until the test ends, however it does
}

// cluster is three servers in processes of their own.
type cluster struct {
	t       *testing.T
	members map[string]member
	running map[string]*exec.Cmd
}

func (c *cluster) start(name string) {
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

func (c *cluster) kill(name string) {
	c.running[name].Process.Kill()
	c.running[name].Wait()
	delete(c.running, name)
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// In a cluster whose leader is killed again and again, nothing that was
// acknowledged is lost, and no reader sees a value go back.
func TestKilledLeaders(t *testing.T) {
	t.Parallel()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, authority: authority}
	w.cert, w.roots = certificate(t)
	w.server = &Server{}
	secret, err := authority.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(w.cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t, map[string]member{}, map[string]*exec.Cmd{}}
	var urls, routes []string
	for i := range 3 {
		m := member{Dir: t.TempDir(), Name: fmt.Sprint("m", i), Listen: freeAddress(t), Cluster: freeAddress(t), Authority: secret, Cert: w.cert.Certificate[0], Key: key}
		urls, routes = append(urls, "tls://"+m.Listen), append(routes, "tls://"+m.Cluster)
		c.members[m.Name] = m
	}
	t.Cleanup(func() {
		for name := range c.running {
			c.kill(name)
		}
	})
	for name, m := range c.members {
		m.Routes = routes
		c.members[name] = m
		c.start(name)
	}
	co, so := w.coordinatorOptions(), w.siteOptions("north")
	co.URLs, so.URLs, co.Replicas = urls, urls, 3
	coord, site := w.connect(co), w.connect(so)

	const puts = 30
	task := wire.TaskKey(study, "north")
	var readers sync.WaitGroup
	readers.Go(func() { // the site sees values rise, and the last one
		seen, latest := uint64(0), -1
		for latest < puts-1 {
			value, revision, err := site.Wait(within(t), task, seen)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := strconv.Atoi(string(value))
			if err != nil || n < latest || n == latest && revision == seen {
				t.Errorf("after %d came %q, %v", latest, value, err)
				return
			}
			seen, latest = revision, n
		}
	})
	var after, acknowledged uint64
	for i := range puts {
		value := fmt.Sprint(i)
		killed := ""
		if i == 10 || i == 20 {
			if killed = c.leader(coord); killed != "" {
				c.kill(killed)
			} else {
				t.Error("the bucket has no leader")
			}
		}
		began, tries := time.Now(), 0
		for deadline := began.Add(30 * time.Second); ; tries++ {
			r, err := coord.Put(within(t), task, []byte(value), after)
			if err == nil {
				if r <= acknowledged {
					t.Errorf("revision %d after %d", r, acknowledged)
				}
				after, acknowledged = r, r
				break
			}
			if errors.Is(err, wire.ErrMoved) { // this value, by a try that was not acknowledged; or a read that is behind
				if now, r, err := coord.Get(within(t), task); err == nil && string(now) == value && r > after {
					after, acknowledged = r, r
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("put %d: %v", i, err)
			}
			if pause(within(t), 50*time.Millisecond) != nil {
				t.FailNow()
			}
		}
		if gap := time.Since(began); killed != "" || i == 0 || gap > time.Second {
			t.Logf("put %d took %.2f s, %d tries more; killed: %q", i, gap.Seconds(), tries, killed)
		}
		if killed != "" {
			c.start(killed)
		}
	}
	readers.Wait()
	eventually(t, "every server has the last value", func() bool {
		value, revision, err := coord.Get(within(t), task)
		return err == nil && string(value) == fmt.Sprint(puts-1) && revision == after
	})
}

// leader asks who leads the bucket of the study.
func (c *cluster) leader(conn *Conn) (name string) {
	eventually(c.t, "the bucket has a leader that is running", func() bool {
		msg, err := conn.request(within(c.t), "$JS.API.STREAM.INFO."+place{bucket: bucketOf(study)}.stream(), nil, nil)
		if err != nil {
			return false
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
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current {
				return false
			}
		}
		name = info.Cluster.Leader
		return c.running[name] != nil
	})
	return name
}
